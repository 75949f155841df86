package app

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/schema"
)

// The roles that this version can play.
const (
	RoleIngress = "ingress" // serves the HTTP API
	RoleWorker  = "worker"  // takes intents and due tickets to Stripe
	RoleRelay   = "relay"   // publishes the outbox
)

// Roles lists the roles that are built.
func Roles() []string { return []string{RoleIngress, RoleWorker, RoleRelay} }

func text(field func(*Settings) *string) func(*Settings, string) error {
	return func(s *Settings, v string) error { *field(s) = v; return nil }
}

// secret is a value, or file:/path of one, so that it need not stand in an environment.
func secret(field func(*Settings) *string, check func(string) error) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		if path, ok := strings.CutPrefix(v, "file:"); ok {
			data, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
			}
			if v = strings.TrimSpace(string(data)); v == "" {
				return errors.New("the file is empty")
			}
		}
		if err := check(v); err != nil {
			return err
		}
		*field(s) = v
		return nil
	}
}

func boolean(field func(*Settings) *bool) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return errors.New("must be true or false")
		}
		*field(s) = b
		return nil
	}
}

func number(field func(*Settings) *int, least, most int) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		*field(s) = n
		return nil
	}
}

func whole(field func(*Settings) *int64, least, most int64) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		switch {
		case (err != nil || n < least) && most == math.MaxInt64:
			return fmt.Errorf("must be a whole number, at least %d", least)
		case err != nil, n < least, n > most:
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		*field(s) = n
		return nil
	}
}

func duration(field func(*Settings) *time.Duration, least, most time.Duration) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > most {
			return fmt.Errorf("must be a duration such as 30s or 5m, from %s to %s", least, most)
		}
		*field(s) = d
		return nil
	}
}

func oneOf(field func(*Settings) *string, words ...string) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		if !slices.Contains(words, v) {
			return errors.New("must be one of " + strings.Join(words, ", "))
		}
		*field(s) = v
		return nil
	}
}

func prefix(s *Settings, v string) error {
	if _, err := schema.NewSubjects(v); err != nil {
		return err
	}
	s.SubjectPrefix = v
	return nil
}

// namespace goes into hashes beside zero bytes, and into metadata.
func namespace(s *Settings, v string) error {
	if v == "" || len(v) > 63 || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("must be 1 to 63 printable ASCII characters without spaces")
	}
	s.Namespace = v
	return nil
}

// replicas are what JetStream can keep a majority of.
func replicas(s *Settings, v string) error {
	if v != "1" && v != "3" && v != "5" {
		return errors.New("must be 1, 3 or 5")
	}
	s.StreamReplicas = int(v[0] - '0')
	return nil
}

// The bounds of a rate: no budget can be counted by less, and none is needed for more.
const (
	rateMin = 0.001
	rateMax = 100_000
)

func perSecond(field func(*Settings) *float64) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		r, err := strconv.ParseFloat(v, 64)
		if err != nil || r != 0 && !(r >= rateMin && r <= rateMax) {
			return fmt.Errorf("must be 0 (unlimited), or a number from %v to %v", rateMin, rateMax)
		}
		*field(s) = r
		return nil
	}
}

func roles(s *Settings, v string) error {
	s.Roles = nil
	for role := range strings.SplitSeq(v, ",") {
		role = strings.TrimSpace(role)
		if !slices.Contains(Roles(), role) {
			return errors.New("must be a list of " + strings.Join(Roles(), ", "))
		}
		if !slices.Contains(s.Roles, role) {
			s.Roles = append(s.Roles, role)
		}
	}
	return nil
}
