package payments_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
)

func child(amount int64) payments.Intent {
	return payments.Intent{Amount: amount, Currency: "usd", Customer: "cus_1", PaymentMethod: "pm_1", OffSession: true}
}

func batchOf(amounts ...int64) payments.BatchRequest {
	r := payments.BatchRequest{TenantID: "acme", IdempotencyKey: "run-7", Parent: "run"}
	for _, a := range amounts {
		r.Payments = append(r.Payments, child(a))
	}
	return r
}

func TestBatchChildren(t *testing.T) {
	t.Parallel()
	for i, c := range batchOf(100, 200, 300).Children() {
		if c.IdempotencyKey != "run-7::"+string(rune('0'+i)) || c.TenantID != "acme" || c.Kind != payments.KindCharge || c.Amount != int64(100*(i+1)) {
			t.Errorf("child %d is %+v", i, c)
		}
	}
}

// TestBatchFingerprintGolden holds the stored fingerprints: they are compared for ever.
func TestBatchFingerprintGolden(t *testing.T) {
	t.Parallel()
	sum := batchOf(100, 200).Fingerprint()
	if got, want := hex.EncodeToString(sum[:]), "900040bb1ac396953f41c333ed1a6cf1804a8a448da0a99d4b9a11ff529d757a"; got != want {
		t.Errorf("the fingerprint is %s, want %s", got, want)
	}
}

// TestBatchChanged: whatever is changed in a batch is another batch, and the difference is named; what only looks different is the same.
func TestBatchChanged(t *testing.T) {
	t.Parallel()
	stored := batchOf(100, 200, 300)
	for name, c := range map[string]struct {
		change func(*payments.BatchRequest)
		want   []string
	}{
		"nothing":       {func(*payments.BatchRequest) {}, nil},
		"currency case": {func(r *payments.BatchRequest) { r.Payments[1].Currency = "USD" }, nil},
		"defaults": {func(r *payments.BatchRequest) {
			r.Payments[1].Kind, r.Payments[0].CaptureMethod = payments.KindCharge, payments.CaptureAutomatic
		}, nil},
		"expires_at":       {func(r *payments.BatchRequest) { r.Payments[1].ExpiresAt = time.Unix(2e9, 0) }, nil},
		"amount":           {func(r *payments.BatchRequest) { r.Payments[1].Amount = 201 }, []string{"payments[1].amount"}},
		"order":            {func(r *payments.BatchRequest) { r.Payments[0], r.Payments[2] = r.Payments[2], r.Payments[0] }, []string{"payments[0].amount", "payments[2].amount"}},
		"only what failed": {func(r *payments.BatchRequest) { r.Payments = r.Payments[1:2] }, []string{"payments", "payments[0].amount"}},
		"one more":         {func(r *payments.BatchRequest) { r.Payments = append(r.Payments, child(400)) }, []string{"payments"}},
		"parent":           {func(r *payments.BatchRequest) { r.Parent = "" }, []string{"parent"}},
		"metadata":         {func(r *payments.BatchRequest) { r.Payments[2].Metadata = map[string]string{"a": "b"} }, []string{"payments[2].metadata"}},
		"off_session":      {func(r *payments.BatchRequest) { r.Payments[2].OffSession = false }, []string{"payments[2].off_session"}},
	} {
		sent := batchOf(100, 200, 300)
		c.change(&sent)
		if got := sent.Differs(stored.Parent, stored.Children()); !slices.Equal(got, c.want) {
			t.Errorf("%s: differs in %q, want %q", name, got, c.want)
		}
		if same := sent.Fingerprint() == stored.Fingerprint(); same != (c.want == nil) {
			t.Errorf("%s: the fingerprints are the same: %v", name, same)
		}
	}
}

// TestBatchDiffersIffFingerprint: two batches have the same fingerprint exactly when nothing can be named that differs.
func TestBatchDiffersIffFingerprint(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) payments.BatchRequest {
		r := payments.BatchRequest{TenantID: "acme", IdempotencyKey: "k", Parent: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "parent")}
		for range rapid.IntRange(1, 3).Draw(t, "payments") {
			p := child(rapid.Int64Range(1, 2).Draw(t, "amount"))
			p.Customer = rapid.SampledFrom([]string{"", "cus_1", "cus_2"}).Draw(t, "customer")
			r.Payments = append(r.Payments, p)
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if same, named := a.Fingerprint() == b.Fingerprint(), a.Differs(b.Parent, b.Children()); same != (len(named) == 0) {
			t.Fatalf("same fingerprint: %v, differs in %q", same, named)
		}
	})
}

func TestBatchDiffersIsBounded(t *testing.T) {
	t.Parallel()
	a, b := batchOf(), batchOf()
	for range payments.BatchSizeMax {
		a.Payments, b.Payments = append(a.Payments, child(100)), append(b.Payments, child(200))
	}
	if n := len(a.Differs(b.Parent, b.Children())); n != 50 {
		t.Errorf("%d differences are named", n)
	}
}

func TestBatchValidate(t *testing.T) {
	t.Parallel()
	hundred := func(r *payments.BatchRequest, n int) {
		r.Payments = slices.Repeat([]payments.Intent{child(100)}, n)
	}
	for name, c := range map[string]struct {
		change func(*payments.BatchRequest)
		reason payments.Reason
		fields []string
	}{
		"good":            {func(*payments.BatchRequest) {}, "", nil},
		"one":             {func(r *payments.BatchRequest) { hundred(r, 1) }, "", nil},
		"hundred":         {func(r *payments.BatchRequest) { hundred(r, 100) }, "", nil},
		"longest key":     {func(r *payments.BatchRequest) { r.IdempotencyKey = strings.Repeat("k", 240) }, "", nil},
		"none":            {func(r *payments.BatchRequest) { r.Payments = nil }, payments.ReasonInvalid, []string{"payments"}},
		"a hundred and 1": {func(r *payments.BatchRequest) { hundred(r, 101) }, payments.ReasonInvalid, []string{"payments"}},
		"key too long":    {func(r *payments.BatchRequest) { r.IdempotencyKey = strings.Repeat("k", 241) }, payments.ReasonKeyInvalid, []string{"idempotency_key"}},
		"reserved key":    {func(r *payments.BatchRequest) { r.IdempotencyKey = "a::1" }, payments.ReasonKeyInvalid, []string{"idempotency_key"}},
		"no key":          {func(r *payments.BatchRequest) { r.IdempotencyKey = "" }, payments.ReasonKeyMissing, []string{"idempotency_key"}},
		"parent":          {func(r *payments.BatchRequest) { r.Parent = "a b" }, payments.ReasonInvalid, []string{"parent"}},
		"empty parent":    {func(r *payments.BatchRequest) { r.Parent, r.ParentEmpty = "", true }, payments.ReasonInvalid, []string{"parent"}},
		"long parent":     {func(r *payments.BatchRequest) { r.Parent = strings.Repeat("p", 256) }, payments.ReasonInvalid, []string{"parent"}},
		"payments": {func(r *payments.BatchRequest) { r.Payments[0].Amount, r.Payments[2].Currency = 0, "xxx" }, payments.ReasonInvalid,
			[]string{"payments[0].amount", "payments[2].currency"}},
	} {
		r := batchOf(100, 200, 300)
		c.change(&r)
		got := r.Validate()
		if got == nil {
			if c.fields != nil {
				t.Errorf("%s: is accepted", name)
			}
			continue
		}
		var fields []string
		for _, f := range got.Fields {
			fields = append(fields, f.Field)
		}
		if got.Reason != c.reason || !slices.Equal(fields, c.fields) {
			t.Errorf("%s: %s %q, want %s %q", name, got.Reason, fields, c.reason, c.fields)
		}
	}
}

func TestBatchCardField(t *testing.T) {
	t.Parallel()
	const card = "4242424242424242"
	for want, change := range map[string]func(*payments.BatchRequest){
		"":                        func(*payments.BatchRequest) {},
		"idempotency_key":         func(r *payments.BatchRequest) { r.IdempotencyKey = card },
		"parent":                  func(r *payments.BatchRequest) { r.Parent = card },
		"payments[1].description": func(r *payments.BatchRequest) { r.Payments[1].Description = card },
	} {
		r := batchOf(100, 200)
		change(&r)
		if got := r.CardField(); got != want {
			t.Errorf("the card is found in %q, want %q", got, want)
		}
	}
}

func TestBatchComplete(t *testing.T) {
	t.Parallel()
	total := func(s payments.Status, n int) payments.StatusTotal {
		return payments.StatusTotal{Status: s, Currency: "usd", Count: n, Amount: int64(n)}
	}
	for _, c := range []struct {
		totals []payments.StatusTotal
		want   bool
	}{
		{nil, false},
		{[]payments.StatusTotal{total(payments.StatusSucceeded, 3)}, true},
		{[]payments.StatusTotal{total(payments.StatusSucceeded, 2)}, false}, // a child that does not exist yet is not done
		{[]payments.StatusTotal{total(payments.StatusSucceeded, 1), total(payments.StatusFailed, 2)}, true},
		{[]payments.StatusTotal{total(payments.StatusSucceeded, 2), total(payments.StatusUnknown, 1)}, false},
		{[]payments.StatusTotal{total(payments.StatusSucceeded, 2), total(payments.StatusProcessing, 1)}, false},
		{[]payments.StatusTotal{total(payments.StatusSucceeded, 2), total(payments.StatusStalled, 1)}, false},
	} {
		s := payments.BatchState{Batch: payments.Batch{Count: 3}, Totals: c.totals}
		if s.Complete() != c.want {
			t.Errorf("%v: complete is %v", c.totals, s.Complete())
		}
	}
}

func TestAPIKey(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	k := payments.APIKey{Scopes: []payments.Scope{payments.ScopePaymentsRead}}
	if !k.Allows(payments.ScopePaymentsRead) || k.Allows(payments.ScopePaymentsWrite) || !k.Good(now) {
		t.Error("a key allows what it lists, and nothing else")
	}
	if k.ExpiresAt = now; k.Good(now) || !k.Good(now.Add(-1)) {
		t.Error("a key is good until its time, exclusively")
	}
	k.ExpiresAt, k.RevokedAt = time.Time{}, now
	if k.Good(now) {
		t.Error("a revoked key is not good")
	}
}
