package trim

import (
	"context"
	"errors"
	"fmt"
)

// reader is one consumer of a stream.
type reader struct {
	name    string
	durable bool
	acks    bool
	filters []string
	paused  bool

	floor      uint64 // everything that it was given up to this stream sequence is acked
	delivered  uint64 // the last stream sequence that it was given
	ackPending uint64 // given and not acked
	pending    uint64 // matching and not given yet
}

// holds reports whether what lies above the reader's floor must stay.
func (r reader) holds() bool { return r.durable && r.acks }

// listTries is how often a list that changed between its pages is begun anew.
const listTries = 3

// errListChanged: consumers came or went while their list was read.
var errListChanged = errors.New("the list of consumers changed while it was read")

// readers lists all consumers of a stream with their floors, or fails: half a list may lack the floor that matters.
func (a *api) readers(ctx context.Context, stream string) (list []reader, err error) {
	for range listTries {
		if list, err = a.readersOnce(ctx, stream); !errors.Is(err, errListChanged) {
			return list, err
		}
	}
	return nil, fmt.Errorf("CONSUMER.LIST.%s: %w", stream, err)
}

// readersOnce reads page after page. They are sorted by name, and each begins with the last of the one before: where that one has moved,
// others may have slipped from one page to the next unseen.
func (a *api) readersOnce(ctx context.Context, stream string) (list []reader, err error) {
	names := map[string]bool{}
	last, total := "", -1
	for {
		page, err := a.readersPage(ctx, stream, max(0, len(names)-1))
		if err != nil {
			return nil, err
		}
		if total >= 0 && (page.total != total || len(page.list) == 0 || page.list[0].name != last) {
			return nil, errListChanged
		}
		total = page.total
		before := len(names)
		for _, r := range page.list {
			if !names[r.name] {
				names[r.name] = true
				list = append(list, r)
			}
		}
		switch {
		case len(names) == total:
			return list, nil
		case len(names) == before || len(names) > total:
			return nil, errListChanged
		}
		last = page.list[len(page.list)-1].name
	}
}

type readersPage struct {
	total int
	list  []reader
}

func (a *api) readersPage(ctx context.Context, stream string, offset int) (page readersPage, err error) {
	type place struct {
		Stream uint64 `json:"stream_seq"`
	}
	var out struct {
		answer
		Total     int      `json:"total"`
		Missing   []string `json:"missing"`
		Consumers []struct {
			Name   string `json:"name"`
			Config *struct {
				Durable        string   `json:"durable_name"`
				AckPolicy      string   `json:"ack_policy"`
				FilterSubject  string   `json:"filter_subject"`
				FilterSubjects []string `json:"filter_subjects"`
			} `json:"config"`
			Delivered  place  `json:"delivered"`
			AckFloor   place  `json:"ack_floor"`
			AckPending uint64 `json:"num_ack_pending"`
			Pending    uint64 `json:"num_pending"`
			Paused     bool   `json:"paused"`
		} `json:"consumers"`
	}
	question := struct {
		Offset int `json:"offset"`
	}{offset}
	if err := a.call(ctx, "CONSUMER.LIST."+stream, question, &out); err != nil {
		return page, err
	}
	page.total = out.Total
	listed := map[string]bool{} // as holding nothing, whatever their state
	for _, c := range out.Consumers {
		// Of one without a configuration nothing is known, so it holds what its floor says: everything.
		r := reader{
			name: c.Name, durable: true, acks: true, paused: c.Paused,
			floor: c.AckFloor.Stream, delivered: c.Delivered.Stream, ackPending: c.AckPending, pending: c.Pending,
		}
		if c.Config != nil {
			r.durable, r.acks = c.Config.Durable != "", c.Config.AckPolicy != "none"
			if r.filters = c.Config.FilterSubjects; c.Config.FilterSubject != "" {
				r.filters = []string{c.Config.FilterSubject}
			}
		}
		listed[c.Name] = !r.holds()
		page.list = append(page.list, r)
	}
	for _, name := range out.Missing {
		if !listed[name] {
			return page, fmt.Errorf("CONSUMER.LIST.%s: the leader of consumer %s does not answer, so its ack floor is not known", stream, name)
		}
	}
	return page, nil
}
