package schema

import (
	"errors"
	"strings"
	"testing"
)

func TestSubjects(t *testing.T) {
	t.Parallel()
	var s Subjects
	for _, c := range []struct {
		make func(string) (string, error)
		want string
		kind SubjectKind
	}{
		{s.Intent, "payments.intent.acme", SubjectIntent},
		{s.Bulk, "payments.bulk.acme", SubjectBulk},
		{s.Batch, "payments.batch.acme", SubjectBatch},
		{s.Dead, "payments.dead.acme", SubjectDead},
		{func(tenant string) (string, error) { return s.Event(tenant, "oncepay.payment.dead_lettered") }, "payments.event.acme.payment-dead_lettered", SubjectEvent},
	} {
		got, err := c.make("acme")
		if err != nil || got != c.want {
			t.Errorf("got %q, %v, want %q", got, err, c.want)
		}
		kind, tenant, err := s.ParseSubject(got)
		if err != nil || kind != c.kind || tenant != "acme" {
			t.Errorf("%q: parsed as %q, %q, %v", got, kind, tenant, err)
		}
		for _, bad := range badTenants {
			if got, err := c.make(bad); !errors.Is(err, ErrSubject) || got != "" {
				t.Errorf("tenant %.20q: got %q, %v", bad, got, err)
			}
		}
	}
}

var badTenants = []string{
	"", "*", ">", "a.b", "a.*", "Acme", "a b", "-a", "_a", "a\x00", "a\n", "é", "a>", strings.Repeat("a", 64), "$SYS",
}

func TestUnknownTenantIsForDeadLettersOnly(t *testing.T) {
	t.Parallel()
	var s Subjects
	subject, err := s.Dead(UnknownTenant)
	if err != nil || subject != "payments.dead._unknown" {
		t.Errorf("got %q, %v", subject, err)
	}
	if kind, tenant, err := s.ParseSubject(subject); err != nil || kind != SubjectDead || tenant != UnknownTenant {
		t.Errorf("got %q, %q, %v", kind, tenant, err)
	}
	if _, err := s.Intent(UnknownTenant); err == nil {
		t.Error("an intent may not be published for the unknown tenant")
	}
	if _, _, err := s.ParseSubject("payments.intent._unknown"); err == nil {
		t.Error("an intent of the unknown tenant must be refused")
	}
	if ValidTenant(UnknownTenant) {
		t.Error("a tenant may be called as the unknown one")
	}
}

func TestParseSubjectRefuses(t *testing.T) {
	t.Parallel()
	var s Subjects
	subjects := []string{
		"", "payments", "payments.", "payments.intent", "payments.intent.", "payments.intent.a.b", "payments.intent.acme.",
		"payments..acme", ".payments.intent.acme", "payments.other.acme", "payments.Intent.acme", "xpayments.intent.acme",
		"paymentsx.intent.acme", "payments.event.acme", "payments.event.acme.", "payments.event.acme.a.b",
		"payments.event.acme.*", "payments.event..payment-failed", "payments.>", "payments.*.acme", "orders.intent.acme",
	}
	for _, bad := range badTenants {
		subjects = append(subjects, "payments.intent."+bad, "payments.bulk."+bad, "payments.batch."+bad, "payments.dead."+bad, "payments.event."+bad+".payment-failed")
	}
	for _, subject := range subjects {
		kind, tenant, err := s.ParseSubject(subject)
		if !errors.Is(err, ErrSubject) || kind != "" || tenant != "" {
			t.Errorf("%.40q: got %q, %q, %v", subject, kind, tenant, err)
		}
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	s, err := NewSubjects("eu.pay-1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Intent("acme"); err != nil || got != "eu.pay-1.intent.acme" {
		t.Errorf("got %q, %v", got, err)
	}
	if kind, tenant, err := s.ParseSubject("eu.pay-1.bulk.acme"); err != nil || kind != SubjectBulk || tenant != "acme" {
		t.Errorf("got %q, %q, %v", kind, tenant, err)
	}
	if got := s.StreamIntents(); got != "EU_PAY-1_INTENTS" {
		t.Errorf("stream %q", got)
	}
	for _, bad := range []string{".", "a.", ".a", "a..b", "*", "a.>", "A", "a b", "$JS", "_inbox", "a_b", "a/b", strings.Repeat("a", 65)} {
		if _, err := NewSubjects(bad); !errors.Is(err, ErrSubject) {
			t.Errorf("prefix %.20q: %v", bad, err)
		}
	}
}

func FuzzParseSubject(f *testing.F) {
	for _, seed := range []string{"payments.intent.acme", "payments.event.acme.payment-failed", "payments.dead._unknown", "payments.intent.*", "payments.bulk.a.b", ""} {
		f.Add("payments", seed)
		f.Add("eu.pay", "eu.pay."+strings.TrimPrefix(seed, "payments."))
	}
	f.Fuzz(func(t *testing.T, prefix, subject string) {
		s, err := NewSubjects(prefix)
		if err != nil {
			return
		}
		kind, tenant, err := s.ParseSubject(subject)
		if err != nil {
			if kind != "" || tenant != "" {
				t.Fatalf("refused, and yet %q, %q", kind, tenant)
			}
			return
		}
		if strings.ContainsAny(subject, "*> \t\r\n\x00") {
			t.Fatalf("%q was accepted", subject)
		}
		if kind == SubjectEvent {
			if !strings.HasPrefix(subject, s.prefix()+".event."+tenant+".") {
				t.Fatalf("%q was read as tenant %q", subject, tenant)
			}
			return
		}
		again := map[SubjectKind]func(string) (string, error){
			SubjectIntent: s.Intent, SubjectBulk: s.Bulk, SubjectBatch: s.Batch, SubjectDead: s.Dead,
		}[kind]
		if made, err := again(tenant); err != nil || made != subject {
			t.Fatalf("%q was read as %q of %q, which makes %q, %v", subject, kind, tenant, made, err)
		}
	})
}
