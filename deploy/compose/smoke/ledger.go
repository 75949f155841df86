package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// lookEvery is how often the ledger is read.
const lookEvery = time.Second

// ledger is what the simulator charged.
type ledger struct {
	Charges []struct {
		Amount   int64             `json:"amount"`
		Metadata map[string]string `json:"metadata"`
	} `json:"charges"`
}

// summary is what the simulator itself makes of its ledger.
type summary struct {
	DoubleCharges int `json:"double_charges"`
	Unattributed  int `json:"unattributed"`
}

func getSummary(ctx context.Context, o options) (s summary, err error) {
	return s, get(ctx, o.simulator+"/_sim/summary", &s)
}

// waitCharged reads the ledger until every intent is in it, and fails as soon as one is there twice or with another amount. When its time ends it
// tells what the last look that came through has shown.
func waitCharged(ctx context.Context, o options, wanted map[string]intent) (int, error) {
	charged, seen := 0, false
	for {
		var l ledger
		err := get(ctx, o.simulator+"/_sim/ledger", &l)
		if err == nil {
			if charged, err = judge(l, wanted); err != nil {
				return charged, err
			}
			if charged == len(wanted) {
				return charged, nil
			}
			seen = true
		}
		select {
		case <-ctx.Done():
			if !seen {
				return 0, fmt.Errorf("the ledger cannot be read: %w", err)
			}
			return charged, fmt.Errorf("%d of %d intents are not charged in time", len(wanted)-charged, len(wanted))
		case <-time.After(lookEvery):
		}
	}
}

// judge counts the intents that are charged. Charges of others are none of its business.
func judge(l ledger, wanted map[string]intent) (int, error) {
	seen := map[string]bool{}
	for _, c := range l.Charges {
		id := c.Metadata["oncepay_payment"]
		i, ours := wanted[id]
		switch {
		case !ours:
			continue
		case seen[id]:
			return len(seen), fmt.Errorf("%s is charged twice", id)
		case c.Amount != i.amount:
			return len(seen), fmt.Errorf("%s is charged %d, and %d was asked for", id, c.Amount, i.amount)
		}
		seen[id] = true
	}
	return len(seen), nil
}

func get(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
