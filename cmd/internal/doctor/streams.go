package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/schema/provision"
)

// streamFacts is one stream that is there.
type streamFacts struct {
	*jetstream.StreamInfo
	clock reading
}

// checkStreams compares the streams with what provisioning wants, and changes none.
func checkStreams(ctx context.Context, x *examination) verdict {
	subjects, settings := x.settings.Streams()
	streams := subjects.Streams(settings)
	for _, s := range streams {
		if x.denied["$JS.API.STREAM.INFO."+s.Name] {
			return skipped("nats_permissions")
		}
	}
	ctx, cancel := x.limited(ctx)
	defer cancel()
	for _, s := range streams {
		before := x.clock.Now()
		stream, err := x.js.Stream(ctx, s.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return x.noAnswer(err)
		}
		info := stream.CachedInfo()
		x.streams = append(x.streams, streamFacts{info, between(before, x.clock.Now(), info.TimeStamp)})
	}
	differences, err := provision.Check(ctx, x.js, streams, nil)
	if err != nil {
		return x.noAnswer(err)
	}
	return judgeDifferences(differences, count(len(streams), "stream"))
}

// checkConsumers compares the durables with what provisioning wants, and changes none.
func checkConsumers(ctx context.Context, x *examination) verdict {
	subjects, settings := x.settings.Streams()
	consumers := subjects.Consumers(settings)
	for _, c := range consumers {
		if x.denied["$JS.API.CONSUMER.INFO."+c.Stream+"."+c.Durable] {
			return skipped("nats_permissions")
		}
	}
	ctx, cancel := x.limited(ctx)
	defer cancel()
	for _, c := range consumers {
		consumer, err := x.js.Consumer(ctx, c.Stream, c.Durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return x.noAnswer(err)
		}
		x.consumers = append(x.consumers, consumer.CachedInfo())
	}
	differences, err := provision.Check(ctx, x.js, nil, consumers)
	if err != nil {
		return x.noAnswer(err)
	}
	return judgeDifferences(differences, count(len(consumers), "durable consumer"))
}

// settingOf are the differences that a setting of ours decides about.
var settingOf = map[string]string{"max_bytes": "ONCEPAY_STREAM_MAX_BYTES", "num_replicas": "ONCEPAY_STREAM_REPLICAS", "ack_wait": "ONCEPAY_ACK_WAIT"}

func judgeDifferences(differences []provision.Difference, all string) verdict {
	if len(differences) == 0 {
		return good("%s as they should be", all)
	}
	var shown, settings []string
	missing := 0
	for _, d := range differences {
		shown = append(shown, d.String())
		if d.Setting == "" {
			missing++
		}
		if name := settingOf[d.Setting]; name != "" && !slices.Contains(settings, name) {
			settings = append(settings, name)
		}
	}
	remedy := "start `oncepay serve`, which changes what can be changed without losing messages, and says what it must leave to you"
	switch {
	case missing == len(differences):
		remedy = "start `oncepay serve`, which makes them"
	case len(settings) > 0:
		remedy = "set " + strings.Join(settings, ", ") + " to what is there if that is what you want; else " + remedy
	}
	return bad(remedy, "%s", join(shown))
}

// checkReplicas looks at the copies of every stream and durable.
func checkReplicas(_ context.Context, x *examination) verdict {
	if len(x.streams) == 0 {
		return skipped("streams")
	}
	var groups []group
	for _, s := range x.streams {
		groups = append(groups, group{"stream " + s.Config.Name, s.Config.Replicas, s.Cluster})
	}
	for _, c := range x.consumers {
		// A durable has its stream's number of copies unless it says otherwise.
		groups = append(groups, group{"consumer " + c.Stream + "/" + c.Name, c.Config.Replicas, c.Cluster})
	}
	return judgeReplicas(groups, x.live())
}

// group is something that is kept in several copies.
type group struct {
	name    string
	wanted  int // 0: not known here
	cluster *jetstream.ClusterInfo
}

// trouble says what is wrong with the copies; broken is what may stop work or lose messages.
func (g group) trouble() (broken, behind []string) {
	if g.cluster == nil {
		return nil, nil // of a single server
	}
	if g.cluster.Leader == "" {
		broken = append(broken, g.name+" has no leader")
	}
	if have := len(g.cluster.Replicas) + 1; g.wanted > have {
		broken = append(broken, fmt.Sprintf("%s has %d of %d copies", g.name, have, g.wanted))
	}
	for _, p := range g.cluster.Replicas {
		switch {
		case p.Offline:
			broken = append(broken, fmt.Sprintf("%s: %s is offline", g.name, p.Name))
		case !p.Current:
			behind = append(behind, fmt.Sprintf("%s: %s is %s behind", g.name, p.Name, count(int(p.Lag), "operation")))
		}
	}
	return broken, behind
}

func judgeReplicas(groups []group, live bool) verdict {
	var broken, behind []string
	copies := groups[0].wanted
	for _, g := range groups {
		b, l := g.trouble()
		broken, behind = append(broken, b...), append(behind, l...)
		if g.wanted > 0 {
			copies = min(copies, g.wanted)
		}
	}
	switch {
	case len(broken) > 0:
		return bad("start the servers that are away; look at their logs and disks", "%s", join(broken))
	case len(behind) > 0:
		return warn("wait until they have caught up, and look again before you stop a server", "%s", join(behind))
	case copies < 3 && live:
		return warn("run three servers and set ONCEPAY_STREAM_REPLICAS=3", "%d of 3 copies of each stream: one disk less, and intents that were acknowledged may be lost", copies)
	case copies == 1:
		return good("one copy of each stream, as is enough in test mode")
	}
	return good("%d copies of each stream and durable, all current", copies)
}

// checkSpace looks at how full the streams are.
func checkSpace(ctx context.Context, x *examination) verdict {
	if len(x.streams) == 0 {
		return skipped("streams")
	}
	return judgeSpace(x.streams, otherReaders(ctx, x))
}

// A stream that refuses new messages is full at its bound; one that drops its oldest is always full once it has been.
const spaceDropWarn = 95

const behindRemedy = "let these consumers catch up, or delete them (`nats consumer rm STREAM CONSUMER`): until then nothing that they have not acked is trimmed"

// judgeSpace judges how full the streams are. behind are durables of others, for which what is done is kept: no worker can change that.
func judgeSpace(streams []streamFacts, behind []string) verdict {
	var refusing, full, dropping, shown []string
	for _, s := range streams {
		if s.Config.MaxBytes <= 0 {
			continue // a difference that checkStreams shows
		}
		used := percent(s.State.Bytes, s.Config.MaxBytes)
		text := fmt.Sprintf("%s %d%% of %s", s.Config.Name, used, size(uint64(s.Config.MaxBytes)))
		shown = append(shown, text)
		switch {
		case s.Config.Discard == jetstream.DiscardNew && used >= 99:
			refusing = append(refusing, text)
		case s.Config.Discard == jetstream.DiscardNew && used > spaceWarn:
			full = append(full, text)
		case s.Config.Discard == jetstream.DiscardOld && used > spaceDropWarn:
			dropping = append(dropping, text)
		}
	}
	switch {
	case len(refusing) > 0 && len(behind) > 0:
		return bad(behindRemedy, "full, new intents are refused: %s; kept for consumers that are not the workers' and do not ack: %s", join(refusing), join(behind))
	case len(full) > 0 && len(behind) > 0:
		return warn(behindRemedy, "filling up: %s; kept for consumers that are not the workers' and do not ack: %s", join(full), join(behind))
	case len(refusing) > 0:
		return bad("start workers, which work it off and trim what is done; or raise ONCEPAY_STREAM_MAX_BYTES (see the disks first)", "full, new intents are refused: %s", join(refusing))
	case len(full) > 0:
		return warn("see that workers run and keep up (consumer_lag): they trim what is done; or raise ONCEPAY_STREAM_MAX_BYTES", "filling up: %s", join(full))
	case len(dropping) > 0:
		return warn("raise ONCEPAY_STREAM_MAX_BYTES if whoever reads them needs them longer", "full, the oldest are dropped before their time: %s", join(dropping))
	}
	return good("%s", strings.Join(shown, ", "))
}

// checkLag looks at how far the durables are behind, and whether anybody works on it.
func checkLag(_ context.Context, x *examination) verdict {
	if len(x.consumers) == 0 {
		return skipped("consumers")
	}
	var lanes []lane
	for _, c := range x.consumers {
		l := lane{ConsumerInfo: c}
		for _, s := range x.streams {
			if s.Config.Name == c.Stream {
				l.state = s.State
			}
		}
		lanes = append(lanes, l)
	}
	return judgeLag(lanes)
}

// lane is a durable and the stream that it reads.
type lane struct {
	*jetstream.ConsumerInfo
	state jetstream.StreamState
}

// idle is for how long nothing has been acked although there is something to do, 0 when there is nothing; acked says whether anything ever was.
func (l lane) idle() (since time.Duration, acked bool) {
	if l.NumPending == 0 && l.NumAckPending == 0 {
		return 0, true
	}
	if l.AckFloor.Last != nil {
		return max(l.TimeStamp.Sub(*l.AckFloor.Last), 0), true
	}
	last := l.state.FirstTime // the oldest message waits since it was stored
	if last.IsZero() {
		last = l.Created
	}
	return max(l.TimeStamp.Sub(last), 0), false
}

func judgeLag(lanes []lane) verdict {
	var shown, idle, paused []string
	for _, l := range lanes {
		text := fmt.Sprintf("%s: %d waiting, %d in flight", l.Name, l.NumPending, l.NumAckPending)
		since, acked := l.idle()
		switch {
		case since > 0 && acked:
			text += ", last ack " + age(since) + " ago"
		case since > 0:
			text += ", none acked, the oldest of " + age(since) + " ago"
		}
		shown = append(shown, text)
		switch {
		case l.Paused:
			paused = append(paused, l.Stream+"/"+l.Name)
		case since > max(overdue, 2*l.Config.AckWait) && l.NumWaiting == 0:
			idle = append(idle, text)
		}
	}
	switch {
	case len(paused) > 0:
		return warn("resume it: `nats consumer resume STREAM NAME`", "paused by somebody: %s", join(paused))
	case len(idle) > 0:
		return warn("is a worker running (`oncepay serve` with the role worker)? Its log and its metrics tell", "nobody pulls; %s", join(idle))
	}
	return good("%s", strings.Join(shown, "; "))
}
