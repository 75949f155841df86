package payments

const policyIntroduction = `# The failure policy

Generated from ` + "`payments/policy.go`" + `, which asks ` + "`Decide`" + ` for every cell; a test compares them. Regenerate with
` + "`go run ./cmd/internal/tidy/failurepolicy > docs/FAILURE_POLICY.md`" + `.

Two rules stand above all others. A send without a definite answer is ` + "`unknown`" + `, never ` + "`failed`" + `. And while an earlier send is in doubt, nothing that a
later one is answered proves that the earlier did not charge: Stripe's records are asked first, and after every answer that was not replayed.

- **Nothing is sent after ` + "`expires_at`" + `** that could create a charge, on whatever way: first send, re-send, replay, or a new submit after absence. A cancel may leave.
- **Tries** (` + "`ONCEPAY_MAX_TRIES`" + `) are answers that prove that nothing was executed. 401, 403, 429, pauses and an open breaker cost none, and ` + "`unknown`" + ` never exhausts.
  With the last try a payment is ` + "`stalled`" + ` and has a dead letter.
- **By hand** (` + "`oncepay payments resolve`" + `) a payment that may have been charged ends as ` + "`failed`" + ` or ` + "`canceled`" + ` only from ` + "`needs_review`" + `, and only what
  Stripe's records show brings it there. Nothing is sent by hand that may be at Stripe.
- **Timing.** ` + "`Retry-After`" + ` (up to an hour) is the least wait. ` + "`Stripe-Should-Retry`" + ` makes the next try sooner or later and changes no meaning. 409 and lock time-outs are tried
  soon; a 429 halves the account's budget. All else waits by a capped exponential backoff with full jitter.
- **On-session declines.** Their customer could still confirm the PaymentIntent with another card. So the payment is ` + "`waiting`" + ` with the reason ` + "`cancelling_declined`" + ` until
  the PaymentIntent is canceled, under a key of its own, also after ` + "`expires_at`" + `; then it is ` + "`failed`" + ` with the decline that it had. Was the customer faster, Stripe's word
  counts. What the cancel does not show is read. Outages never end this; when Stripe shows ` + "`ONCEPAY_MAX_TRIES`" + ` times that it was not canceled, a person is asked.
- **Proof of absence**: two complete listings without it, an hour apart, the first 24 h after the last send. Then a person decides, or, with
  ` + "`ONCEPAY_RESUBMIT_AFTER_ABSENT=true`" + `, it is submitted again. One that has expired is ` + "`expired`" + `. One whose cancel is open
  since a database was restored is not sent in the meantime, and then ` + "`canceled`" + `.
`

const policyFollowUpIntroduction = `
## Captures, cancels and refunds

Each is a request of its own, with a key, tries and a ticket of its own, and about one payment. Those of one payment run one after another, as they were
accepted; one that waits for a person holds up those behind it, one that Stripe is processing does not.

- **Amounts** are set aside when a refund is accepted, until it has ended: nothing is accepted beyond what is left.
- **A refund** is guarded as a charge is: it is looked for among Stripe's refunds of the payment before every send, the first one, too, since a database that
  was restored may have forgotten it.
- **A capture** can happen once at Stripe, and a cancel takes nothing: what became of them is read from the PaymentIntent, and they are sent again for as long
  as it shows that they were not executed. A capture that Stripe refuses is refused for good once the PaymentIntent shows that the money is still held.
- **What happens to the payment** is written together with the end of what was asked for.

Whether it is accepted, and what it does first, by where its payment stands (with nothing accepted before):
`

// reasonRules is what every reason means to whoever operates the installation.
var reasonRules = []struct{ reason, meaning, remedy string }{
	{ReasonNotSent, "no connection to Stripe", "look at the network; it is tried again, and stalls after the last try: `oncepay dlq replay`"},
	{ReasonHeldBack, "our last check before the write refused it: the lease was too short, or the payment expired", "nothing; if it goes on, the process is overloaded or its clock is wrong"},
	{ReasonAccountUnknown, "the Stripe account of its tenant cannot be used", "mend the tenant's key or account: `oncepay tenants list`, the log"},
	{ReasonAccountChanged, "it is pinned to another Stripe account or mode than the one that is connected", "connect the account that it began with; nothing is sent to another"},
	{ReasonRateLimited, "Stripe limits our calls", "nothing; lower `ONCEPAY_STRIPE_RATE` if it goes on"},
	{ReasonLocked, "Stripe was busy with the same object", "nothing"},
	{ReasonAuthentication, "Stripe refuses our key (401, 403), or to let it do or read just this", "mend `ONCEPAY_STRIPE_KEY` or the tenant's key, or its rights (`oncepay doctor`: stripe_rights); no tries are lost meanwhile"},
	{ReasonKeyConflict, "another request was sent under our key before", "nothing; it is looked up. If it ends in needs_review, two installations may share `ONCEPAY_NAMESPACE`"},
	{ReasonKeyInUse, "a request under our key is being executed", "nothing; it is looked up"},
	{ReasonNoAnswer, "it was sent, and nothing definite came back", "nothing; it is looked up"},
	{ReasonConfirming, "an answer is held against Stripe's records first", "nothing; in needs_review: Stripe left it half done, cancel it there and resolve it as unknown"},
	{ReasonLookingUp, "Stripe's records are being asked", "nothing"},
	{ReasonAbsent, "Stripe provably has nothing of it", "`oncepay payments resolve` as waiting (submit it again) or canceled"},
	{ReasonInvalidRequest, "Stripe refused the request as invalid", "correct it and send it under another key"},
	{ReasonDisagrees, "what Stripe has differs from what was asked, in the field that is named", "compare in Stripe's dashboard, then `oncepay payments resolve`"},
	{ReasonSeveral, "Stripe has several PaymentIntents of it", "find out why, refund what is too much, then `oncepay payments resolve`"},
	{ReasonUnknownStatus, "Stripe shows a status that this version does not know", "update, then resolve it as unknown"},
	{ReasonExpired, "`expires_at` passed before anything was sent", "nothing"},
	{ReasonStripeCanceled, "it was canceled at Stripe, and not by us", "nothing"},
	{ReasonProcessing, "Stripe is processing it, for days with bank debits", "nothing"},
	{ReasonMissingAtStripe, "Stripe had named its PaymentIntent, or its refund, and does not show it now", "look for it in Stripe's dashboard, then `oncepay payments resolve`"},
	{ReasonTaken, "Stripe has its PaymentIntent, and a person has said that it paid for another payment", "see by its metadata whose it is; then `oncepay payments resolve` as succeeded if it is of this one, and settle the other with its tenant"},
	{ReasonAccountUnclear, "it may have been sent, and on which account is not known, or it was on several: nobody has looked for it on Stripe", "look for it in each account's dashboard, refund what is too much, then `oncepay payments resolve`"},
	{ReasonCancelling, "declined on session; its PaymentIntent is being canceled", "nothing"},
	{ReasonCancelRefused, "it was declined on session, or its cancel was asked for, and Stripe does not cancel its PaymentIntent", "cancel it in Stripe's dashboard, then resolve it as unknown"},
	{ReasonReplayed, "an operator took it up again", "nothing"},
	{ReasonRewound, "the database was restored, and what was sent since is looked up", "nothing"},
	{ReasonPaused, "an operator holds it back (shown, never stored)", "`oncepay resume`"},
	{ReasonDiscarded, "an operator gave it up", "nothing"},
	{ReasonResolved, "a person decided; why follows", "nothing; see `oncepay audit`"},
	{ReasonBehind, "of a capture, cancel or refund: one of the same payment that was accepted before has still to be worked on", "nothing; if that one waits for a person, decide about it"},
	{ReasonPaymentOpen, "of a capture, cancel or refund: what becomes of the payment is not known yet", "nothing; if the payment waits for a person, decide about it"},
	{ReasonPaid, "of a cancel: the money has been taken", "refund it"},
	{ReasonPaymentEnded, "of a cancel: the payment has ended, and nothing was taken", "nothing"},
	{ReasonNotCaptured, "of a refund: nothing was taken of the payment", "nothing"},
	{ReasonCapturedOtherwise, "of a capture: another amount was taken, and not by it", "nothing; see in Stripe's dashboard who did it"},
	{ReasonSeveralRefunds, "Stripe has more than one refund of it", "find out why in Stripe's dashboard, then `oncepay payments resolve`"},
	{ReasonRefundFailed, "Stripe could not give the money back", "ask for another refund under another key, or pay it back another way"},
	{ReasonCanceledOnRequest, "of a payment: its cancel was asked for", "nothing"},
	{string(ReasonWorkerKilled), "its worker died again and again", "find out why; `oncepay dlq show`, then `oncepay dlq replay`"},
	{string(ReasonHandlerPanic), "a bug stopped its worker", "report it; `oncepay dlq show`, then `oncepay dlq replay`"},
}
