package provision

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// One server has no streams with three replicas, so the rule is asked directly.
func TestFewerReplicasAreRefused(t *testing.T) {
	t.Parallel()
	info := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Name: "S", Replicas: 3}}
	err := safeStreamUpdate(info, jetstream.StreamConfig{Name: "S", Replicas: 1})
	if !errors.Is(err, ErrWouldLose) || !strings.Contains(err.Error(), "num_replicas") {
		t.Fatalf("err = %v", err)
	}
	if err := safeStreamUpdate(info, jetstream.StreamConfig{Name: "S", Replicas: 5}); err != nil {
		t.Fatalf("more replicas: %v", err)
	}
}
