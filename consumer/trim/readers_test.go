package trim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestASecondDurableHoldsWhatItHasNotAcked(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	for name, change := range map[string]func(*jetstream.ConsumerConfig){
		"explicit": func(*jetstream.ConsumerConfig) {},
		"ack all":  func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckAllPolicy },
		"paused":   func(c *jetstream.ConsumerConfig) { c.PauseUntil = &later },
		"expiring": func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = time.Hour },
		"push":     func(c *jetstream.ConsumerConfig) { c.DeliverSubject = "nobody.listens" },
		"from 1": func(c *jetstream.ConsumerConfig) {
			c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, 1
		},
		"since": func(c *jetstream.ConsumerConfig) {
			s := time.Now().Add(-time.Hour)
			c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, &s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, mib)
			r.publish(1, percent)
			if name == "push" { // a push consumer is made by an older call of the client
				r.check(makePush(r, "audit"))
			} else {
				r.consumer("audit", change)
			}
			r.publish(79, percent)
			r.ack(r.take(work, 80)...)
			r.once()
			r.wantFirst(1)
			if r.seen.heldBy(HeldConsumer) != 1 || r.log.with("level=WARN", "not the workers'", "consumer=audit") != 1 {
				t.Errorf("held %v: %s", r.seen.held, r.log.text.String())
			}
			r.deleteConsumer("audit")
			r.once()
			if s := r.state(); s.Bytes > mib/2 {
				t.Errorf("%d bytes are left though nobody holds them", s.Bytes)
			}
		})
	}
}

// makePush makes a durable that JetStream sends to a subject, in the words of its API.
func makePush(r *rig, name string) error {
	body := fmt.Sprintf(`{"stream_name":%q,"config":{"durable_name":%q,"deliver_subject":"nobody.%s","ack_policy":"explicit","deliver_policy":"all","replay_policy":"instant"}}`, r.stream, name, name)
	msg, err := r.js.Conn().RequestWithContext(r.ctx, "$JS.API.CONSUMER.DURABLE.CREATE."+r.stream+"."+name, []byte(body))
	if err == nil && strings.Contains(string(msg.Data), `"error"`) {
		err = fmt.Errorf("%s", msg.Data)
	}
	return err
}

func TestTheFloorOfALaggingDurableIsTheLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.consumer("audit")
	r.fill()
	r.ack(r.take(work, 80)...)
	r.ack(r.take("audit", 7)...)
	r.once()
	r.wantFirst(8)
	got := r.take("audit", 20)
	r.ack(got[1:]...) // its floor stays
	r.once()
	r.wantFirst(8)
	r.ack(got[0])
	r.once()
	r.wantFirst(28)
}

func TestADurableDoesNotHoldWhatItStartsBehind(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]jetstream.DeliverPolicy{"new": jetstream.DeliverNewPolicy, "last": jetstream.DeliverLastPolicy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, mib)
			r.publish(10, percent)
			r.consumer("audit", func(c *jetstream.ConsumerConfig) { c.DeliverPolicy = policy })
			r.publish(70, percent)
			r.ack(r.take(work, 80)...)
			r.once()
			want := uint64(11)
			if policy == jetstream.DeliverLastPolicy {
				want = 10
			}
			r.wantFirst(want)
		})
	}
}

func TestEphemeralOrderedAndUnackedConsumersHoldNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.consumer("tail", func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckNonePolicy })
	r.consumer("", func(c *jetstream.ConsumerConfig) { c.Durable, c.Name = "", "named" })
	ordered, err := r.js.OrderedConsumer(r.ctx, r.stream, jetstream.OrderedConsumerConfig{})
	r.check(err)
	r.fill()
	if _, err := ordered.Next(jetstream.FetchMaxWait(5 * time.Second)); err != nil { // so that it exists
		t.Fatal(err)
	}
	list, err := r.lanes[0].api.readers(r.ctx, r.stream)
	r.check(err)
	if len(list) < 4 { // the client may have made the ordered one anew
		t.Fatalf("%d consumers are listed, want 4", len(list))
	}
	r.ack(r.take(work, 80)...)
	r.once()
	if s := r.state(); s.Bytes > mib/2 {
		t.Errorf("%d bytes are left", s.Bytes)
	}
}

func TestAFilteredDurableHoldsWhatItsFilterMatches(t *testing.T) {
	t.Parallel()
	one := func(r *rig) func(*jetstream.ConsumerConfig) {
		return func(c *jetstream.ConsumerConfig) { c.FilterSubject = r.stream + ".acme" }
	}
	two := func(r *rig) func(*jetstream.ConsumerConfig) {
		return func(c *jetstream.ConsumerConfig) {
			c.FilterSubjects = []string{r.stream + ".never", r.stream + ".acme"}
		}
	}
	for name, filter := range map[string]func(*rig) func(*jetstream.ConsumerConfig){"one filter": one, "two filters": two} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, mib)
			r.consumer("audit", filter(r))
			r.publish(9, percent)
			r.publish(1, percent, "acme") // 10
			r.publish(9, percent)
			r.publish(1, percent, "acme") // 20
			r.publish(60, percent)
			r.ack(r.take(work, 80)...)
			r.once()
			r.wantFirst(1) // two messages match and were not given yet
			got := r.take("audit", 2)
			r.ack(got[1])
			r.once()
			r.wantFirst(1) // given and not acked
			r.ack(got[0])
			list, err := r.lanes[0].api.readers(r.ctx, r.stream)
			r.check(err)
			for _, c := range list {
				if c.name == "audit" && c.floor != 20 {
					t.Errorf("JetStream reports %d as its floor; with 20 the stream would be held for ever", c.floor)
				}
			}
			r.once()
			if s := r.state(); s.Bytes > mib/2 {
				t.Errorf("%d bytes are left: a quiet subject holds the stream", s.Bytes)
			}
		})
	}
}

// Given under an old filter and unacked, a message is of no filter any more.
func TestAFilterThatWasChangedDoesNotFreeWhatIsUnacked(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.consumer("audit", func(c *jetstream.ConsumerConfig) { c.FilterSubject = r.stream + ".acme" })
	r.publish(5, percent, "acme")
	got := r.take("audit", 5)
	_, err := r.js.UpdateConsumer(r.ctx, r.stream, jetstream.ConsumerConfig{
		Durable: "audit", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: 100_000, FilterSubject: r.stream + ".other",
	})
	r.check(err)
	r.publish(75, percent)
	r.ack(r.take(work, 80)...)
	r.once()
	r.wantFirst(1)
	r.ack(got...)
	r.once()
	if s := r.state(); s.Bytes > mib/2 {
		t.Errorf("%d bytes are left", s.Bytes)
	}
}

func TestAMissingDurableTrimsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 80)...)
	r.deleteConsumer(work)
	r.consumer("audit", func(c *jetstream.ConsumerConfig) { c.DeliverPolicy = jetstream.DeliverNewPolicy })
	for range 2 {
		if err := r.RunOnce(r.ctx); err == nil || !strings.Contains(err.Error(), work) {
			t.Fatalf("RunOnce: %v, want that %s is missing", err, work)
		}
	}
	r.wantFirst(1)
	if r.seen.heldBy(HeldNoDurable) != 2 || r.log.with("level=WARN", "durable consumer is missing", "consumer="+work) != 1 {
		t.Errorf("held %v: %s", r.seen.held, r.log.text.String())
	}
	r.consumer(work, func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckNonePolicy })
	if err := r.RunOnce(r.ctx); err == nil {
		t.Error("a durable that acks nothing was taken for the workers'")
	}
	r.wantFirst(1)
	r.deleteConsumer(work)

	r.consumer(work) // made anew, it begins again
	r.once()
	r.wantFirst(1)
	r.ack(r.take(work, 30)...)
	r.once()
	r.wantFirst(31)
}

func TestTheDurableOfAnotherNameDoesNotDo(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.deleteConsumer(work)
	r.consumer("worker-bulk")
	r.fill()
	r.ack(r.take("worker-bulk", 80)...)
	if err := r.RunOnce(r.ctx); err == nil {
		t.Error("trimmed without the lane's own durable")
	}
	r.wantFirst(1)
}

func TestAMissingStreamIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.deleteStream()
	if err := r.RunOnce(r.ctx); err == nil {
		t.Error("no error without a stream")
	}
	if r.seen.heldBy(HeldNoStream) != 1 || r.log.with("level=WARN", "no stream") != 1 {
		t.Errorf("held %v: %s", r.seen.held, r.log.text.String())
	}
	r.makeStream()
	r.consumer(work)
	r.fill()
	r.ack(r.take(work, 80)...)
	r.once()
	if s := r.state(); s.Bytes > mib/2 {
		t.Errorf("%d bytes are left", s.Bytes)
	}
}

// As after a restore of the stream alone.
func TestADurableThatIsAheadOfItsStreamTrimsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.deleteConsumer(work)
	r.fill()
	r.consumer(work, func(c *jetstream.ConsumerConfig) {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, 200
	})
	if err := r.RunOnce(r.ctx); !errors.Is(err, errAhead) {
		t.Errorf("RunOnce: %v, want that the durable is ahead", err)
	}
	r.wantFirst(1)
	if r.seen.heldBy(HeldAhead) != 1 || r.log.with("level=ERROR", "acked more than the stream holds", "consumer="+work) != 1 {
		t.Errorf("held %v: %s", r.seen.held, r.log.text.String())
	}
}

// The leader of a consumer may lag behind that of the stream: it says that nothing is to come, and the stream has it.
func TestAFilteredDurableIsHeldAgainstTheStreamItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		found map[string]uint64 // by filter
		want  uint64
	}{
		{nil, 100},
		{map[string]uint64{"a": 31}, 30},
		{map[string]uint64{"a": 31, "b": 22}, 21},
		{map[string]uint64{"b": 101}, 100},
	} {
		l := &lane{Lane: Lane{Stream: "S"}, api: &api{request: func(_ context.Context, subject string, body []byte) ([]byte, error) {
			var p position
			if err := json.Unmarshal(body, &p); err != nil || subject != "STREAM.MSG.GET.S" || p.Sequence != 11 {
				t.Errorf("asked %s %s: %v", subject, body, err)
			}
			if sequence := c.found[p.Subject]; sequence > 0 {
				return fmt.Appendf(nil, `{"message":{"seq":%d,"time":"2026-01-01T00:00:00Z"}}`, sequence), nil
			}
			return []byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`), nil
		}}}
		got, err := l.filteredFloor(t.Context(), streamState{last: 100}, reader{floor: 10, filters: []string{"a", "b"}})
		if err != nil || got != c.want {
			t.Errorf("with %v: floor %d, want %d: %v", c.found, got, c.want, err)
		}
	}
}

// More than one page: the one that lags stands on the second, on the first, and at the border.
func TestEveryPageOfConsumersCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	const others = 299
	r.publish(1, percent)
	late := func(c *jetstream.ConsumerConfig) { c.DeliverPolicy, c.MemoryStorage = jetstream.DeliverNewPolicy, true }
	lag := map[int]int{298: 11, 255: 6, 0: 1}
	for i := range others {
		if _, lags := lag[i]; lags {
			r.consumer(fmt.Sprintf("c%03d", i))
		}
	}
	r.publish(94, percent)
	for i := range others {
		if _, lags := lag[i]; !lags {
			r.consumer(fmt.Sprintf("c%03d", i), late)
		}
	}
	r.ack(r.take(work, 95)...)
	list, err := r.lanes[0].api.readers(r.ctx, r.stream)
	r.check(err)
	if len(list) != others+1 {
		t.Fatalf("%d consumers are listed, want %d", len(list), others+1)
	}
	for i, n := range lag {
		r.ack(r.take(fmt.Sprintf("c%03d", i), n)...)
	}
	for _, step := range []struct {
		first uint64
		lags  string
	}{{2, "c000"}, {7, "c255"}, {12, "c298"}} {
		r.once()
		r.wantFirst(step.first)
		r.deleteConsumer(step.lags)
	}
	r.once()
	if s := r.state(); s.Bytes > mib/2 {
		t.Errorf("%d bytes are left", s.Bytes)
	}
}

// pages answers questions for a list with what the test says.
type pages func(offset int) string

func (p pages) api() *api {
	return &api{request: func(_ context.Context, _ string, body []byte) ([]byte, error) {
		var question struct {
			Offset int `json:"offset"`
		}
		if err := json.Unmarshal(body, &question); err != nil {
			return nil, err
		}
		return []byte(p(question.Offset)), nil
	}}
}

func names(from, to int) string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf(`{"name":"c%03d","config":{"durable_name":"c%03d","ack_policy":"explicit"}}`, i, i))
	}
	return strings.Join(all, ",")
}

func TestAListThatIsNotWholeIsNoList(t *testing.T) {
	t.Parallel()
	asked := 0
	for name, c := range map[string]struct {
		answer pages
		want   string
	}{
		"a leader that does not answer": {
			func(int) string { return `{"total":2,"consumers":[` + names(0, 1) + `],"missing":["c001"]}` }, "leader of consumer c001",
		},
		"a peer that is offline": { // listed by the meta leader, with a floor of 0 that nobody read
			func(int) string { return `{"total":1,"consumers":[` + names(0, 1) + `],"missing":["c000"]}` }, "leader of consumer c000",
		},
		"one that closes": {func(int) string { return `{"total":2,"consumers":[` + names(0, 1) + `]}` }, "changed while it was read"},
		"one that goes between the pages": {
			func(offset int) string {
				if offset == 0 {
					return `{"total":300,"consumers":[` + names(0, 256) + `]}`
				}
				return `{"total":299,"consumers":[` + names(256, 300) + `]}`
			}, "changed while it was read",
		},
		"one that goes and another that comes": { // the total is the same and c256 was seen on no page
			func(offset int) string {
				if offset == 0 {
					return `{"total":300,"consumers":[` + names(0, 256) + `]}`
				}
				return `{"total":300,"consumers":[` + names(256, 301) + `]}`
			}, "changed while it was read",
		},
		"one that comes between the pages": {
			func(offset int) string {
				if offset == 0 {
					return `{"total":300,"consumers":[` + names(0, 256) + `]}`
				}
				return `{"total":301,"consumers":[` + names(255, 301) + `]}`
			}, "changed while it was read",
		},
		"an answer without end":  {func(int) string { asked++; return `{"total":300,"consumers":[` + names(0, 1) + `]}` }, "changed while it was read"},
		"a refusal":              {func(int) string { return `{"error":{"code":503,"err_code":10008,"description":"system is away"}}` }, "system is away"},
		"what is no JSON at all": {func(int) string { return `-ERR` }, "CONSUMER.LIST.S"},
	} {
		if _, err := c.answer.api().readers(t.Context(), "S"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	if asked != 2*listTries {
		t.Errorf("a list without end was asked for %d times", asked)
	}
}

func TestAMissingEphemeralHoldsNothing(t *testing.T) {
	t.Parallel()
	list, err := pages(func(int) string {
		return `{"total":2,"consumers":[` + names(0, 1) + `,{"name":"x","config":{"ack_policy":"explicit"}}],"missing":["x"]}`
	}).api().readers(t.Context(), "S")
	if err != nil || len(list) != 2 {
		t.Errorf("readers: %v, %v", list, err)
	}
}

func TestAConsumerOfWhichNothingIsKnownHoldsEverything(t *testing.T) {
	t.Parallel()
	list, err := pages(func(int) string {
		return `{"total":2,"consumers":[{"name":"a"},{"name":"b","config":{"durable_name":"b","ack_policy":"of tomorrow"}}]}`
	}).api().readers(t.Context(), "S")
	if err != nil || len(list) != 2 || !list[0].holds() || !list[1].holds() || list[0].floor != 0 {
		t.Errorf("readers: %+v, %v", list, err)
	}
}
