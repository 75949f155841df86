package doctor

import (
	"slices"
	"strings"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/schema"
)

// covers reports whether everything that the subject stands for, which may have wildcards itself, is matched by the pattern.
func covers(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return len(s) > i
		case i >= len(s), s[i] == ">":
			return false
		case token != "*" && token != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}

// overlaps reports whether some subject is matched by both.
func overlaps(a, b string) bool {
	p, s := strings.Split(a, "."), strings.Split(b, ".")
	for i := range p {
		switch {
		case i >= len(s):
			return false
		case p[i] == ">" || s[i] == ">":
			return true
		case p[i] != "*" && s[i] != "*" && p[i] != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}

// rules are a user's rights to publish or to subscribe. An empty Allow allows everything.
type rules struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

// permits reports whether the rules leave nothing of the subject out.
func (r *rules) permits(subject string) bool {
	if r == nil {
		return true
	}
	allowed := len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, func(a string) bool { return covers(a, subject) })
	return allowed && !slices.ContainsFunc(r.Deny, func(d string) bool { return overlaps(d, subject) })
}

// inbox is where answers come to.
const inbox = "_INBOX.>"

// rights are the subjects that a serving process publishes to; it subscribes to nothing but its inbox. Those of reading are asked by checks too.
type rights struct {
	read  []string
	write []string
	ack   []string
}

// rightsOf lists what the roles of the settings need. Streams and durables are made at a start only where they are missing, and may be made by
// somebody else; so that is not among them.
func rightsOf(s app.Settings) rights {
	subjects, settings := s.Streams()
	r := rights{}
	for _, stream := range subjects.Streams(settings) {
		r.read = append(r.read, "$JS.API.STREAM.INFO."+stream.Name)
	}
	for _, c := range subjects.Consumers(settings) {
		r.read = append(r.read, "$JS.API.CONSUMER.INFO."+c.Stream+"."+c.Durable)
		if slices.Contains(s.Roles, app.RoleWorker) {
			r.write = append(r.write, "$JS.API.CONSUMER.MSG.NEXT."+c.Stream+"."+c.Durable, // pull
				"$JS.API.STREAM.MSG.GET."+c.Stream, "$JS.API.STREAM.MSG.DELETE."+c.Stream, // erase a card number, and see that it is gone
				"$JS.API.CONSUMER.LIST."+c.Stream, "$JS.API.STREAM.PURGE."+c.Stream) // trim what is done
			r.write = append(r.write, "$JS.API.CONSUMER.CREATE."+c.Stream+".*", "$JS.API.CONSUMER.MSG.NEXT."+c.Stream+".*") // a rewind reads the stream again
			r.ack = append(r.ack, "$JS.ACK."+c.Stream+"."+c.Durable+".>")
		}
	}
	if slices.Contains(s.Roles, app.RoleWorker) { // the copy of the database's mark
		bucket := subjects.BucketMark()
		r.read = append(r.read, "$JS.API.STREAM.INFO."+schema.StreamOfBucket(bucket))
		r.write = append(r.write, "$JS.API.STREAM.MSG.GET."+schema.StreamOfBucket(bucket), "$KV."+bucket+"."+schema.KeyMark)
	}
	if slices.Contains(s.Roles, app.RoleRelay) {
		prefix := prefixOf(s)
		r.write = append(r.write, prefix+"."+string(schema.SubjectEvent)+".*.*", prefix+"."+string(schema.SubjectDead)+".*",
			prefix+"."+string(schema.SubjectIntent)+".*", prefix+"."+string(schema.SubjectBulk)+".*") // intents that came by HTTP, and of batches
	}
	return r
}

func prefixOf(s app.Settings) string {
	if s.SubjectPrefix == "" {
		return schema.DefaultPrefix
	}
	return s.SubjectPrefix
}
