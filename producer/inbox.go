package producer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// inboxSize is how many acknowledgements may wait to be read: those of one group,
// and of a few before it that were given up and answered late.
const inboxSize = 4 * atomicMax

// inbox is where the acknowledgements of one sender's messages arrive. They are
// read by the goroutine that waits for them, without another one in between: for a
// lone message the difference is a tenth of its time. One goroutine at a time.
type inbox struct {
	sub     *nats.Subscription
	arrived chan *nats.Msg
	prefix  string // of the reply subjects of this round
	subject string
	round   uint64
}

func newInbox(nc *nats.Conn) (*inbox, error) {
	b := &inbox{arrived: make(chan *nats.Msg, inboxSize), subject: nc.NewInbox()}
	var err error
	if b.sub, err = nc.ChanSubscribe(b.subject+".*.*", b.arrived); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return b, nil
}

// close ends the subscription.
func (b *inbox) close() { _ = b.sub.Unsubscribe() }

// begin starts a round: answers to what was sent before it are not its own.
func (b *inbox) begin() {
	for {
		select {
		case <-b.arrived:
			continue
		default:
		}
		break
	}
	b.round++
	b.prefix = b.subject + "." + strconv.FormatUint(b.round, 36) + "."
}

// reply is the reply subject of the i-th message of the round.
func (b *inbox) reply(i int) string { return b.prefix + strconv.Itoa(i) }

// index is the message that m answers, if it is one of the round.
func (b *inbox) index(m *nats.Msg) (i int, ok bool) {
	text, ok := strings.CutPrefix(m.Subject, b.prefix)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(text)
	return i, err == nil
}

// answerTo is what a stream says to a message: where it stands, or why it does not.
type answerTo struct {
	Error     *jetstream.APIError `json:"error"`
	Stream    string              `json:"stream"`
	Sequence  uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
}

// read returns what an acknowledgement says.
func read(m *nats.Msg) (ack, error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return ack{}, nats.ErrNoResponders
	}
	if a, ok := readPlain(m.Data); ok {
		return a, nil
	}
	var a answerTo
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return ack{}, jetstream.ErrInvalidJSAck
	}
	switch {
	case a.Error != nil:
		return ack{}, a.Error
	case a.Stream == "" || a.Sequence == 0:
		return ack{}, jetstream.ErrInvalidJSAck
	}
	return ack{stream: a.Stream, sequence: a.Sequence, duplicate: a.Duplicate}, nil
}

// readPlain reads the acknowledgement of a stored message in the one form in which
// servers write it. It is read for every message, and a JSON decoder is not cheap.
func readPlain(data []byte) (a ack, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"stream":"`))
	if !ok {
		return ack{}, false
	}
	name, rest, ok := bytes.Cut(rest, []byte(`", "seq":`))
	if !ok || len(name) == 0 || bytes.ContainsFunc(name, needsDecoder) {
		return ack{}, false
	}
	digits, ok := bytes.CutSuffix(rest, []byte("}"))
	if !ok || len(digits) == 0 || digits[0] == '0' {
		return ack{}, false
	}
	sequence, err := strconv.ParseUint(string(digits), 10, 64)
	return ack{stream: string(name), sequence: sequence}, err == nil
}

func needsDecoder(r rune) bool { return r <= ' ' || r >= 0x7F || r == '"' || r == '\\' }
