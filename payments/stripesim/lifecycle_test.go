package stripesim

import (
	"testing"
	"time"
)

func TestCreateAndConfirmShape(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	m := r.pay("k", "currency", "USD", "customer", "cus_1", "description", "Order 1", "receipt_email", "a@b.test", "statement_descriptor_suffix", "ORDER1",
		"automatic_payment_methods[enabled]", "true", "automatic_payment_methods[allow_redirects]", "never", "metadata[empty]", "").want(t, 200, map[string]any{
		"object": "payment_intent", "status": "succeeded", "amount": 2000.0, "amount_received": 2000.0, "amount_capturable": 0.0, "currency": "usd",
		"customer": "cus_1", "description": "Order 1", "receipt_email": "a@b.test", "statement_descriptor_suffix": "ORDER1", "livemode": false,
		"automatic_payment_methods.enabled": true, "automatic_payment_methods.allow_redirects": "never", "capture_method": "automatic",
		"created": 1_700_000_000.0, "last_payment_error": nil, "next_action": nil, "canceled_at": nil, "metadata.oncepay_payment": "pay_1",
		"confirmation_method": "automatic", "cancellation_reason": nil, "invoice": nil,
	})
	for field, prefix := range map[string]string{"id": "pi_", "latest_charge": "ch_", "payment_method": "pm_1"} {
		if s, ok := m[field].(string); !ok || len(s) < 20 || s[:len(prefix)] != prefix {
			t.Errorf("%s is %v", field, m[field])
		}
	}
	id := m["id"].(string)
	if secret := m["client_secret"].(string); len(secret) < len(id)+10 || secret[:len(id)+8] != id+"_secret_" {
		t.Errorf("client_secret is %v", secret)
	}
	if _, ok := m["charges"]; ok {
		t.Error("API 2023-10-16 has no charges in a PaymentIntent")
	}
	if got := r.get(intentsPath + "/" + id); got.body != r.pay("k", "currency", "USD", "customer", "cus_1", "description", "Order 1", "receipt_email", "a@b.test", "statement_descriptor_suffix", "ORDER1",
		"automatic_payment_methods[enabled]", "true", "automatic_payment_methods[allow_redirects]", "never", "metadata[empty]", "").body {
		t.Errorf("retrieved %s", got.body)
	}
	r.get(intentsPath+"/pi_none").want(t, 404, map[string]any{"error.code": "resource_missing"})
	r.get(intentsPath+"/"+id, "surprise", "1").want(t, 400, map[string]any{"error.code": "parameter_unknown"})
	r.get("/v1/balance").want(t, 200, map[string]any{"object": "balance", "livemode": false})
	if b := at(r.get("/v1/balance").object(t)["available"].([]any)[0], "amount"); b != 2000.0 {
		t.Errorf("balance %v", b)
	}
}

// Since API 2023-08-16 an on-session confirm needs a way back, or no redirects.
func TestRedirectRule(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for _, tc := range []struct {
		name   string
		kv     []string
		status int
	}{
		{"neither", nil, 400},
		{"off_session=false", []string{"off_session", "false"}, 400},
		{"allowed by name", []string{"automatic_payment_methods[enabled]", "true"}, 400},
		{"redirects always", []string{"automatic_payment_methods[enabled]", "true", "automatic_payment_methods[allow_redirects]", "always"}, 400},
		{"redirects never", []string{"automatic_payment_methods[enabled]", "true", "automatic_payment_methods[allow_redirects]", "never"}, 200},
		{"return_url", []string{"return_url", "https://shop.test/back"}, 200},
		{"types", []string{"payment_method_types[]", "card"}, 200},
		{"types by index", []string{"payment_method_types[0]", "card"}, 200},
		{"automatic off", []string{"automatic_payment_methods[enabled]", "false"}, 200},
		{"off_session", []string{"off_session", "true"}, 200},
		{"off_session by reason", []string{"off_session", "recurring"}, 200},
	} {
		res := r.pay("key "+tc.name, append([]string{"off_session", ""}, tc.kv...)...)
		if res.status != tc.status {
			t.Errorf("%s: status %d: %s", tc.name, res.status, res.body)
		}
		if tc.status == 400 {
			res.want(t, 400, map[string]any{"error.param": "return_url", "error.type": "invalid_request_error"})
		}
	}
	// The same on its own: what the PaymentIntent allows decides.
	id := at(r.do(call{path: intentsPath, form: form("amount", "500", "currency", "usd", "payment_method", "pm_card_visa")}).want(t, 200, map[string]any{"status": "requires_confirmation"}), "id").(string)
	r.do(call{path: intentsPath + "/" + id + "/confirm"}).want(t, 400, map[string]any{"error.param": "return_url"})
	r.do(call{path: intentsPath + "/" + id + "/confirm", form: form("return_url", "https://shop.test/")}).want(t, 200, map[string]any{"status": "succeeded"})
}

func TestDeclines(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for pm, codes := range map[string][2]string{
		"pm_card_visa_chargeDeclined":                      {"card_declined", "generic_decline"},
		"pm_card_visa_chargeDeclinedInsufficientFunds":     {"card_declined", "insufficient_funds"},
		"pm_card_visa_chargeDeclinedLostCard":              {"card_declined", "lost_card"},
		"pm_card_visa_chargeDeclinedStolenCard":            {"card_declined", "stolen_card"},
		"pm_card_visa_chargeDeclinedVelocityLimitExceeded": {"card_declined", "card_velocity_exceeded"},
		"pm_card_chargeDeclinedExpiredCard":                {"expired_card", "expired_card"},
		"pm_card_chargeDeclinedIncorrectCvc":               {"incorrect_cvc", "incorrect_cvc"},
		"pm_card_chargeDeclinedProcessingError":            {"processing_error", "processing_error"},
		"pm_card_chargeCustomerFail":                       {"card_declined", "generic_decline"},
		"pm_card_radarBlock":                               {"card_declined", "fraudulent"},
		"pm_card_authenticationRequired":                   {"authentication_required", "authentication_required"},
	} {
		t.Run(pm, func(t *testing.T) {
			t.Parallel()
			for _, session := range []string{"true", "false"} {
				if session == "false" && codes[0] == "authentication_required" {
					continue // on-session it asks instead; tested below
				}
				res := r.pay("", "payment_method", pm, "off_session", session, "automatic_payment_methods[enabled]", "true", "automatic_payment_methods[allow_redirects]", "never")
				m := res.want(t, 402, map[string]any{
					"error.type": "card_error", "error.code": codes[0], "error.decline_code": codes[1],
					"error.payment_intent.status": "requires_payment_method", "error.payment_intent.payment_method": nil,
					"error.payment_intent.object": "payment_intent", "error.payment_intent.last_payment_error.code": codes[0],
					"error.payment_intent.amount_received": 0.0, "error.payment_method.type": "card",
				})
				if charge := at(m, "error.charge"); charge == nil || charge != at(m, "error.payment_intent.latest_charge") {
					t.Errorf("charge %v: %s", charge, res.body)
				}
			}
		})
	}
	t.Cleanup(func() {
		if l := r.sim.Ledger(); len(l.Charges) != 0 {
			t.Errorf("a decline is in the ledger's charges: %v", l.Charges)
		}
	})
}

func TestAuthentication3DS(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	never := []string{"off_session", "", "automatic_payment_methods[enabled]", "true", "automatic_payment_methods[allow_redirects]", "never"}
	need := append([]string{"payment_method", "pm_card_authenticationRequired"}, never...)
	m := r.pay("a", need...).want(t, 200, map[string]any{"status": "requires_action", "next_action.type": "use_stripe_sdk", "latest_charge": nil, "amount_received": 0.0})
	id := m["id"].(string)
	r.pay("b", "payment_method", "pm_card_authenticationRequired", "off_session", "", "return_url", "https://shop.test/").want(t, 200, map[string]any{
		"status": "requires_action", "next_action.type": "redirect_to_url", "next_action.redirect_to_url.return_url": "https://shop.test/"})
	r.pay("c", append(need, "error_on_requires_action", "true")...).want(t, 402, map[string]any{"error.code": "authentication_required"})
	setUp := "pm_card_authenticationRequiredSetupForOffSession"
	r.pay("d", "payment_method", setUp).want(t, 200, map[string]any{"status": "succeeded"})
	r.pay("e", append([]string{"payment_method", setUp}, never...)...).want(t, 200, map[string]any{"status": "requires_action"})
	// Another card settles it.
	r.do(call{path: intentsPath + "/" + id + "/confirm", key: "f", form: form("payment_method", "pm_card_mastercard")}).want(t, 200, map[string]any{"status": "succeeded", "next_action": nil})
	if sum := r.sim.Summary(); sum.Charges != 2 {
		t.Errorf("summary %+v", sum)
	}
}

func TestConfirmAfterDecline(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	id := at(r.pay("k", "payment_method", "pm_card_visa_chargeDeclined").object(t), "error.payment_intent.id").(string)
	confirm := func(key string, kv ...string) result {
		return r.do(call{path: intentsPath + "/" + id + "/confirm", key: key, form: form(kv...)})
	}
	confirm("1", "off_session", "true").want(t, 400, map[string]any{"error.code": "payment_intent_unexpected_state", "error.payment_intent.id": id})
	confirm("2", "off_session", "true", "payment_method", "pm_card_chargeDeclinedExpiredCard").want(t, 402, map[string]any{"error.payment_intent.id": id, "error.code": "expired_card"})
	confirm("3", "off_session", "true", "payment_method", "pm_card_visa", "receipt_email", "a@b.test").want(t, 200, map[string]any{"id": id, "status": "succeeded", "last_payment_error": nil, "receipt_email": "a@b.test"})
	confirm("4", "off_session", "true", "payment_method", "pm_card_visa").want(t, 400, map[string]any{
		"error.code": "payment_intent_unexpected_state", "error.payment_intent.status": "succeeded",
		"error.message": "You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed."})
	if res := confirm("4", "off_session", "true", "payment_method", "pm_card_visa"); res.header.Get("Idempotent-Replayed") != "true" {
		t.Error("a wrong state was not stored")
	}
	confirm("5", "surprise", "1").want(t, 400, map[string]any{"error.code": "parameter_unknown"})
	r.do(call{path: intentsPath + "/pi_none/confirm", key: "6"}).want(t, 404, map[string]any{"error.code": "resource_missing"})
	if sum := r.sim.Summary(); sum.Charges != 1 || sum.PaymentIntents != 1 {
		t.Errorf("summary %+v", sum)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	cancelOf := func(id string, kv ...string) result {
		return r.do(call{path: intentsPath + "/" + id + "/cancel", form: form(kv...)})
	}
	paid := at(r.pay("a").object(t), "id").(string)
	cancelOf(paid).want(t, 400, map[string]any{"error.code": "payment_intent_unexpected_state", "error.payment_intent.status": "succeeded"})
	held := at(r.pay("b", "capture_method", "manual").want(t, 200, map[string]any{"status": "requires_capture", "amount_capturable": 2000.0, "amount_received": 0.0}), "id").(string)
	cancelOf(held, "cancellation_reason", "boredom").want(t, 400, map[string]any{"error.param": "cancellation_reason"})
	cancelOf(held, "cancellation_reason", "abandoned").want(t, 200, map[string]any{"status": "canceled", "cancellation_reason": "abandoned", "amount_capturable": 0.0, "canceled_at": 1_700_000_000.0})
	cancelOf(held).want(t, 400, map[string]any{"error.code": "payment_intent_unexpected_state"})
	debit := at(r.pay("c", "payment_method", "pm_usBankAccount_processing").want(t, 200, map[string]any{"status": "processing"}), "id").(string)
	cancelOf(debit).want(t, 200, map[string]any{"status": "canceled", "cancellation_reason": nil})
	r.do(call{path: intentsPath + "/" + held + "/confirm", form: form("payment_method", "pm_card_visa", "off_session", "true")}).want(t, 400, map[string]any{"error.code": "payment_intent_unexpected_state"})
	l := r.sim.Ledger()
	if len(l.Charges) != 2 || !l.Charges[0].Captured || l.Charges[1].Captured {
		t.Errorf("charges %+v", l.Charges)
	}
}

func TestDebitsSettleByTheClock(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{DebitSettle: 48 * time.Hour})
	ids := map[string]string{}
	for _, pm := range []string{"success", "processing", "insufficientFunds", "accountClosed", "noAccount", "debitNotAuthorized", "dispute"} {
		m := r.pay(pm, "payment_method", "pm_usBankAccount_"+pm, "metadata[oncepay_payment]", pm).want(t, 200, map[string]any{"status": "processing", "amount_received": 0.0})
		ids[pm] = m["id"].(string)
	}
	canceledID := at(r.pay("x", "payment_method", "pm_usBankAccount_success", "metadata[oncepay_payment]", "x").object(t), "id").(string)
	r.do(call{path: intentsPath + "/" + canceledID + "/cancel"}).want(t, 200, nil)
	if n := len(r.sim.Ledger().Charges); n != 0 {
		t.Fatalf("%d charges before anything settled", n)
	}
	r.clock.add(48*time.Hour - time.Second)
	r.get(intentsPath+"/"+ids["success"]).want(t, 200, map[string]any{"status": "processing"})
	mustNil(t, r.sim.AdvanceClock(time.Second))
	r.get(intentsPath+"/"+ids["success"]).want(t, 200, map[string]any{"status": "succeeded", "amount_received": 2000.0})
	r.get(intentsPath+"/"+ids["dispute"]).want(t, 200, map[string]any{"status": "succeeded"})
	r.get(intentsPath+"/"+ids["processing"]).want(t, 200, map[string]any{"status": "processing"})
	r.get(intentsPath+"/"+canceledID).want(t, 200, map[string]any{"status": "canceled"})
	for pm, code := range map[string]string{"insufficientFunds": "insufficient_funds", "accountClosed": "account_closed", "noAccount": "no_account", "debitNotAuthorized": "debit_not_authorized"} {
		r.get(intentsPath+"/"+ids[pm]).want(t, 200, map[string]any{"status": "requires_payment_method", "last_payment_error.code": code})
	}
	charges := r.sim.Ledger().Charges
	if len(charges) != 2 || charges[0].IdempotencyKey != "success" || !charges[0].Captured {
		t.Errorf("charges %+v", charges)
	}
	// The stored answer is that of the request, not of today.
	r.pay("success", "payment_method", "pm_usBankAccount_success", "metadata[oncepay_payment]", "success").want(t, 200, nil)
}

func TestUncapturedAuthorisationsLapse(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	id := at(r.pay("k", "capture_method", "manual").object(t), "id").(string)
	mustNil(t, r.sim.AdvanceClock(7*24*time.Hour))
	r.get(intentsPath+"/"+id).want(t, 200, map[string]any{"status": "canceled", "cancellation_reason": "automatic", "amount_capturable": 0.0, "canceled_at": 1_700_604_800.0})
	if !r.sim.Now().Equal(r.clock.now().Add(7 * 24 * time.Hour)) {
		t.Errorf("the simulator's clock says %v", r.sim.Now())
	}
	for _, body := range []string{`{"advance_s":-1}`, `{"advance_s":1e12}`, `{}`, `{"advance":1}`} {
		r.control("POST", "/_sim/clock", body).want(t, 400, nil)
	}
}

func TestMethodsThatDoNotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	bank := "pm_usBankAccount_success"
	r.pay("", "payment_method", bank, "capture_method", "manual").want(t, 400, nil)
	r.pay("", "payment_method", bank, "currency", "eur").want(t, 400, map[string]any{"error.param": "payment_method"})
	r.pay("", "payment_method", bank, "payment_method_types[]", "card").want(t, 400, map[string]any{"error.param": "payment_method"})
	r.pay("", "payment_method", "pm_card_visa", "payment_method_types[]", "us_bank_account").want(t, 400, map[string]any{"error.param": "payment_method"})
	r.do(call{path: intentsPath, form: form("amount", "500", "currency", "usd", "payment_method", "pm_1abc")}).want(t, 400, map[string]any{"error.code": "resource_missing"})
	if sum := r.sim.Summary(); sum.PaymentIntents != 0 {
		t.Errorf("summary %+v", sum)
	}
}

// A PaymentIntent that a request has locked does not hold up the others.
func TestSettlingPassesByLockedObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{DebitSettle: time.Hour})
	first := at(r.pay("a", "payment_method", "pm_usBankAccount_success").object(t), "id").(string)
	second := at(r.pay("b", "payment_method", "pm_usBankAccount_success").object(t), "id").(string)
	a := r.sim.book.lookupAccount(DefaultAccount)
	held, free := r.sim.book.lock(a, first)
	if !free {
		t.Fatal("the object is locked by nobody")
	}
	mustNil(t, r.sim.AdvanceClock(time.Hour))
	r.get(intentsPath+"/"+first).want(t, 200, map[string]any{"status": "processing"})
	r.get(intentsPath+"/"+second).want(t, 200, map[string]any{"status": "succeeded"})
	r.sim.book.unlock(held)
	r.get(intentsPath+"/"+first).want(t, 200, map[string]any{"status": "succeeded"})
}
