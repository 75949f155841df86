package coalesce_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/oncepay/oncepay/payments/coalesce"
)

// Each caller writes one word in straight-line code; the group turns them into few writes.
func ExampleGroup() {
	group := coalesce.New(coalesce.Options[string]{MaxBatch: 100},
		func(_ context.Context, words []string) ([]coalesce.Result[string], error) {
			results := make([]coalesce.Result[string], len(words))
			for i, word := range words {
				results[i].Value = strings.ToUpper(word)
			}
			return results, nil
		})

	words := []string{"once", "and", "only", "once"}
	answers := make([]string, len(words))
	var callers sync.WaitGroup
	for i, word := range words {
		callers.Go(func() {
			answer, err := group.Do(context.Background(), word)
			if err != nil {
				answer = err.Error()
			}
			answers[i] = answer
		})
	}
	callers.Wait()
	if err := group.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(answers)
	// Output: [ONCE AND ONLY ONCE]
}
