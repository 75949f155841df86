package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Terminal reports whether somebody can be asked: whether in is a terminal.
func Terminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Confirm asks on w and reads the answer from in: y or yes is yes, all else, the end of in included, is no. An end of ctx ends it without an answer.
func Confirm(ctx context.Context, in io.Reader, w io.Writer, question string) (bool, error) {
	fmt.Fprint(w, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() { // whoever reads a terminal cannot be stopped; it is left behind
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		if !strings.HasSuffix(line, "\n") {
			fmt.Fprintln(w)
		}
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes", nil
	case <-ctx.Done():
		fmt.Fprintln(w)
		return false, ctx.Err()
	}
}
