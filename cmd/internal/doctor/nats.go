package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// NATS 2.12 brought atomic batches, with which intents are published; the tests run with 2.15.
var (
	natsMin    = [2]int{2, 12}
	natsTested = [2]int{2, 15}
)

// checkNATS connects.
func checkNATS(_ context.Context, x *examination) verdict {
	nc, js, err := app.ConnectNATSOnce(x.settings, "oncepay doctor")
	if err != nil {
		var usage *app.UsageError
		if errors.As(err, &usage) {
			return bad("correct user, password, credentials or certificates (ONCEPAY_NATS_URL, _CREDS, _CA, _CERT, _KEY), or the user's entry on the servers", "%s", x.said(err))
		}
		return bad("start NATS, or correct host and port in ONCEPAY_NATS_URL; look at firewalls between", "%s", x.said(err))
	}
	x.onClose(nc.Close)
	x.nc, x.js, x.violations = nc, js, newViolations(nc)
	where := "a single server"
	if cluster := nc.ConnectedClusterName(); cluster != "" {
		where = "cluster " + cluster
	}
	return good("connected to %s of %s", nc.ConnectedServerName(), where)
}

// checkVersions looks at every server that can be seen.
func checkVersions(_ context.Context, x *examination) verdict {
	versions := map[string]string{x.nc.ConnectedServerName(): x.nc.ConnectedServerVersion()}
	for _, m := range x.monitors {
		if m.err == nil {
			versions[m.name] = m.version
		}
	}
	return judgeVersions(versions)
}

func judgeVersions(versions map[string]string) verdict {
	var tooOld, untested, all []string
	for server, version := range versions {
		all = append(all, version)
		switch v, ok := release(version); {
		case !ok || slices.Compare(v[:], natsMin[:]) < 0:
			tooOld = append(tooOld, server+" "+version)
		case slices.Compare(v[:], natsTested[:]) < 0:
			untested = append(untested, server+" "+version)
		}
	}
	for _, list := range [][]string{tooOld, untested, all} {
		slices.Sort(list)
	}
	remedy := fmt.Sprintf("upgrade NATS to %d.%d or newer, one server after another", natsTested[0], natsTested[1])
	switch {
	case len(tooOld) > 0:
		return bad(remedy, "%s: %d.%d or newer is needed, for atomic batches", join(tooOld), natsMin[0], natsMin[1])
	case len(untested) > 0:
		return warn(remedy, "%s: works, but %d.%d is what this version is tested with", join(untested), natsTested[0], natsTested[1])
	}
	return good("%s on %s that can be seen (%d.%d or newer is needed)", join(slices.Compact(all)), count(len(versions), "server"), natsMin[0], natsMin[1])
}

// release reads major and minor of a version such as 2.15.3 or v2.12.0-RC.1.
func release(version string) (v [2]int, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return v, false
	}
	for i := range v {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

// subjectInfo is where JetStream is asked about the account.
const subjectInfo = "$JS.API.INFO"

// checkJetStream asks whether there is JetStream for this account, and how much room it has.
func checkJetStream(ctx context.Context, x *examination) verdict {
	if x.denied[subjectInfo] {
		return warn("let the user publish to "+subjectInfo+": without it every start waits for an answer that does not come", "not known: the user may not ask %s", subjectInfo)
	}
	ctx, cancel := x.limited(ctx)
	defer cancel()
	info, err := x.js.AccountInfo(ctx)
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return bad("enable JetStream on the servers (`jetstream { store_dir: ..., sync_interval: always }`) and for the user's account", "no JetStream answers")
	case err != nil:
		return x.noAnswer(err)
	}
	return judgeJetStream(info)
}

// noAnswer is the verdict of a question to JetStream that ended in an error.
func (x *examination) noAnswer(err error) verdict {
	return bad("see that most of the servers of the cluster are up and know a leader (`nats server report jetstream`), or give it longer with --timeout", "JetStream: %s", x.said(err))
}

// spaceWarn is the part of a bound from which on somebody should look, in percent.
const spaceWarn = 70

func judgeJetStream(info *jetstream.AccountInfo) verdict {
	tiers := map[string]jetstream.Tier{"": info.Tier}
	for name, tier := range info.Tiers {
		tiers[name] = tier
	}
	streams := info.Streams
	for name, tier := range tiers {
		if name != "" && info.Streams == 0 {
			streams += tier.Streams
		}
		if most := tier.Limits.MaxStore; most > 0 && percent(tier.Store, most) > spaceWarn {
			return warn("raise the account's limit on the servers, or remove streams that are not needed", "the account uses %s of %s", size(tier.Store), size(uint64(most)))
		}
	}
	return good("enabled, %s in %s of this account, API level %d", size(info.Store), count(streams, "stream"), info.API.Level)
}

func percent(n uint64, of int64) int { return int(float64(n) / float64(of) * 100) }

// size is a number of bytes for people.
func size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// checkNATSClock compares with the servers whose monitoring is seen, else with one that answered.
func checkNATSClock(_ context.Context, x *examination) verdict {
	var worst *reading
	consider := func(r reading) {
		if worst == nil || r.ours.Sub(r.theirs).Abs() > worst.ours.Sub(worst.theirs).Abs() {
			worst = &r
		}
	}
	for _, m := range x.monitors {
		if m.err == nil {
			consider(m.clock)
		}
	}
	if x.permissions != nil {
		consider(x.permissions.clock)
	}
	for _, s := range x.streams {
		consider(s.clock)
	}
	if worst == nil {
		return warn("set ONCEPAY_NATS_MONITOR_URL to the monitoring endpoint of each server", "no server's time can be seen")
	}
	// Messages' times are NATS's; nothing that decides about money is.
	return judgeClock("NATS", *worst, Warning)
}
