package batch

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// RefusedError is a chunk that the API does not accept, and never will as it is.
type RefusedError struct {
	Key         string // the chunk's
	First, Last int64  // its rows, from 1
	Run         string // the run's key
	Problem     *ProblemError
}

// refusedMax is how many members are named at most.
const refusedMax = 10

// Error names the rows, what is wrong with them and what to do.
func (e *RefusedError) Error() string {
	place := fmt.Sprintf("rows %d to %d (batch %s)", e.First, e.Last, e.Key)
	switch e.Problem.Status {
	case http.StatusUnprocessableEntity:
		if e.Problem.Code != codeReused {
			break
		}
		text := place + " are not those that were begun under this key: this is not the same file"
		if differs := e.places(e.Problem.Differs); differs != "" {
			text += ", it differs in " + differs
		}
		return text + "; run the file that was begun under --key " + e.Run + ", or pay this one under another key"
	case http.StatusBadRequest:
		if len(e.Problem.Errors) == 0 {
			break
		}
		var wrong []string
		for i, f := range e.Problem.Errors {
			if i == refusedMax {
				wrong = append(wrong, "and more")
				break
			}
			wrong = append(wrong, e.place(f.Field)+": "+f.Message)
		}
		return place + " were refused: " + strings.Join(wrong, "; ")
	case http.StatusUnauthorized, http.StatusForbidden:
		return e.Problem.Error()
	}
	return place + " were refused: " + e.Problem.Error()
}

// OtherFile says that other rows were sent under this key before.
func (e *RefusedError) OtherFile() bool {
	return e.Problem.Status == http.StatusUnprocessableEntity && e.Problem.Code == codeReused
}

// Unwrap returns the API's own words.
func (e *RefusedError) Unwrap() error { return e.Problem }

// places names members of the chunk by the rows of the file.
func (e *RefusedError) places(fields []string) string {
	var names []string
	for i, f := range fields {
		if i == refusedMax {
			names = append(names, "and more")
			break
		}
		names = append(names, e.place(f))
	}
	return strings.Join(names, ", ")
}

// place makes "row 104, column amount" of payments[3].amount in the batch of rows 101 to 200.
func (e *RefusedError) place(field string) string {
	switch field {
	case "payments":
		return "the number of rows"
	case "parent":
		return "the run's key"
	}
	rest, ok := strings.CutPrefix(field, "payments[")
	number, member, closed := strings.Cut(rest, "]")
	i, err := strconv.ParseUint(number, 10, 31)
	if !ok || !closed || err != nil {
		return field
	}
	place := fmt.Sprintf("row %d", e.First+int64(i))
	if member = strings.TrimPrefix(member, "."); member != "" {
		place += ", column " + member
	}
	return place
}
