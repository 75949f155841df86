package console

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestFitsWhatIsWrittenInSquares: what people write in other scripts takes as many cells as it has, in tables as below them.
func TestFitsWhatIsWrittenInSquares(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"abc": 3, "äöü": 3, "返金済み": 8, "한국": 4, "ﾊﾝｶｸ": 4, "e\u0301": 1, "👍": 2, "…": 1, "": 0} {
		if got := cells(text); got != want {
			t.Errorf("%q takes %d cells, want %d", text, got, want)
		}
	}
	const reason = "お客様の注文を確認しました order-1 返金済みですので二度と請求しないでください"
	columns := []Column{{Head: "ID"}, {Head: "REASON", Least: 10}, {Head: "STATUS"}}
	rows := [][]string{{"dl_1", reason, "open"}, {"dl_2", "plain", "open"}}
	for width := narrowest; width < 100; width++ {
		var b bytes.Buffer
		if _, err := Fit(&b, width, columns, rows); err != nil {
			t.Fatal(err)
		}
		status := -1
		for line := range strings.Lines(b.String()) {
			line = strings.TrimRight(line, "\n")
			if n := cells(line); n > width {
				t.Errorf("%d: %d cells: %s", width, n, line)
			}
			i := max(strings.LastIndex(line, "open"), strings.LastIndex(line, "STATUS"))
			if at := cells(line[:i]); status >= 0 && at != status {
				t.Errorf("%d: not aligned:\n%s", width, b.String())
			} else {
				status = at
			}
		}
		for line := range strings.Lines(Wrapped("reason: "+reason, width, 4)) {
			if n := cells(strings.TrimSpace(line)); n > width-4 {
				t.Errorf("%d: %d cells: %s", width, n, line)
			}
		}
	}
}

// TestWrappedInNoRoom ends also where a line has no room for one character.
func TestWrappedInNoRoom(t *testing.T) {
	t.Parallel()
	done := make(chan string, 1)
	go func() { done <- Wrapped("a 返金 b", 5, 4) }()
	select {
	case got := <-done:
		if flat := strings.Join(strings.Fields(got), ""); flat != "a返金b" {
			t.Errorf("%q", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}
