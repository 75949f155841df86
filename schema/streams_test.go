package schema

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestStreams(t *testing.T) {
	t.Parallel()
	settings := Settings{StreamMaxBytes: 5 << 30, Replicas: 3, AckWait: 6 * time.Second}
	streams := Subjects{}.Streams(settings)
	want := []struct {
		name     string
		subjects []string
		discard  string
		maxAge   time.Duration
	}{
		{"PAYMENTS_INTENTS", []string{"payments.intent.*"}, "new", 0},
		{"PAYMENTS_BULK", []string{"payments.bulk.*", "payments.batch.*"}, "new", 0},
		{"PAYMENTS_EVENTS", []string{"payments.event.*.*"}, "old", 7 * 24 * time.Hour},
		{"PAYMENTS_DEAD", []string{"payments.dead.*"}, "old", 90 * 24 * time.Hour},
	}
	if len(streams) != len(want) {
		t.Fatalf("%d streams", len(streams))
	}
	for i, s := range streams {
		w := want[i]
		if s.Name != w.name || !reflect.DeepEqual(s.Subjects, w.subjects) || s.Discard != w.discard || s.MaxAge != w.maxAge {
			t.Errorf("got %+v, want %+v", s, w)
		}
		if s.Retention != "limits" || s.Storage != "file" || s.MaxBytes != 5<<30 || s.Replicas != 3 || s.DuplicateWindow != 100*time.Millisecond {
			t.Errorf("%s: %+v", s.Name, s)
		}
		if s.MaxAge > 0 && s.DuplicateWindow > s.MaxAge {
			t.Errorf("%s: JetStream refuses a duplicate window above the maximum age", s.Name)
		}
		if !s.AllowAtomicPublish || s.MaxMsgs != -1 || s.MaxMsgSize != -1 {
			t.Errorf("%s: %+v", s.Name, s)
		}
		if s.AllowDirect != (s.Discard == DiscardOld) {
			t.Errorf("%s: reads by sequence must come from the leader where intents are", s.Name)
		}
	}
}

func TestConsumers(t *testing.T) {
	t.Parallel()
	consumers := Subjects{}.Consumers(Settings{StreamMaxBytes: 1 << 30, Replicas: 1, AckWait: 6 * time.Second})
	want := []Consumer{
		{Stream: "PAYMENTS_INTENTS", Durable: "worker-intent"},
		{Stream: "PAYMENTS_BULK", Durable: "worker-bulk"},
	}
	for i := range want {
		want[i].AckPolicy, want[i].DeliverPolicy, want[i].ReplayPolicy = "explicit", "all", "instant"
		want[i].AckWait, want[i].MaxDeliver, want[i].MaxAckPending = 6*time.Second, -1, 20_000
	}
	if !reflect.DeepEqual(consumers, want) {
		t.Errorf("got %+v\nwant %+v", consumers, want)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	good := DefaultSettings()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if good.AckWait != 30*time.Second || good.StreamMaxBytes != 10*1024*1024*1024 {
		t.Errorf("defaults are %+v", good)
	}
	for name, spoil := range map[string]func(*Settings){
		"no max bytes":        func(s *Settings) { s.StreamMaxBytes = 0 },
		"unlimited max bytes": func(s *Settings) { s.StreamMaxBytes = -1 },
		"no replicas":         func(s *Settings) { s.Replicas = 0 },
		"two replicas":        func(s *Settings) { s.Replicas = 2 },
		"no ack wait":         func(s *Settings) { s.AckWait = 0 },
	} {
		s := DefaultSettings()
		spoil(&s)
		if err := s.Validate(); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
