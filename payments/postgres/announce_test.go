package postgres

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

func announced(key string, lane payments.Lane) payments.AdmitRequest {
	return payments.AdmitRequest{Intent: intent("acme", key, 100), Lane: lane, Announce: true}
}

func (b *bench) pendingIntents(lane payments.Lane) []payments.OutboxItem {
	b.t.Helper()
	items, err := b.Intents(lane).Pending(context.Background(), 1000, time.Minute)
	if err != nil {
		b.t.Fatalf("Pending: %v", err)
	}
	return items
}

// TestAnnounce: only a row that the request inserted is announced, once, on its lane; the message is handed on after the commit and comes back, byte for
// byte, until it is sent.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	b.claim("claimed")
	b.admit(announced("claimed", payments.LaneInteractive))
	for range 2 {
		b.admit(announced("i", payments.LaneInteractive))
		b.admit(announced("b", payments.LaneBulk))
	}
	refused := announced("refused", payments.LaneInteractive)
	refused.Refused = &payments.ValidationError{Reason: payments.ReasonInvalid}
	b.admit(refused)
	absent := announced("absent", payments.LaneBulk)
	absent.ExistingOnly = true
	b.admit(absent)
	stranger := announced("i", payments.LaneInteractive)
	stranger.Intent.TenantID = "nobody"
	b.admit(stranger)
	sent := b.sent.all()
	if len(sent) != 2 || sent[0].Lane != payments.LaneInteractive || sent[1].Lane != payments.LaneBulk {
		t.Fatalf("%+v", sent)
	}
	if n, err := b.Unpublished(ctx); n != 2 || err != nil {
		t.Errorf("%d unpublished, %v", n, err)
	}
	if n, err := b.OutboxDepth(ctx); n != 0 || err != nil {
		t.Errorf("%d events, %v", n, err)
	}
	if early := b.pendingIntents(payments.LaneInteractive); len(early) != 0 {
		t.Errorf("not held back: %+v", early)
	}
	b.clock.Advance(b.opts.Hold)
	for _, want := range sent {
		got := b.pendingIntents(want.Lane)
		if len(got) != 1 || got[0].ID != want.ID || got[0].Kind != payments.OutboxIntent || got[0].Lane != want.Lane || got[0].TenantID != "acme" || !bytes.Equal(got[0].Body, want.Body) {
			t.Errorf("%+v\n%+v", got, want)
		}
		if again := b.pendingIntents(want.Lane); len(again) != 0 {
			t.Errorf("given out twice: %+v", again)
		}
		for range 2 {
			if err := b.Intents(want.Lane).Sent(ctx, []int64{want.ID}); err != nil {
				t.Error(err)
			}
		}
	}
	if n, err := b.Unpublished(ctx); n != 0 || err != nil {
		t.Errorf("%d unpublished, %v", n, err)
	}
}

// TestAnnounceEqualKeysInOneFlush: of equal keys in one flush the one that inserts says whether the row is announced.
func TestAnnounceEqualKeysInOneFlush(t *testing.T) {
	t.Parallel()
	b := open(t)
	quiet := announced("k", payments.LaneInteractive)
	quiet.Announce = false
	b.flush(quiet, announced("k", payments.LaneInteractive), announced("l", payments.LaneInteractive), announced("l", payments.LaneInteractive))
	if sent := b.sent.all(); len(sent) != 1 || !bytes.Contains(sent[0].Body, []byte(`"l"`)) {
		t.Errorf("%+v", sent)
	}
}

// TestAnnounceRace: relays share the messages.
func TestAnnounceRace(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *Options) { o.Committed = nil })
	var wg sync.WaitGroup
	for n := range 60 {
		wg.Go(func() { b.admit(announced(strconv.Itoa(n), payments.LaneInteractive)) })
	}
	wg.Wait()
	var mu sync.Mutex
	seen := map[int64]int{}
	for range 4 {
		wg.Go(func() {
			for range 20 {
				items, err := b.Intents(payments.LaneInteractive).Pending(context.Background(), 4, time.Minute)
				if err != nil {
					t.Errorf("Pending: %v", err)
				}
				mu.Lock()
				for _, it := range items {
					seen[it.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%d was given out %d times", id, n)
		}
	}
	if len(seen) != 60 {
		t.Errorf("%d of 60", len(seen))
	}
}

// TestAnnouncedCommitAnswerLost: whether or not the commit whose answer was lost came about, the row is announced once.
func TestAnnouncedCommitAnswerLost(t *testing.T) {
	t.Parallel()
	for name, action := range actions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			c.at("commit", action)
			a, err := c.far.Admit(context.Background(), announced("k", payments.LaneInteractive))
			if err != nil || c.cuts.Load() != 1 {
				t.Fatalf("%+v, %v", a, err)
			}
			c.clock.Advance(c.opts.Hold)
			if items := c.pendingIntents(payments.LaneInteractive); len(items) != 1 || c.rows("payments") != 1 || len(c.sent.all()) > 1 {
				t.Errorf("%d pending, %d handed on", len(items), len(c.sent.all()))
			}
		})
	}
}

// TestNoStatementWithoutAnnounce: whoever announces nothing is sent no statement more.
func TestNoStatementWithoutAnnounce(t *testing.T) {
	t.Parallel()
	c := openCut(t)
	c.at(query(acceptNew), devstacktest.Cut)
	for n := range 3 {
		r := announced(strconv.Itoa(n), payments.LaneInteractive)
		r.Announce = false
		if _, err := c.far.Admit(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.cuts.Load(); n != 0 {
		t.Errorf("it was sent %d times", n)
	}
	if _, err := c.far.Admit(context.Background(), announced("loud", payments.LaneInteractive)); err != nil || c.cuts.Load() != 1 {
		t.Errorf("the statement was not seen: %v", err)
	}
}

// anyText is text of up to n characters that JSON escapes, or not.
func anyText(rt *rapid.T, name string, n int) string {
	text := rapid.StringOfN(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\"\\/<>&\u2028\u007f\t\n\u0001é🎁"))), 0, n, -1).Draw(rt, name)
	return strings.ReplaceAll(text, "\x00", "")
}

// anyIntent is a valid intent.
func anyIntent(rt *rapid.T) payments.Intent {
	word := func(name, prefix string) string {
		return prefix + rapid.StringMatching(`[!-~]{0,40}`).Draw(rt, name)
	}
	maybe := func(name, text string) string {
		if rapid.Bool().Draw(rt, "with "+name) {
			return text
		}
		return ""
	}
	i := payments.Intent{
		TenantID: "acme", IdempotencyKey: word("key", "k"), Kind: rapid.SampledFrom([]payments.Kind{"", payments.KindCharge}).Draw(rt, "kind"),
		Amount: rapid.Int64Range(100, 99_999_999).Draw(rt, "amount"), Currency: rapid.SampledFrom([]string{"usd", "USD", "eur", "Gbp"}).Draw(rt, "currency"),
		PaymentMethod: word("method", "pm_"), Customer: maybe("customer", word("customer", "cus_")), Description: anyText(rt, "description", 300),
		StatementDescriptorSuffix: maybe("suffix", "SHIRT é"), ReceiptEmail: maybe("email", "jo+ß@example.com"),
		CaptureMethod: rapid.SampledFrom([]payments.CaptureMethod{"", payments.CaptureAutomatic, payments.CaptureManual}).Draw(rt, "capture"),
		OffSession:    rapid.Bool().Draw(rt, "off_session"), ReturnURL: maybe("url", "https://shop.example/a?b[]=<c>&d=é#f"),
	}
	for range rapid.IntRange(0, 4).Draw(rt, "entries") {
		if i.Metadata == nil {
			i.Metadata = map[string]string{}
		}
		name := strings.Map(func(r rune) rune {
			if r == '[' || r == ']' {
				return -1
			}
			return r
		}, anyText(rt, "name", 30))
		i.Metadata["m"+name] = anyText(rt, "value", 60)
	}
	if rapid.Bool().Draw(rt, "expires") {
		i.ExpiresAt = time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(rt, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(rt, "nanoseconds"))
	}
	return i
}

// TestAnnouncementAsksForTheSame: what is published of any valid intent has the fingerprint of its row, from the hook and from the table.
func TestAnnouncementAsksForTheSame(t *testing.T) {
	t.Parallel()
	b := open(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		i := anyIntent(rt)
		if wrong := i.Validate(); wrong != nil {
			rt.Fatalf("not valid: %v", wrong)
		}
		i.IdempotencyKey = strconv.Itoa(run) + i.IdempotencyKey
		b.admit(payments.AdmitRequest{Intent: i, Lane: payments.LaneInteractive, Announce: true})
		sent := b.sent.all()
		b.clock.Advance(b.opts.Hold)
		pending := b.pendingIntents(payments.LaneInteractive)
		if len(pending) != 1 {
			rt.Fatalf("%d pending", len(pending))
		}
		if err := b.Intents(payments.LaneInteractive).Sent(context.Background(), []int64{pending[0].ID}); err != nil {
			rt.Fatal(err)
		}
		var stored []byte
		id := i.ID()
		if err := b.pool.QueryRow(context.Background(), "SELECT fingerprint FROM payments WHERE tenant_id = 'acme' AND id = $1", id[:]).Scan(&stored); err != nil {
			rt.Fatal(err)
		}
		for _, body := range [][]byte{sent[len(sent)-1].Body, pending[0].Body} {
			wire, err := schema.DecodeIntent(body)
			if err != nil {
				rt.Fatalf("%v\n%s", err, body)
			}
			got := document.ReadIntent(wire, "acme", wire.IdempotencyKey.Value)
			print := payments.Fingerprint(got)
			if !bytes.Equal(print[:], stored) || got.IdempotencyKey != i.IdempotencyKey || !micro(got.ExpiresAt).Equal(micro(i.ExpiresAt)) {
				rt.Fatalf("%s\nasks for something else than %+v", body, i)
			}
		}
	})
}

// TestUnpublishedStaysCheap: 100,000 unpublished rows are counted by reading their index, whatever else the database holds.
func TestUnpublishedStaysCheap(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	one := b.another(Options{Clock: b.clock, PoolSize: 1})
	// By the session that counts pages, which tells what it has read before it begins: others tell when they see fit.
	if _, err := one.pool.Exec(ctx, `INSERT INTO outbox_intents (lane, tenant_id, payment_id)
		SELECT 1 + i % 2, 'acme', substr(sha256(i::text::bytea), 1, 16) FROM generate_series(1, 100000) i`); err != nil {
		t.Fatal(err)
	}
	before, start := b.pages(one), time.Now()
	n, err := one.Unpublished(ctx)
	took, pages := time.Since(start), b.pages(one)-before
	if n != 100_000 || err != nil || pages > 10_000 {
		t.Errorf("%d, %v, %d pages", n, err, pages)
	}
	t.Logf("%d rows: %s, %d pages", n, took, pages)
	items, err := one.Intents(payments.LaneBulk).Pending(ctx, 10, time.Minute)
	if len(items) != 0 || err != nil { // rows without payments are nothing to publish
		t.Errorf("%d items, %v", len(items), err)
	}
}
