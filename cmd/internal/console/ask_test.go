package console

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
)

func TestConfirm(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{"y\n": true, "Y\n": true, " yes \n": true, "yes": true, "n\n": false, "\n": false, "": false, "yep\n": false, "no\ny\n": false} {
		var out bytes.Buffer
		got, err := Confirm(t.Context(), strings.NewReader(in), &out, "replay 3 dead letters?")
		if got != want || err != nil || !strings.HasPrefix(out.String(), "replay 3 dead letters? [y/N] ") {
			t.Errorf("%q: %v, %v, %q", in, got, err, out.String())
		}
	}
	// Ctrl-C while it waits for an answer.
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Confirm(ctx, r, io.Discard, "?"); got || err == nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if Terminal(strings.NewReader("")) || Terminal(nil) || Terminal(r) {
		t.Error("nobody can be asked there")
	}
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "999": "999", "1000": "1,000", "10000 dead letters": "10,000 dead letters", "1234567.89 USD": "1,234,567.89 USD", "-1000": "-1,000", "": "", "none": "none",
	} {
		if got := Grouped(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
