package postgres

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestPinNamespace: of many that begin at once under two names one name wins, is told to all, and stays.
func TestPinNamespace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	names := []string{"prod", "staging"}
	stores := []*Store{b.another(Options{Namespace: names[0]}), b.another(Options{Namespace: names[1]})}
	var errs [8]error
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = stores[i%2].PinNamespace(ctx) })
	}
	wg.Wait()
	winner := 0
	if errs[0] != nil {
		winner = 1
	}
	for i, err := range errs {
		switch {
		case i%2 == winner && err != nil:
			t.Errorf("the namespace that the database is bound to: %v", err)
		case i%2 != winner && (payments.ErrorCode(err) != payments.CodeInvalid || !strings.Contains(err.Error(), `begun under "`+names[winner]+`"`)):
			t.Errorf("the other namespace: %v", err)
		}
	}
	if err := stores[winner].PinNamespace(ctx); err != nil {
		t.Errorf("again: %v", err)
	}
}
