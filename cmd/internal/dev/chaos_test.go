package dev

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/chaos"
	"github.com/oncepay/oncepay/schema"
)

const chaosNumbers = "seed intents acknowledged messages_published requests_accepted repeats requests_refused unheard payments follow_ups follow_ups_stored stripe_requests " +
	"stripe_repeats stripe_charges stripe_refunds faults_injected connections_cut double_charges double_refunds unattributed lost dead_letters replays given_up held_back duration_s settle_s"

// replay is how a run that failed is seen again.
func replay(d map[string]any) string {
	return fmt.Sprintf("%v\n%v\n%v", d["command"], d["findings"], d["timeline"])
}

// TestChaos breaks what it can for some seconds, from another seed each time, and proves that nothing was charged twice or lost; nothing is left.
func TestChaos(t *testing.T) {
	t.Parallel()
	tmp := temporary(t)
	p := start(t, "", tmp, nil, "chaos", "--duration", "8s", "--rate", "25", "--json")
	code := p.wait()
	if p.out.String() == "" {
		t.Fatalf("exit code %d: %s", code, p.err.String())
	}
	d := p.document()
	if code != 0 || d["holds"] != true {
		t.Fatalf("exit code %d: %s\n%s", code, replay(d), p.err.String())
	}
	numbers(t, d, chaosNumbers)
	if d["double_charges"] != 0.0 || d["double_refunds"] != 0.0 || d["unattributed"] != 0.0 || d["lost"] != 0.0 {
		t.Error(replay(d))
	}
	if d["acknowledged"].(float64) < 50 || d["follow_ups_stored"].(float64) == 0 || d["requests_accepted"].(float64) < 5 || len(d["broken"].(map[string]any)) == 0 {
		t.Errorf("it is too easy: %v", d)
	}
	if names := left(t, tmp); names != "" {
		t.Errorf("left: %s", names)
	}
}

// repeats counts what is accepted of a run's work when nothing fails: the deliveries beyond the first one of each payment or batch of which producers hear.
func (w *chaosWork) repeats() (n int) {
	heard := map[string]bool{}
	for _, list := range slices.Concat(w.nats[:], w.http[:]) {
		for _, m := range list {
			if m.forget || len(m.intents) == 0 {
				continue
			}
			if heard[m.key] {
				n++
			}
			heard[m.key] = true
		}
	}
	return n
}

// TestChaosWithoutKeys: Stripe forgets every key at once, and each payment is sent once all the same, by real processes that meet it again and again.
func TestChaosWithoutKeys(t *testing.T) {
	t.Parallel()
	p := run(t, "chaos", "--keys-off", "--duration", "3s", "--rate", "20", "--json")
	if p.out.String() == "" {
		t.Fatal(p.err.String())
	}
	d := p.document()
	work, err := newChaosWork(uint64(d["seed"].(float64)), 60, 3*time.Second, schema.Subjects{})
	if err != nil {
		t.Fatal(err)
	}
	if want := work.repeats(); p.code() != 0 || d["repeats"] != float64(want) || d["replays"] != 1.0 {
		t.Errorf("exit code %d, want %d repeats: %v", p.code(), want, d)
	}
}

// TestChaosEndsWithItself: killed with SIGKILL in the middle of it all, it leaves no process and no file.
func TestChaosEndsWithItself(t *testing.T) {
	t.Parallel()
	tmp := temporary(t)
	p := start(t, "", tmp, nil, "chaos", "--seed", quietSeed(), "--duration", "1h", "--rate", "5")
	until(t, func() string {
		if strings.Contains(p.err.String(), "breaking ") {
			return ""
		}
		return "it breaks things: " + p.err.String()
	})
	all := family(t, p.command.Process.Pid)
	if n := count(all, nodeCommand) + count(all, simulatorCommand) + count(all, workerCommand); n < 9 {
		t.Errorf("%d processes of its own: %v", n, all)
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		if still := alive(all); still != "" {
			return "still there: " + still
		}
		return left(t, tmp)
	})
}

// quietSeed is a seed with which nobody is killed for as long as it takes to see who is there.
func quietSeed() string {
	ends := []chaos.Kind{chaos.Kill, chaos.Terminate, chaos.Quorum, chaos.Everyone}
	for seed := uint64(1); ; seed++ {
		early := chaos.Schedule(seed, time.Minute, scene())
		if !slices.ContainsFunc(early, func(e chaos.Event) bool { return e.At < 10*time.Second && slices.Contains(ends, e.Kind) }) {
			return fmt.Sprint(seed)
		}
	}
}

// TestChaosSchedule: what would happen is printed without anything being started, and is the same each time.
func TestChaosSchedule(t *testing.T) {
	t.Parallel()
	one, two := run(t, "chaos", "--schedule", "--seed", "7"), run(t, "chaos", "--schedule", "--seed", "7")
	if one.code() != 0 || one.out.String() != two.out.String() || strings.Count(one.out.String(), "\n") < 30 || one.err.String() != "" {
		t.Errorf("exit codes %d, %d: %s%s", one.code(), two.code(), one.out.String(), one.err.String())
	}
	for line := range strings.Lines(one.out.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, bad := range [][]string{{"--duration", "1ms"}, {"--rate", "0"}, {"--rate", "201"}} {
		if p := run(t, append([]string{"chaos"}, bad...)...); p.code() != 2 || !strings.HasPrefix(p.err.String(), "oncepay-dev: "+bad[0]+": ") {
			t.Errorf("%v: exit code %d, %q", bad, p.code(), p.err.String())
		}
	}
}

// TestChaosWork: what producers send is drawn from the seed, each payment has a customer of its own, and every way in is used.
func TestChaosWork(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) *chaosWork {
		w, err := newChaosWork(seed, 2000, time.Minute, schema.Subjects{})
		if err != nil {
			t.Fatal(err)
		}
		w.random, w.following = nil, nil
		return w
	}
	w := draw(3)
	if !reflect.DeepEqual(w, draw(3)) || reflect.DeepEqual(w, draw(4)) {
		t.Error("a seed does not name its work")
	}
	cards := map[card]int{}
	for i, c := range w.cards {
		cards[card{onSession: c.onSession, manual: c.manual}]++
		if _, _, child := strings.Cut(w.intents[i].Key, "::"); child && c.manual {
			t.Errorf("%s is never complete", w.intents[i].Key)
		}
	}
	if len(cards) != 4 || w.cancels() == 0 {
		t.Errorf("%v, %d of them to be canceled: not every kind of card", cards, w.cancels())
	}
	mustFollow(t, w)
	customers, ways := map[string]bool{}, map[string]int{}
	asked := make([]int, len(w.intents))
	for _, i := range w.intents {
		if customers[i.Money.Customer] {
			t.Errorf("%s twice", i.Money.Customer)
		}
		customers[i.Money.Customer] = true
	}
	note := func(way string, list []*delivery) {
		for i, m := range list {
			if i > 0 && m.at < list[i-1].at || m.at > time.Minute {
				t.Errorf("%s out of order", m.key)
			}
			for _, i := range m.intents {
				asked[i]++
			}
			ways[fmt.Sprint(way, " ", len(m.intents) > 1, " ", m.reason, m.refusal, " ", m.forget, " ", m.then != nil)]++
			if m.forget && (m.reason != "" || m.money != nil) {
				t.Errorf("%s must be visible, and nobody waits for it", m.key)
			}
		}
	}
	for _, list := range w.nats {
		note("nats", list)
	}
	for _, list := range w.http {
		note("http", list)
	}
	for i, n := range asked {
		if n == 0 {
			t.Errorf("nobody asks for %s", w.intents[i].Key)
		}
	}
	for _, way := range []string{"nats false  false false", "nats false  true false", "nats true  false false", "nats false key_reused false false", "http false  false false",
		"http false  false true", "http true  false false", "http false card_number_detected false false", "nats false undecodable false false"} {
		if ways[way] == 0 {
			t.Errorf("%q is not among %v", way, ways)
		}
	}
}

// mustFollow wants every kind of follow-up by every way, each about a payment that can be paid, and none under a key of another.
func mustFollow(t *testing.T, w *chaosWork) {
	t.Helper()
	ways, keys := map[string]int{}, map[string]*ask{}
	for _, p := range w.plans {
		if w.intents[p.intent].Declines || len(w.intents[p.intent].Also) > 0 || p.at > time.Minute {
			t.Errorf("the plan about %s at %s can come to nothing", w.intents[p.intent].Key, p.at)
		}
		for _, m := range slices.Concat(p.groups...) {
			kind, _, _ := strings.Cut(m.key, "-")
			ways[fmt.Sprintf("%s NATS %t, all %t, %s %s%s", kind, m.subject != "", m.ask == nil || m.ask.Amount == 0, p.want, m.may, m.refusal)]++
			switch {
			case (m.ask == nil) != (m.refusal != ""):
				t.Errorf("%s must be refused, and is asked for", m.key)
			case m.ask != nil && keys[m.key] != nil && keys[m.key] != m.ask || m.ask != nil && m.ask.Key != m.key:
				t.Errorf("%s is asked for twice", m.key)
			}
			keys[m.key] = m.ask
		}
	}
	for _, way := range []string{
		"refund NATS true, all true, succeeded ", "refund NATS false, all true, succeeded ", "refund NATS true, all false, succeeded ", "refund NATS false, all false, succeeded ",
		"refund NATS true, all false, succeeded amount_exceeds_available", "refund NATS false, all true, succeeded amount_exceeds_available",
		"refund NATS true, all false, requires_capture amount_exceeds_available", "capture NATS true, all true, requires_capture ",
		"capture NATS false, all false, requires_capture ", "capture NATS true, all false, requires_capture invalid_state",
		"capture NATS false, all true, requires_capture amount_exceeds_available", "cancel NATS true, all true, requires_capture ",
		"cancel NATS false, all true, requires_capture invalid_state", "cancel NATS false, all true,  invalid_state",
	} {
		if ways[way] == 0 {
			t.Errorf("%q is not among %v", way, ways)
		}
	}
}
