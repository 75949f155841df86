package cli

import (
	"context"
	"strings"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// remedies say what only a person can do about a payment that waits for this reason, or why nothing has to be done although it looks so.
var remedies = map[string]string{
	payments.ReasonAccountUnknown: "its tenant's Stripe account cannot be used: `oncepay doctor` says why (stripe_tenants), and so does the workers' log",
	payments.ReasonAccountChanged: "connect the Stripe account that it began with, shown below: `oncepay doctor` says which is connected (stripe_account, stripe_tenants)",
	payments.ReasonAuthentication: "Stripe refuses the key, or a right that it lacks: check ONCEPAY_STRIPE_KEY, or the tenant's own (`oncepay tenants list`); `oncepay doctor` says which right (stripe_rights)",
	payments.ReasonCancelling:     "nothing: it was declined, and its PaymentIntent is being cancelled so that nobody can still confirm it",
	payments.ReasonReplayed:       "nothing: an operator took it up again; `oncepay audit --target` its dead letter says who",
	payments.ReasonRewound:        "nothing: the database was restored, and what was sent since is being looked up at Stripe",
}

// statusRemedies say what to do about a payment whose reason has no remedy of its own; ID stands for its id, TENANT for its tenant.
var statusRemedies = map[payments.Status]string{
	payments.StatusUnknown: "wait: it may have been charged, and Stripe's records are read until they tell; never send it again under another key. " +
		"If it stays so for hours, `oncepay doctor` says why (stripe, stripe_account, stripe_rights)",
	payments.StatusRequiresCapture: "the money is held: capture or cancel it (`oncepay publish --tenant TENANT --key NEW_KEY --kind capture --payment-id ID`, or --kind cancel; or over HTTP). " +
		"What was captured or canceled at Stripe, `oncepay payments resolve ID --as unknown --reason R` reads",
	payments.StatusRequiresAction: "its customer has to confirm it. To end it, cancel it (`oncepay publish --tenant TENANT --key NEW_KEY --kind cancel --payment-id ID`, or over HTTP). " +
		"What was canceled at Stripe, `oncepay payments resolve ID --as unknown --reason R` reads",
}

// reviewRemedies say what to look at before a payment that waits for a person is resolved.
var reviewRemedies = map[string]string{
	payments.ReasonAbsent:          "Stripe's records show nothing of it: resolve it as waiting to send it, or as canceled",
	payments.ReasonDisagrees:       "Stripe has a PaymentIntent that is not what was asked for: look at it there, mend it, and resolve the payment as what it is",
	payments.ReasonSeveral:         "Stripe has several PaymentIntents of it: refund or cancel all but one there, then resolve it as succeeded with that one as --payment-intent, or as canceled if none is left",
	payments.ReasonAccountUnclear:  "nobody has looked on Stripe what became of it: look for it on each of your accounts that it may be on, refund or cancel all but one, then resolve it as succeeded with that one as --payment-intent, or as canceled if none is left",
	payments.ReasonTaken:           "Stripe has a PaymentIntent of it, and a person has said that this one paid for another payment: see there whose it is by its metadata; if it is of this one, resolve it as succeeded, and settle the other with its tenant",
	payments.ReasonUnknownStatus:   "Stripe names a status that this version does not know: look at the PaymentIntent there, or run a newer version",
	payments.ReasonMissingAtStripe: "Stripe named a PaymentIntent before and does not show it now: check the account and the key, then resolve it as unknown, which looks again",
	payments.ReasonCancelRefused:   "it was declined, and Stripe does not cancel its PaymentIntent: cancel it there, then resolve the payment as unknown, which reads what became of it",
	payments.ReasonConfirming:      "Stripe has left its PaymentIntent half done: cancel it there, then resolve the payment as unknown, which reads what became of it",
}

// remedyOf says what to do about a payment; "" where nothing is to be done.
func remedyOf(p payments.Payment) string {
	word, _, _ := strings.Cut(p.Reason, ":")
	if p.Status == payments.StatusNeedsReview {
		remedy, ok := reviewRemedies[word]
		if !ok {
			remedy = "a person decides: look at Stripe what became of it"
		}
		return remedy + ": `oncepay payments resolve " + p.ID.Format(p.Kind) + " --as STATUS --reason R`"
	}
	if remedy, ok := remedies[word]; ok {
		return remedy
	}
	return strings.NewReplacer("ID", p.ID.Format(p.Kind), "TENANT", p.TenantID).Replace(statusRemedies[p.Status])
}

// hold is what an operator's decision or a dead letter means for a payment.
func hold(ctx context.Context, store operators, p payments.Payment) (lines [][2]string, err error) {
	switch {
	case p.Reason == payments.ReasonPaused:
		pauses, err := store.Pauses(ctx)
		if err != nil {
			return nil, err
		}
		tenants, err := store.Tenants(ctx)
		if err != nil {
			return nil, err
		}
		for _, pause := range pausesOver(pauses, p, tenants) {
			lines = append(lines, [2]string{"paused", whom(pause) + ", " + untilWhen(pause) + ", by " + pause.Actor + ": " + pause.Reason})
			lines = append(lines, [2]string{"what to do", "`oncepay resume" + scope{pause.TenantID, pause.AccountID}.flags() + " --reason R` lets it go on"})
		}
	case unlooked(p):
		where, err := whereToLook(ctx, store, p)
		return [][2]string{{"look first", where}}, err
	case p.Status == payments.StatusStalled:
		letters, _, err := store.DeadLetters(ctx, postgres.DeadLettersRequest{LetterFilter: payments.LetterFilter{PaymentID: &p.ID, State: payments.DeadLetterOpen}, Limit: 1})
		if err != nil || len(letters) == 0 {
			return nil, err
		}
		d := letters[0]
		lines = [][2]string{{"dead letter", d.ID + ": " + string(d.Reason)},
			{"what to do", "mend the cause, then `oncepay dlq replay " + d.ID + "`; or `oncepay dlq discard " + d.ID + "` cancels it"}}
	}
	return lines, nil
}

// unlooked reports whether a payment waits for a person without anybody having looked for it on Stripe.
func unlooked(p payments.Payment) bool {
	return p.Status == payments.StatusNeedsReview && p.Reason == payments.ReasonAccountUnclear
}

// whereToLook says where a person must look for a payment that nobody has looked for, and for what.
func whereToLook(ctx context.Context, store operators, p payments.Payment) (string, error) {
	tenants, err := store.Tenants(ctx)
	if err != nil {
		return "", err
	}
	where := "the installation's own account (that of ONCEPAY_STRIPE_KEY)"
	for _, t := range tenants {
		switch {
		case t.ID != p.TenantID || !t.OwnWay():
		case t.StripeAccount != "":
			where = "its tenant's account " + t.StripeAccount
		case t.Account.ID != "":
			where = "its tenant's account " + t.Account.ID
		default:
			where = "the account of its tenant's own key (" + t.StripeKeyRef + ")"
		}
	}
	return "which Stripe account it may be on is not known, so nobody has looked for it: on " + where + `, and on every other that its tenant has had, search for the metadata oncepay_payment:"` +
		p.ID.Format(p.Kind) + `"`, nil
}

// pausesOver are the pauses that hold a payment. It goes to its tenant's own account, or to the one that it is pinned to. The installation's own is
// known to workers alone: for a payment that was not sent yet, a paused account that is no tenant's is taken for it.
func pausesOver(pauses []payments.Pause, p payments.Payment, tenants []postgres.Tenant) (over []payments.Pause) {
	account, taken := p.StripeAccount, map[string]bool{}
	ownWay := false
	for _, t := range tenants {
		taken[t.Account.ID], taken[t.StripeAccount] = true, true
		if t.ID == p.TenantID && t.OwnWay() {
			account, ownWay = t.Account.ID, true
		}
	}
	for _, pause := range pauses {
		holds := pause.TenantID == "" || pause.TenantID == p.TenantID
		if pause.AccountID != "" {
			holds = pause.AccountID == account || account == "" && !ownWay && !taken[pause.AccountID]
		}
		if holds {
			over = append(over, pause)
		}
	}
	return over
}
