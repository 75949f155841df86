package payments

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

const goodPaymentID = "pay_af5f4f1841e88ebcae502028d51c062c"

func goodFollowUp(kind Kind) Intent {
	i := Intent{TenantID: "acme", IdempotencyKey: "again-1", Kind: kind, PaymentID: goodPaymentID}
	switch kind {
	case KindCapture:
		i.Amount = 9900
	case KindCancel:
		i.Reason = "abandoned"
	case KindRefund:
		i.Amount, i.Reason, i.Metadata = 500, "requested_by_customer", map[string]string{"ticket": "7"}
	}
	return i
}

var followUpKinds = []Kind{KindCapture, KindCancel, KindRefund}

// Recorded for ever, as those of charges.
func TestFollowUpFingerprintGoldenValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		intent Intent
		want   string
	}{
		"capture":    {goodFollowUp(KindCapture), "ec41e447f1f2b1ea560b9ce5ccccd59fa8fe3cdef7309bf968570fff94836795"},
		"cancel":     {goodFollowUp(KindCancel), "37bfd809bdae84cd2a5c510336867b534ed62d0d72c682209ce8f23364d933e0"},
		"refund":     {goodFollowUp(KindRefund), "1924d565a587d72ba29ab1a5d26b7379b9a7836e585d1c9abf3bd022fc2e5868"},
		"refund all": {Intent{Kind: KindRefund, PaymentID: goodPaymentID, All: true}, "84766ebab749a7a0d802324676f61556d0a9be3f971ecf2698b54e8a8a1787f5"},
	} {
		sum := Fingerprint(c.intent)
		if got := hex.EncodeToString(sum[:]); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestFollowUpFingerprintOfItsRow: what a follow-up is bound to when it is accepted is no part of what was asked for.
func TestFollowUpFingerprintOfItsRow(t *testing.T) {
	t.Parallel()
	for _, kind := range followUpKinds {
		for _, all := range []bool{false, true} {
			asked := goodFollowUp(kind)
			if asked.All = all; all {
				asked.Amount = 0
			}
			row := asked.Normalized()
			row.Currency, row.CaptureMethod, row.OffSession = "usd", CaptureAutomatic, true
			if row.All {
				row.Amount = 4200
			}
			if Fingerprint(asked) != Fingerprint(row) || len(Differs(asked, row)) != 0 {
				t.Errorf("%s, all %v: the row is another request: %v", kind, all, Differs(asked, row))
			}
		}
	}
}

func TestFollowUpsDiffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   Kind
		change func(*Intent)
		want   []string
	}{
		"payment":         {KindCapture, func(i *Intent) { i.PaymentID = "pay_1" }, []string{"payment_id"}},
		"amount":          {KindRefund, func(i *Intent) { i.Amount++ }, []string{"amount"}},
		"all":             {KindRefund, func(i *Intent) { i.All = true }, []string{"amount"}},
		"all of a cancel": {KindCancel, func(i *Intent) { i.All = true }, nil},
		"reason":          {KindRefund, func(i *Intent) { i.Reason = "" }, []string{"reason"}},
		"metadata":        {KindRefund, func(i *Intent) { i.Metadata = nil }, []string{"metadata"}},
		"kind":            {KindCapture, func(i *Intent) { i.Kind = KindRefund }, []string{"kind"}},
		"charge":          {KindCapture, func(i *Intent) { i.Kind, i.Currency, i.PaymentMethod = KindCharge, "usd", "pm_1" }, []string{"kind"}},
		"charge, more": {KindRefund, func(i *Intent) { *i = Intent{Kind: KindCharge, Amount: 1, Currency: "usd"} },
			[]string{"kind", "payment_id", "amount", "metadata", "reason"}},
	} {
		a, b := goodFollowUp(c.kind), goodFollowUp(c.kind)
		c.change(&b)
		for _, got := range [][]string{Differs(a, b), Differs(b, a)} {
			if !slices.Equal(got, c.want) || (Fingerprint(a) == Fingerprint(b)) != (len(c.want) == 0) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}

func TestGoodFollowUpsPass(t *testing.T) {
	t.Parallel()
	for name, i := range map[string]Intent{
		"capture": goodFollowUp(KindCapture), "cancel": goodFollowUp(KindCancel), "refund": goodFollowUp(KindRefund),
		"capture all":       {IdempotencyKey: "k", Kind: KindCapture, PaymentID: goodPaymentID, All: true},
		"cancel, no reason": {IdempotencyKey: "k", Kind: KindCancel, PaymentID: goodPaymentID},
		"refund all":        {IdempotencyKey: "k", Kind: KindRefund, PaymentID: goodPaymentID, All: true},
		"reserved key":      {IdempotencyKey: "b::0", Kind: KindRefund, PaymentID: goodPaymentID, All: true},
	} {
		if err := i.ValidateFollowUp(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if i.Validate() == nil {
			t.Errorf("%s passes as a charge", name)
		}
	}
	if err := goodIntent().ValidateFollowUp(); err == nil || err.Fields[0].Field != "kind" {
		t.Errorf("a charge: %v", err)
	}
}

func TestBadFollowUpsAreRefused(t *testing.T) {
	t.Parallel()
	const secret = "s3cretvalue"
	changes := map[string]func(*Intent){
		"idempotency_key":             func(i *Intent) { i.IdempotencyKey = secret + " " },
		"payment_id":                  func(i *Intent) { i.PaymentID = "pay_" + secret },
		"payment_id ":                 func(i *Intent) { i.PaymentID = "" },
		"payment_id  ":                func(i *Intent) { i.PaymentID = strings.Replace(goodPaymentID, "pay_", "ref_", 1) },
		"payment_id   ":               func(i *Intent) { i.PaymentID = "pay_" + strings.ToUpper(goodPaymentID[4:]) },
		"amount":                      func(i *Intent) { i.Amount, i.All = -5, false },
		"currency":                    func(i *Intent) { i.Currency = "usd" },
		"payment_method":              func(i *Intent) { i.PaymentMethod = secret },
		"customer":                    func(i *Intent) { i.Customer = secret },
		"description":                 func(i *Intent) { i.Description = secret },
		"statement_descriptor_suffix": func(i *Intent) { i.StatementDescriptorSuffix = secret },
		"receipt_email":               func(i *Intent) { i.ReceiptEmail = secret },
		"capture_method":              func(i *Intent) { i.CaptureMethod = CaptureManual },
		"off_session":                 func(i *Intent) { i.OffSession = true },
		"return_url":                  func(i *Intent) { i.ReturnURL = secret },
		"expires_at":                  func(i *Intent) { i.ExpiresAt = time.Unix(2e9, 0) },
		"reason":                      func(i *Intent) { i.Reason = secret },
		"metadata":                    func(i *Intent) { i.Metadata = map[string]string{"oncepay_" + secret: "a"} },
		"tenant_id":                   func(i *Intent) { i.TenantID = "\xff" },
	}
	for _, kind := range followUpKinds {
		for name, change := range changes {
			i := goodFollowUp(kind)
			change(&i)
			err := i.ValidateFollowUp()
			field := strings.TrimSpace(name)
			switch {
			case err == nil:
				t.Errorf("%s: a bad %s passes", kind, name)
			case len(err.Fields) != 1 || err.Fields[0].Field != field || err.Fields[0].Message == "":
				t.Errorf("%s: %v, want only %s", kind, err, field)
			case strings.Contains(err.Error(), secret):
				t.Errorf("%s: the message repeats the value: %v", kind, err)
			case (err.Reason == ReasonKeyInvalid) != (field == "idempotency_key"):
				t.Errorf("%s: %v has the reason %s", kind, field, err.Reason)
			}
		}
	}
	for name, i := range map[string]Intent{
		"reason":  {IdempotencyKey: "k", Kind: KindCapture, PaymentID: goodPaymentID, All: true, Reason: "duplicate"},
		"reason ": {IdempotencyKey: "k", Kind: KindRefund, PaymentID: goodPaymentID, All: true, Reason: "abandoned"},
		"amount":  {IdempotencyKey: "k", Kind: KindRefund, PaymentID: goodPaymentID},
		"amount ": {IdempotencyKey: "k", Kind: KindCancel, PaymentID: goodPaymentID, Amount: 1},
	} {
		if err := i.ValidateFollowUp(); err == nil || len(err.Fields) != 1 || err.Fields[0].Field != strings.TrimSpace(name) {
			t.Errorf("%s of a %s: %v", name, i.Kind, err)
		}
	}
	if err := (Intent{Kind: KindRefund, PaymentID: goodPaymentID, All: true}).ValidateFollowUp(); err == nil || err.Reason != ReasonKeyMissing {
		t.Errorf("no key: %v", err)
	}
}

func TestFollowUpNormalized(t *testing.T) {
	t.Parallel()
	got := Intent{Kind: KindCancel, All: true, Metadata: map[string]string{}}.Normalized()
	if got.All || got.CaptureMethod != "" || got.Metadata != nil {
		t.Errorf("%+v", got)
	}
	if !(Intent{Kind: KindRefund, All: true}).Normalized().All || (Intent{All: true}).Normalized().All {
		t.Error("all is of captures and refunds")
	}
}

func TestFollowUpCardField(t *testing.T) {
	t.Parallel()
	i := goodFollowUp(KindRefund)
	if field := i.CardField(); field != "" {
		t.Errorf("%s of a good refund looks like a card number", field)
	}
	i.Reason = "4242 4242 4242 4242"
	if field := i.CardField(); field != "reason" {
		t.Errorf("a card number in the reason: %q", field)
	}
	again := goodFollowUp(KindRefund)
	again.Metadata = maps.Clone(again.Metadata)
	again.Metadata["card"] = "4242424242424242"
	if field := again.CardField(); field != "metadata" {
		t.Errorf("a card number in the metadata: %q", field)
	}
}

func TestBatchesHaveChargesOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range followUpKinds {
		wrong := BatchRequest{TenantID: "acme", IdempotencyKey: "b", Payments: []Intent{{Kind: kind, PaymentID: goodPaymentID, All: true}}}.Validate()
		if wrong == nil || len(wrong.Fields) != 1 || wrong.Fields[0].Field != "payments[0].kind" {
			t.Errorf("%s: %v", kind, wrong)
		}
	}
}
