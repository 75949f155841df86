package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// subjectUserInfo is where every user may ask the server for its own rights, if it may ask that.
const subjectUserInfo = "$SYS.REQ.USER.INFO"

// userInfo is what the server says of our user.
type userInfo struct {
	user      string
	publish   *rules // nil: everything
	subscribe *rules // nil: everything
	replies   bool   // it may answer whatever it received
	clock     reading
}

// checkPermissions learns the user's rights without using any: to publish an intent, an event or an ack in order to see whether it may be done
// would be read by somebody. The server tells them on request. Where that may not be asked, reading is tried, and the rest is not known.
func checkPermissions(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	needs := rightsOf(x.settings)
	info, err := x.askUserInfo(ctx)
	x.denied = map[string]bool{}
	if err == nil {
		x.permissions = info
		missing := missingRights(info, needs)
		for _, subject := range append([]string{subjectInfo}, needs.read...) {
			x.denied[subject] = !info.publish.permits(subject) || !info.subscribe.permits(inbox)
		}
		return judgePermissions(x.secrets.hide(info.user), info, missing)
	}
	var refused *violation
	if errors.As(err, &refused) && refused.subscribe {
		for _, subject := range append([]string{subjectInfo}, needs.read...) {
			x.denied[subject] = true
		}
		return bad("let the user subscribe to "+inbox, "the user may not subscribe to %s: no answer reaches it", inbox)
	}
	return x.tryReading(ctx, needs)
}

// missingRights lists what the user may not do and must be able to.
func missingRights(u *userInfo, needs rights) []string {
	var missing []string
	if !u.subscribe.permits(inbox) {
		missing = append(missing, "subscribe to "+inbox)
	}
	for _, subject := range slices.Concat(needs.read, needs.write) {
		if !u.publish.permits(subject) {
			missing = append(missing, "publish to "+subject)
		}
	}
	for _, subject := range needs.ack {
		// An ack answers the message that it is for.
		if !u.publish.permits(subject) && !u.replies {
			missing = append(missing, "publish to "+subject)
		}
	}
	return missing
}

func judgePermissions(user string, u *userInfo, missing []string) verdict {
	who := "the user"
	if user != "" {
		who = "user " + user
	}
	switch {
	case len(missing) > 0:
		return bad(grant(missing), "%s may not %s", who, join(missing))
	case u.publish == nil && u.subscribe == nil:
		return good("%s may do everything in its account", who)
	}
	return good("%s has every right that these roles need", who)
}

// grant is the remedy for rights that are missing: all of them.
func grant(missing []string) string {
	return "on the servers, let the user " + strings.Join(missing, ", ")
}

// askUserInfo asks the server. A *violation says that this may not be asked.
func (x *examination) askUserInfo(ctx context.Context) (*userInfo, error) {
	before := x.clock.Now()
	data, err := x.violations.request(ctx, x.nc, subjectUserInfo)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Server struct {
			Time time.Time `json:"time"`
		} `json:"server"`
		Data *struct {
			User        string `json:"user"`
			Permissions *struct {
				Publish   *rules          `json:"publish"`
				Subscribe *rules          `json:"subscribe"`
				Responses json.RawMessage `json:"responses"`
			} `json:"permissions"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	if answer.Data == nil {
		return nil, errors.New("the server does not say")
	}
	info := &userInfo{user: answer.Data.User, clock: between(before, x.clock.Now(), answer.Server.Time)}
	if p := answer.Data.Permissions; p != nil {
		info.publish, info.subscribe, info.replies = p.Publish, p.Subscribe, len(p.Responses) > 0 && string(p.Responses) != "null"
	}
	return info, nil
}

// tryReading asks what does no harm, and says what cannot be known.
func (x *examination) tryReading(ctx context.Context, needs rights) verdict {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, subject := range append([]string{subjectInfo}, needs.read...) {
		wg.Go(func() {
			_, err := x.violations.request(ctx, x.nc, subject)
			var refused *violation
			mu.Lock()
			defer mu.Unlock()
			x.denied[subject] = errors.As(err, &refused)
		})
	}
	wg.Wait()
	var missing []string
	for _, subject := range needs.read {
		if x.denied[subject] {
			missing = append(missing, "publish to "+subject)
		}
	}
	if len(missing) > 0 {
		return bad(grant(missing), "the user may not %s", join(missing))
	}
	return warn("let the user publish to "+subjectUserInfo+", by which the server tells it its own rights",
		"reading is permitted; whether the user may pull, ack and publish (%s) cannot be known without doing it", join(slices.Concat(needs.write, needs.ack)))
}

// violation is the server's word that something is not permitted.
type violation struct {
	subject   string
	subscribe bool
}

// Error says what is not permitted.
func (v *violation) Error() string {
	if v.subscribe {
		return "the user may not subscribe to " + v.subject
	}
	return "the user may not publish to " + v.subject
}

// violations collects what the server refuses on a connection. It says so aside, and the request gets no answer.
type violations struct {
	mu      sync.Mutex
	refused []*violation
	changed chan struct{} // closed, and made anew, when there is another
}

var violationText = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

func newViolations(nc *nats.Conn) *violations {
	v := &violations{changed: make(chan struct{})}
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if m := violationText.FindStringSubmatch(app.OneLine(err.Error())); m != nil {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.refused = append(v.refused, &violation{subject: m[2], subscribe: strings.EqualFold(m[1], "subscription")})
			close(v.changed)
			v.changed = make(chan struct{})
		}
	})
	return v
}

// of returns the refusal that leaves a request to the subject without an answer, and a channel that is closed when there is another.
func (v *violations) of(subject string) (*violation, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.refused {
		if r.subscribe && overlaps(r.subject, inbox) || !r.subscribe && r.subject == subject {
			return r, v.changed
		}
	}
	return nil, v.changed
}

// request asks with an empty body, and ends at once when the server refuses it: a *violation.
func (v *violations) request(ctx context.Context, nc *nats.Conn, subject string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		for {
			refused, changed := v.of(subject)
			if refused != nil {
				cancel(refused)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	msg, err := nc.RequestWithContext(ctx, subject, nil)
	var refused *violation
	if err != nil && errors.As(context.Cause(ctx), &refused) {
		err = refused
	}
	cancel(nil)
	if err != nil {
		return nil, err
	}
	return msg.Data, nil
}
