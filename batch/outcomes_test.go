package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestOutcomes: each row's payment is named by its row, whatever stands between rows; only what did not succeed is read by itself.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.status = func(key string, i, _ int) payments.Status {
		switch {
		case key == "run.000005" && i == 7:
			return payments.StatusFailed
		case key == "run.000002" && i == 0:
			return payments.StatusNeedsReview
		}
		return payments.StatusSucceeded
	}
	data := bytes.Replace(csvOf(750), []byte("\n"), []byte("\n\n"), 1) // a blank line is no row
	plan := planOf(t, "run", data)
	if _, err := publish(t, f, plan, new(clock)); err != nil {
		t.Fatal(err)
	}
	var all []Outcome
	o := OutcomesOptions{Concurrency: 4, Patience: new(clock).patience(time.Minute), Outcome: func(o Outcome) error { all = append(all, o); return nil }}
	if err := Outcomes(t.Context(), plan, f.door(time.Minute), o); err != nil || len(all) != 750 || f.reads != 2 {
		t.Fatalf("%d rows, %d reads, %v", len(all), f.reads, err)
	}
	for i, one := range all {
		key := fmt.Sprintf("run.%06d::%d", i/100, i%100)
		status := payments.StatusSucceeded
		switch i {
		case 200:
			status = payments.StatusNeedsReview
		case 507:
			status = payments.StatusFailed
		}
		if one.Row != int64(i+1) || one.IdempotencyKey != key || one.Status != string(status) || one.ID != payments.NewID("t", key).Format(payments.KindCharge) || (one.Failure != nil) != (i == 507) {
			t.Fatalf("%d: %+v", i, one)
		}
	}
	if failed := all[507]; *failed.Reason != "card_declined" || *failed.Failure.DeclineCode != "insufficient_funds" {
		t.Errorf("%+v", failed)
	}
	// Only what is asked for is repeated, and enough is enough.
	_, before := f.counts()
	enough := errors.New("enough")
	all = nil
	o.Batch = func(i int) bool { return i == 2 || i == 5 || i == 6 }
	o.Outcome = func(o Outcome) error {
		if all = append(all, o); o.Row == 508 {
			return enough
		}
		return nil
	}
	if err := Outcomes(t.Context(), plan, f.door(time.Minute), o); !errors.Is(err, enough) || len(all) != 108 || all[0].Row != 201 {
		t.Errorf("%d rows, %v", len(all), err)
	}
	if _, after := f.counts(); after-before != 2 {
		t.Errorf("%d batches were repeated", after-before)
	}
}

// TestOutcomesOfAChangedFile: a file that is not what was paid is not sent again.
func TestOutcomesOfAChangedFile(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	data := csvOf(300)
	source := func() (io.Reader, error) { return bytes.NewReader(data), nil }
	plan, err := Check(t.Context(), source, FileOptions{Run: "run", Format: CSV})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := publish(t, f, plan, new(clock)); err != nil {
		t.Fatal(err)
	}
	for _, changed := range [][]byte{csvOf(200), csvOf(250), bytes.Replace(data, []byte("\n350,"), []byte("\n351,"), 1), append(csvOf(200), `"`...)} {
		data = changed
		rows := 0
		o := OutcomesOptions{Patience: new(clock).patience(time.Minute), Outcome: func(Outcome) error { rows++; return nil }}
		if err := Outcomes(t.Context(), plan, f.door(time.Minute), o); !errors.Is(err, ErrChanged) || rows != 200 {
			t.Errorf("%v after %d rows", err, rows)
		}
	}
	f.holds(planOf(t, "run", csvOf(300)))
}

// TestAdds: rows that are new to a run that was begun are told of before any of them is sent, and only then.
func TestAdds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		had  int
		gaps []int
		file int
		want string
	}{
		"the same":         {had: 1600, file: 1600},
		"nothing before":   {file: 500},
		"longer":           {had: 1600, file: 2050, want: "1600 450"},
		"gaps":             {had: 1600, gaps: []int{0, 3, 14}, file: 1600, want: "1300 300"},
		"gaps, and longer": {had: 1600, gaps: []int{0, 3}, file: 1700, want: "1400 300"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			if c.had > 0 {
				if _, err := publish(t, f, planOf(t, "run", csvOf(c.had)), new(clock)); err != nil {
					t.Fatal(err)
				}
			}
			f.settle()
			for _, i := range c.gaps {
				f.forget(Key("run", i))
			}
			before, _ := f.counts()
			told := ""
			plan := planOf(t, "run", csvOf(c.file))
			sent, err := Publish(t.Context(), plan, f.door(time.Minute), PublishOptions{Concurrency: 8, Patience: new(clock).patience(time.Minute), Adds: func(had, adds int64) {
				if now, _ := f.counts(); now != before {
					t.Errorf("%d batches, then %d", before, now)
				}
				told += fmt.Sprintf("%d %d", had, adds)
			}})
			if err != nil || told != c.want || sent.Rows != int64(c.file) || sent.New != (c.want != "" || c.had == 0) {
				t.Errorf("%q, want %q; %+v, %v", told, c.want, sent, err)
			}
			f.holds(plan)
		})
	}
}

// TestFileThatWasCut: what is said of a shorter file is what is known, and no guess of how it came about.
func TestFileThatWasCut(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	if _, err := publish(t, f, planOf(t, "run", csvOf(250)), new(clock)); err != nil {
		t.Fatal(err)
	}
	for rows, want := range map[int]string{
		1:   "under --key run rows from ",
		150: "under --key run rows from 201 on were sent before (batch run.000002), and this file has only 150 rows: run a file that begins with every row that was sent, or pay this one under another key",
		249: "rows 201 to 249 (batch run.000002) are not those that were begun under this key: this is not the same file, it differs in the number of rows; run the file",
		251: "rows 201 to 251 (batch run.000002) are not those that were begun under this key: this is not the same file, it differs in the number of rows; run the file",
	} {
		sent, err := publish(t, f, planOf(t, "run", csvOf(rows)), new(clock))
		if err == nil || sent.New || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "more rows") {
			t.Errorf("%d rows: %+v, %v", rows, sent, err)
		}
	}
	f.holds(planOf(t, "run", csvOf(250)))
	if text := planOf(t, "run", csvOf(1)).foreign("other").Error(); !strings.Contains(text, "names run as its parent") || strings.Contains(text, "other:") {
		t.Errorf("%s", text)
	}
}
