package provision

import (
	"errors"
	"fmt"
	"strings"
)

// ErrFixed is wrapped where JetStream has no way to change a setting of what is
// already there.
var ErrFixed = errors.New("cannot be changed")

// ErrWouldLose is wrapped where a change could drop stored messages, make a
// consumer pass them over, or make them less durable. Nothing was changed.
var ErrWouldLose = errors.New("refused, since it could lose messages")

// Difference is one setting that is not as it should be.
type Difference struct {
	// Object is "stream NAME" or "consumer STREAM/NAME".
	Object string
	// Setting is JetStream's own name for it, as in its API; "" when the whole
	// object is missing.
	Setting string
	// Have and Want are the values as text. Have is "" when the object is missing.
	Have, Want string
}

// String says what differs in one line.
func (d Difference) String() string {
	if d.Setting == "" {
		return d.Object + " is missing"
	}
	return fmt.Sprintf("%s: %s is %s, want %s", d.Object, d.Setting, d.Have, d.Want)
}

// missing is the Difference of an object that is not there.
func missing(object string) []Difference { return []Difference{{Object: object, Want: "present"}} }

// setting is one property of a configuration.
type setting[C any] struct {
	name string
	// fixed properties keep the value they were created with.
	fixed bool
	value func(C) string
}

// compare lists the settings in which have and want differ.
func compare[C any](object string, settings []setting[C], have, want C) []Difference {
	var out []Difference
	for _, s := range settings {
		if h, w := s.value(have), s.value(want); h != w {
			out = append(out, Difference{Object: object, Setting: s.name, Have: h, Want: w})
		}
	}
	return out
}

// fixed returns an error that names every setting among the differences that
// keeps the value it was created with.
func fixed[C any](settings []setting[C], differences []Difference, remedy string) error {
	var errs []error
	for _, d := range differences {
		for _, s := range settings {
			if s.fixed && s.name == d.Setting {
				errs = append(errs, fmt.Errorf("%s: %s %w from %s to %s: %s", d.Object, d.Setting, ErrFixed, d.Have, d.Want, remedy))
			}
		}
	}
	return errors.Join(errs...)
}

// wouldLose is the refusal of one change.
func wouldLose(object, name, change, remedy string) error {
	return fmt.Errorf("%s: %s: %s: %w: %s", object, name, change, ErrWouldLose, remedy)
}

// names lists the settings that differ, for the error of an update that the
// server itself refused.
func names(differences []Difference) string {
	list := make([]string, len(differences))
	for i, d := range differences {
		list[i] = fmt.Sprintf("%s from %s to %s", d.Setting, d.Have, d.Want)
	}
	return strings.Join(list, ", ")
}
