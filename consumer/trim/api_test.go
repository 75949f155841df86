package trim

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func answering(text string) *api {
	return &api{request: func(context.Context, string, []byte) ([]byte, error) { return []byte(text), nil }}
}

func TestAPurgeThatDidNotSucceedIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := answering(`{"success":false,"purged":0}`).purge(t.Context(), "S", 5); err == nil {
		t.Error("no error")
	}
	if n, err := answering(`{"success":true,"purged":4}`).purge(t.Context(), "S", 5); err != nil || n != 4 {
		t.Errorf("purged %d: %v", n, err)
	}
	if _, err := answering(`{"error":{"code":500,"err_code":10110,"description":"sealed stream"}}`).purge(t.Context(), "S", 5); err == nil || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("purge: %v", err)
	}
}

// A server that does not know start_time answers with the first message; one that cannot read its store says that there is none.
func TestAnAnswerThatCannotBeIsNotTrimmedBy(t *testing.T) {
	t.Parallel()
	cutoff := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	s := streamState{messages: 10, first: 1, last: 10, firstTime: cutoff.Add(-time.Hour), lastTime: cutoff.Add(time.Hour)}
	none := `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
	for name, c := range map[string]struct {
		answer string
		last   time.Time
		want   uint64
		fails  bool
	}{
		"found":            {`{"message":{"seq":7,"time":"2026-03-04T12:00:00Z"}}`, s.lastTime, 7, false},
		"too old":          {`{"message":{"seq":1,"time":"2026-03-04T11:00:00Z"}}`, s.lastTime, 0, true},
		"none of a young":  {none, s.lastTime, 0, true},
		"none of an old":   {none, cutoff.Add(-time.Minute), 11, false},
		"another refusal":  {`{"error":{"code":503,"err_code":10008,"description":"away"}}`, s.lastTime, 0, true},
		"what is no JSON":  {`+OK`, s.lastTime, 0, true},
		"none of the same": {none, cutoff, 0, true},
	} {
		l := &lane{Lane: Lane{Stream: "S"}, api: answering(c.answer)}
		s.lastTime = c.last
		got, err := l.wantForAge(t.Context(), s, cutoff)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %d, %v; want %d", name, got, err, c.want)
		}
	}
}

func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	a := &api{prefix: "$JS.API.", request: func(context.Context, string, []byte) ([]byte, error) { return nil, nats.ErrNoResponders }}
	if _, err := a.stream(t.Context(), "S"); err == nil || !strings.Contains(err.Error(), "STREAM.INFO.S: JetStream does not answer") {
		t.Errorf("stream: %v", err)
	}
}
