package stripe

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/form"
	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
)

// followUp is a follow-up of the test payment, with what it is bound to since it was accepted.
func followUp(kind payments.Kind, change ...func(*payments.Payment)) payments.Payment {
	p := payments.Payment{
		Intent: payments.Intent{
			TenantID: "acme", IdempotencyKey: "order-1/" + string(kind), Kind: kind, PaymentID: testPayment().ID.String(), Amount: 2500, Currency: "usd",
		},
		RequestVersion: RequestVersion, Status: payments.StatusReceived, StripeAccount: testAccount.ID, StripePaymentIntent: "pi_3Test",
	}
	if kind == payments.KindCancel {
		p.Amount = 0
	}
	for _, f := range change {
		f(&p)
	}
	p.ID = p.Intent.ID()
	return p
}

func why(reason string) func(*payments.Payment) {
	return func(p *payments.Payment) { p.Intent.Reason = reason }
}

// goldenFollowUps name the files in testdata/followups/v1. Cases are only ever added.
func goldenFollowUps() map[string]payments.Payment {
	return map[string]payments.Payment{
		"capture":       followUp(payments.KindCapture),
		"capture_large": followUp(payments.KindCapture, func(p *payments.Payment) { p.Amount, p.Currency = 9_223_372_036_854_775_807, "idr" }),
		"cancel":        followUp(payments.KindCancel),
		"cancel_reason": followUp(payments.KindCancel, why("requested_by_customer")),
		"cancel_left":   followUp(payments.KindCancel, why("abandoned")),
		"refund":        followUp(payments.KindRefund),
		"refund_reason": followUp(payments.KindRefund, why("duplicate")),
		"refund_everything": followUp(payments.KindRefund, why("fraudulent"), func(p *payments.Payment) {
			p.Metadata, p.StripePaymentIntent, p.TenantID, p.IdempotencyKey = manyMetadata(), "pi_3MtwBwLkdIwHu7ix28a3tqPa", "acme_2-b", strings.Repeat("k", 255)
		}),
	}
}

func TestGoldenFollowUpBodies(t *testing.T) {
	t.Parallel()
	cases := goldenFollowUps()
	dir := filepath.Join("testdata", "followups", "v1")
	for name, p := range cases {
		path := filepath.Join(dir, name+".form")
		body, err := FollowUpBody(testNamespace, p)
		if err != nil {
			t.Fatal(err)
		}
		golden, err := os.ReadFile(path)
		if os.IsNotExist(err) && *addGolden {
			golden = []byte(body)
			err = os.WriteFile(path, golden, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(golden) != body {
			t.Errorf("%s: the body of version 1 has changed:\n%s\nwas\n%s", name, body, golden)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := cases[strings.TrimSuffix(f.Name(), ".form")]; !ok {
			t.Errorf("%s has no case any more: cases are only ever added", f.Name())
		}
	}
}

// A body depends on what is stored of the request alone: not on attempts, times or the order of a map.
func TestFollowUpBodyIsPure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]payments.Kind{payments.KindCapture, payments.KindCancel, payments.KindRefund}).Draw(t, "kind")
		p := followUp(kind)
		if kind != payments.KindCancel {
			p.Amount = rapid.Int64Range(1, 1<<62).Draw(t, "amount")
		}
		if kind == payments.KindRefund {
			p.Metadata = rapid.MapOf(rapid.StringMatching(`[a-zA-Z0-9_.-]{1,40}`), rapid.String()).Draw(t, "metadata")
			maps.DeleteFunc(p.Metadata, func(name, _ string) bool { return strings.HasPrefix(name, metadataPrefix) })
		}
		first, err := FollowUpBody(testNamespace, p)
		if err != nil {
			t.Fatal(err)
		}
		other := p
		other.Metadata = map[string]string{}
		maps.Copy(other.Metadata, p.Metadata)
		other.All, other.Status, other.Reason, other.Tries, other.Rounds = true, payments.StatusUnknown, "looking_up", 7, 9
		other.InDoubt, other.FirstSubmitAt, other.UpdatedAt, other.AmountRefunded = true, time.Unix(1, 0), time.Unix(2, 0), 5
		if again, _ := FollowUpBody(testNamespace, other); again != first {
			t.Fatalf("two bodies of one follow-up:\n%s\n%s", first, again)
		}
		if kind != payments.KindRefund {
			return
		}
		sdk := &form.Values{}
		for pair := range strings.SplitSeq(first, "&") {
			f := decodedField(pair)
			sdk.Add(f.name, f.value)
		}
		if sdk := sdk.Encode(); sdk != first {
			t.Fatalf("the SDK encodes it otherwise:\n%s\n%s", sdk, first)
		}
	})
}

func TestNoBodyOfWhatIsNoFollowUp(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]payments.Payment{
		"charge":             testPayment(func(p *payments.Payment) { p.StripePaymentIntent = "pi_1" }),
		"batch":              followUp(payments.KindBatch),
		"version":            followUp(payments.KindRefund, func(p *payments.Payment) { p.RequestVersion = 2 }),
		"no version":         followUp(payments.KindCapture, func(p *payments.Payment) { p.RequestVersion = 0 }),
		"no PaymentIntent":   followUp(payments.KindCapture, func(p *payments.Payment) { p.StripePaymentIntent = "" }),
		"a path":             followUp(payments.KindRefund, func(p *payments.Payment) { p.StripePaymentIntent = "pi_1/cancel" }),
		"capture of nothing": followUp(payments.KindCapture, func(p *payments.Payment) { p.Amount = 0 }),
		"refund of nothing":  followUp(payments.KindRefund, func(p *payments.Payment) { p.Amount = 0 }),
		"refund of less":     followUp(payments.KindRefund, func(p *payments.Payment) { p.Amount = -1 }),
		"reason of a cancel": followUp(payments.KindCancel, why("boredom")),
		"reason of a refund": followUp(payments.KindRefund, why("abandoned")),
		"our own metadata":   followUp(payments.KindRefund, func(p *payments.Payment) { p.Metadata = map[string]string{"oncepay_payment": "ref_0"} }),
		"brackets":           followUp(payments.KindRefund, func(p *payments.Payment) { p.Metadata = map[string]string{"a[b]": "c"} }),
	} {
		if body, err := FollowUpBody(testNamespace, p); err == nil || body != "" {
			t.Errorf("%s makes %q", name, body)
		}
	}
}

// calls are the three POSTs, as the Gateway makes them.
func calls(g *Gateway) map[payments.Kind]func(payments.Submission) payments.Observation {
	return map[payments.Kind]func(payments.Submission) payments.Observation{
		payments.KindCapture: func(s payments.Submission) payments.Observation { return g.Capture(background(), s) },
		payments.KindCancel:  func(s payments.Submission) payments.Observation { return g.Cancel(background(), s) },
		payments.KindRefund:  func(s payments.Submission) payments.Observation { return g.Refund(background(), s) },
	}
}

// What is on the wire is the stored follow-up's, byte for byte, under its own key.
func TestFollowUpsOnTheWire(t *testing.T) {
	t.Parallel()
	paths := map[payments.Kind]string{
		payments.KindCapture: "/v1/payment_intents/pi_3Test/capture", payments.KindCancel: "/v1/payment_intents/pi_3Test/cancel", payments.KindRefund: "/v1/refunds",
	}
	s := newRawServer(t, raw(reply(500, "")))
	for kind, call := range calls(gatewayTo(t, options(s.url))) {
		for _, reason := range []string{"", "duplicate"} {
			p := followUp(kind)
			if kind != payments.KindCapture {
				p.Intent.Reason = reason
			}
			body, err := FollowUpBody(testNamespace, p)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			sub := submission(p)
			sub.MayLeave = func() error { asked++; return nil }
			want(t, call(sub), payments.ObservedUnclear)
			r := <-s.arrived
			if r.Method != "POST" || r.URL.Path != paths[kind] || r.URL.RawQuery != "" || r.body != body || r.Header.Get("Idempotency-Key") != sub.StripeKey ||
				r.Header.Get("Content-Length") != fmt.Sprint(len(body)) && r.ContentLength != int64(len(body)) || asked != 1 {
				t.Errorf("%s: sent %s %s %q with %v (%d bytes); asked %d times", kind, r.Method, r.URL, r.body, r.Header, r.ContentLength, asked)
			}
		}
	}
}

func TestFollowUpsThatMayNotLeave(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spoil func(*payments.Submission)
		kind  payments.ObservationKind
	}{
		"no account":     {func(s *payments.Submission) { s.Payment.StripeAccount = "" }, payments.ObservedHeldBack},
		"other account":  {func(s *payments.Submission) { s.Payment.StripeAccount = "acct_2" }, payments.ObservedForeignAccount},
		"other mode":     {func(s *payments.Submission) { s.Payment.Livemode = true }, payments.ObservedForeignAccount},
		"the charge key": {func(s *payments.Submission) { s.StripeKey = submission(testPayment()).StripeKey }, payments.ObservedHeldBack},
		"no key":         {func(s *payments.Submission) { s.StripeKey = "" }, payments.ObservedHeldBack},
		"another id":     {func(s *payments.Submission) { s.Payment.ID[0]++ }, payments.ObservedHeldBack},
		"no name":        {func(s *payments.Submission) { s.Payment.StripePaymentIntent = "" }, payments.ObservedHeldBack},
		"another path":   {func(s *payments.Submission) { s.Payment.StripePaymentIntent = "pi_1/confirm" }, payments.ObservedHeldBack},
		"kind":           {func(s *payments.Submission) { s.Payment.Kind = payments.KindBatch }, payments.ObservedHeldBack},
		"version":        {func(s *payments.Submission) { s.Payment.RequestVersion = 2 }, payments.ObservedHeldBack},
		"reason":         {func(s *payments.Submission) { s.Payment.Intent.Reason, s.Payment.Amount = "boredom", 0 }, payments.ObservedHeldBack},
		"no last check":  {func(s *payments.Submission) { s.MayLeave = nil }, payments.ObservedHeldBack},
		"the lease":      {func(s *payments.Submission) { s.MayLeave = func() error { return errors.New("over") } }, payments.ObservedHeldBack},
	}
	s := newRawServer(t, raw(""))
	g := gatewayTo(t, options(s.url))
	for kind, call := range calls(g) {
		for name, c := range cases {
			sub := submission(followUp(kind))
			c.spoil(&sub)
			if o := call(sub); o.Kind != c.kind || o.Detail == "" {
				t.Errorf("%s, %s: observed %s (%s), want %s", kind, name, o.Kind, o.Detail, c.kind)
			}
		}
	}
	// Nor does one kind leave as another, also under the key of that kind.
	for _, kind := range []payments.Kind{payments.KindCharge, payments.KindCancel, payments.KindRefund} {
		want(t, g.Capture(t.Context(), submission(followUp(kind))), payments.ObservedHeldBack)
	}
	for _, kind := range []payments.Kind{payments.KindCharge, payments.KindCancel, payments.KindCapture} {
		want(t, g.Refund(t.Context(), submission(followUp(kind))), payments.ObservedHeldBack)
		want(t, g.Submit(t.Context(), submission(followUp(payments.KindRefund))), payments.ObservedHeldBack)
	}
	want(t, g.Capture(canceled(), submission(followUp(payments.KindCapture))), payments.ObservedNotSent)
	want(t, g.Refund(canceled(), submission(followUp(payments.KindRefund))), payments.ObservedNotSent)
	if s.bytes.Load() != 0 {
		t.Error("bytes left")
	}
}

// chargeJSON is the PaymentIntent of the charge that the follow-ups are about.
func chargeJSON(status string, received int64) string {
	p := testPayment()
	return strings.Replace(intentJSON(p, status), fmt.Sprintf(`"amount_received":%d`, p.Amount), fmt.Sprintf(`"amount_received":%d`, received), 1)
}

func TestCaptureTable(t *testing.T) {
	t.Parallel()
	p := followUp(payments.KindCapture)
	const inv, state = "invalid_request_error", "payment_intent_unexpected_state"
	about := func(errType, code, pi string) string { return errorJSON(errType, code, `,"payment_intent":`+pi) }
	taken, heldPI := chargeJSON("succeeded", 2500), chargeJSON("requires_capture", 0)
	cases := map[string]struct {
		status int
		body   string
		kind   payments.ObservationKind
		stands payments.StripeStatus // "" : no object
	}{
		"captured":                 {200, taken, payments.ObservedAnswer, payments.StripeSucceeded},
		"answered, and still held": {200, heldPI, payments.ObservedAnswer, payments.StripeRequiresCapture},
		"metadata of another":      {200, strings.Replace(taken, testPayment().ID.String(), "pay_0", 1), payments.ObservedAnswer, payments.StripeSucceeded},
		"about another":            {200, withID(taken, "pi_3Other"), payments.ObservedUnclear, ""},
		"empty":                    {200, "", payments.ObservedUnclear, ""},
		"garbage":                  {200, "<<", payments.ObservedUnclear, ""},
		"a refund":                 {200, refundJSON(followUp(payments.KindRefund), "succeeded"), payments.ObservedUnclear, ""},
		"captured before":          {400, about(inv, state, taken), payments.ObservedInvalid, ""},
		"canceled":                 {400, about(inv, state, chargeJSON("canceled", 0)), payments.ObservedInvalid, ""},
		"refused about another":    {400, about(inv, state, withID(taken, "pi_3Other")), payments.ObservedUnclear, ""},
		"refused about garbage":    {400, about(inv, state, `{"id":"pi_3Test"}`), payments.ObservedUnclear, ""},
		"too much":                 {400, errorJSON(inv, "amount_too_large", ""), payments.ObservedInvalid, ""},
		"unknown there":            {404, errorJSON(inv, "resource_missing", ""), payments.ObservedInvalid, ""},
		"declined":                 {402, about("card_error", "card_declined", chargeJSON("requires_payment_method", 0)), payments.ObservedDecline, payments.StripeRequiresPaymentMethod},
		"declined, still held":     {402, about("card_error", "card_declined", heldPI), payments.ObservedDecline, payments.StripeRequiresCapture},
		"declined, and taken":      {402, about("card_error", "card_declined", taken), payments.ObservedUnclear, ""},
		"declined by no word":      {402, errorJSON("card_error", "capture_charge_authorization_expired", ""), payments.ObservedDecline, ""},
		"other parameters":         {400, errorJSON("idempotency_error", "", ""), payments.ObservedKeyConflict, ""},
		"in use":                   {409, errorJSON(inv, "idempotency_key_in_use", ""), payments.ObservedInUse, ""},
		"lock":                     {429, errorJSON(inv, "lock_timeout", ""), payments.ObservedLocked, ""},
		"rate":                     {429, errorJSON(inv, "rate_limit", ""), payments.ObservedRateLimited, ""},
		"key":                      {401, errorJSON(inv, "", ""), payments.ObservedUnauthorized, ""},
		"permission":               {403, errorJSON(inv, "", ""), payments.ObservedUnauthorized, ""},
		"404 that is no answer":    {404, "<html>", payments.ObservedUnclear, ""},
		"500 about it":             {500, about("api_error", "", heldPI), payments.ObservedUnclear, ""},
		"503":                      {503, errorJSON("api_error", "", ""), payments.ObservedUnclear, ""},
		"redirect":                 {302, "", payments.ObservedUnclear, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRawServer(t, raw(reply(c.status, c.body, "Request-Id: req_1")))
			o := gatewayTo(t, options(s.url)).Capture(t.Context(), submission(p))
			noSecrets(t, o)
			want(t, o, c.kind)
			if s.posts.Load() != 1 || o.HTTPStatus != c.status || o.RequestID != "req_1" || o.Detail == "" || o.Replayed {
				t.Errorf("after %d requests: %+v", s.posts.Load(), o)
			}
			if (o.Object != nil) != (c.stands != "") || o.Object != nil && o.Object.Status != c.stands {
				t.Errorf("the object is %+v, want it %q", o.Object, c.stands)
			}
			if (o.Failure != nil) != (c.kind != payments.ObservedAnswer && c.kind != payments.ObservedUnclear) {
				t.Errorf("the failure is %+v", o.Failure)
			}
		})
	}
}

// A cancel that somebody asked for is observed as that of a declined charge, and takes its charge's PaymentIntent for what it is.
func TestFollowUpCancelTable(t *testing.T) {
	t.Parallel()
	p := followUp(payments.KindCancel, why("requested_by_customer"))
	for name, c := range map[string]struct {
		status int
		body   string
		kind   payments.ObservationKind
		stands payments.StripeStatus
	}{
		"canceled":          {200, chargeJSON("canceled", 0), payments.ObservedObject, payments.StripeCanceled},
		"by another's word": {200, strings.Replace(chargeJSON("canceled", 0), testPayment().ID.String(), "pay_0", 1), payments.ObservedObject, payments.StripeCanceled},
		"captured":          {400, errorJSON("invalid_request_error", "payment_intent_unexpected_state", `,"payment_intent":`+chargeJSON("succeeded", 9900)), payments.ObservedObject, payments.StripeSucceeded},
		"another":           {200, withID(chargeJSON("canceled", 0), "pi_3Other"), payments.ObservedUnclear, ""},
		"unknown there":     {404, errorJSON("invalid_request_error", "resource_missing", ""), payments.ObservedObject, ""},
		"500":               {500, errorJSON("api_error", "", ""), payments.ObservedUnclear, ""},
	} {
		s := newRawServer(t, raw(reply(c.status, c.body)))
		o := gatewayTo(t, options(s.url)).Cancel(t.Context(), submission(p))
		noSecrets(t, o)
		if o.Kind != c.kind || (o.Object != nil) != (c.stands != "") || o.Object != nil && o.Object.Status != c.stands {
			t.Errorf("%s: observed %s (%s), %+v", name, o.Kind, o.Detail, o.Object)
		}
	}
}
