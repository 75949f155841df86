package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema/provision"
)

// TestJudges tells every verdict that no server here can be brought to, and the borders of the others.
func TestJudges(t *testing.T) {
	t.Parallel()
	refused := func(code string) verdict { return unreachable("it says no", &pgconn.PgError{Code: code}) }
	for name, c := range map[string]struct {
		v    verdict
		want Result
		says string
	}{
		"PostgreSQL 14":      {judgeServer(serverFacts{number: 140_011, version: "14.11"}), Failed, "upgrade PostgreSQL to 15"},
		"PostgreSQL 15":      {judgeServer(serverFacts{number: 150_000, version: "15.0"}), OK, "15.0"},
		"standby":            {judgeServer(serverFacts{number: 170_000, standby: true}), Failed, "target_session_attrs=read-write"},
		"read-only":          {judgeServer(serverFacts{number: 170_000, readOnly: true}), Failed, "default_transaction_read_only"},
		"refused":            {refused("28P01"), Failed, "user and password"},
		"no database":        {refused("3D000"), Failed, "create the database"},
		"no connections":     {refused("53300"), Failed, "max_connections"},
		"something else":     {refused("XX000"), Failed, "PostgreSQL's message"},
		"away":               {unreachable("it is away", errors.New("refused")), Failed, "start PostgreSQL"},
		"LATIN1":             {judgeEncoding("LATIN1"), Failed, "ENCODING 'UTF8'"},
		"all on":             {judgeDurability(durabilityFacts{true, true, "on"}), OK, "synchronous_commit = on"},
		"remote_apply":       {judgeDurability(durabilityFacts{true, true, "remote_apply"}), OK, "remote_apply"},
		"a pooler says off":  {judgeDurability(durabilityFacts{true, true, "off"}), Failed, "pooler"},
		"a pooler, local":    {judgeDurability(durabilityFacts{true, true, "local"}), Failed, "local"},
		"torn pages":         {judgeDurability(durabilityFacts{true, false, "on"}), Warning, "full_page_writes"},
		"no fsync":           {judgeDurability(durabilityFacts{false, true, "on"}), Failed, "fsync"},
		"synchronous":        {judgeStandby(standbyFacts{"a", 2, 1, 0}, true), OK, "1 of 2"},
		"state hidden":       {judgeStandby(standbyFacts{"a", 1, 0, 1}, true), OK, "hidden"},
		"standby gone":       {judgeStandby(standbyFacts{"a", 0, 0, 0}, false), Failed, "every commit waits"},
		"asynchronous, live": {judgeStandby(standbyFacts{"", 1, 0, 0}, true), Warning, "none of them synchronous"},
		"alone, live":        {judgeStandby(standbyFacts{}, true), Warning, "managed services"},
		"alone, test":        {judgeStandby(standbyFacts{}, false), OK, "test mode"},
		"room":               {judgeConnections(connectionFacts{100, 84, 0, -1, 0, -1}), OK, "room for 16"},
		"no room":            {judgeConnections(connectionFacts{100, 85, 0, -1, 0, -1}), Warning, "raise max_connections"},
		"database's limit":   {judgeConnections(connectionFacts{100, 10, 8, 10, 0, -1}), Warning, "the database's CONNECTION LIMIT leaves room for 2 more"},
		"role's limit":       {judgeConnections(connectionFacts{100, 10, 0, -1, 0, 5}), Warning, "the role's CONNECTION LIMIT leaves room for 5 more"},
		"rates, by address":  {judgeRates(map[float64][]string{5: {"10.0.0.5", "10.0.0.6"}, 20: {""}}), Warning, "5/s (from 10.0.0.5, 10.0.0.6), 20/s"},
		"vacuumed":           {judgeVacuum(vacuumFacts{true, 200_000_000, 1, time.Minute}), OK, "1 transaction old"},
		"autovacuum off":     {judgeVacuum(vacuumFacts{on: false}), Failed, "autovacuum is off"},
		"old":                {judgeVacuum(vacuumFacts{on: true, databaseAge: wraparoundWarn}), Warning, "2,100,000,000"},
		"too old":            {judgeVacuum(vacuumFacts{on: true, databaseAge: wraparoundFail}), Failed, "VACUUM FREEZE"},
		"forgotten":          {judgeVacuum(vacuumFacts{true, 0, 0, transactionMax + time.Second}), Warning, "pg_stat_activity"},
		"old snapshot":       {judgeVacuum(vacuumFacts{true, 0, xminWarn + 1, 0}), Warning, "pg_replication_slots"},
		"schema gap":         {judgeSchema([]migrations.Step{{Name: "1.sql"}, {Name: "2.sql", Applied: true}}, 2, 2), Failed, "missing: 1.sql"},
		"no rows":            {judgeTickets(nil), OK, "has its ticket"},
		"a thousand":         {judgeTickets(make([]postgres.Violation, violationsMax)), Failed, "at least 1000 payments"},
		"ticket of nobody":   {judgeTickets([]postgres.Violation{{TenantID: "t", ID: payments.NewID("t", "k"), What: "ticket"}}), Failed, "(no such payment, ticket)"},
		"just due":           {judgeDue(3, overdue), OK, "3 payments due"},
		"just published":     {judgeOutbox(3, overdue), OK, "3 messages on the way"},
		"NATS 2.11":          {judgeVersions(map[string]string{"a": "2.11.9", "b": "2.15.3"}), Failed, "a 2.11.9: 2.12 or newer is needed"},
		"NATS 2.12":          {judgeVersions(map[string]string{"a": "v2.12.0-RC.1"}), Warning, "tested with"},
		"NATS 3":             {judgeVersions(map[string]string{"a": "3.0.0"}), OK, "3.0.0"},
		"NATS of no version": {judgeVersions(map[string]string{"a": "dev"}), Failed, "a dev"},
		"account full":       {judgeJetStream(&jetstream.AccountInfo{Tier: jetstream.Tier{Store: 71, Limits: jetstream.AccountLimits{MaxStore: 100}}}), Warning, "71 B of 100 B"},
		"tier full":          {judgeJetStream(&jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{"R3": {Store: 2 << 40, Limits: jetstream.AccountLimits{MaxStore: 2 << 40}}}}), Warning, "2.0 TiB of 2.0 TiB"},
		"tiers":              {judgeJetStream(&jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{"R3": {Streams: 4}}}), OK, "4 streams"},
		"replicas wrong":     {judgeDifferences([]provision.Difference{{Object: "stream S", Setting: "num_replicas", Have: "3", Want: "1"}}, ""), Failed, "set ONCEPAY_STREAM_REPLICAS to what is there"},
		"ahead":              {judgeClock("X", reading{time.Unix(0, 0), time.Unix(6, 0)}, Failed), Warning, "6s ahead of X"},
		"far behind":         {judgeClock("X", reading{time.Unix(61, 0), time.Unix(0, 0)}, Failed), Failed, "1m1s behind X"},
		"a minute":           {judgeClock("X", reading{time.Unix(60, 0), time.Unix(0, 0)}, Failed), Warning, "NTP"},
		"far, no harm":       {judgeClock("X", reading{time.Unix(999, 0), time.Unix(0, 0)}, Warning), Warning, "behind X"},
		"close":              {judgeClock("X", reading{time.Unix(5, 0), time.Unix(0, 0)}, Failed), OK, "5s behind"},
	} {
		if c.v.result != c.want || !strings.Contains(c.v.found+" -> "+c.v.remedy, c.says) || c.v.found == "" || (c.v.remedy == "") != (c.v.result == OK) {
			t.Errorf("%s: %+v, want %s with %q", name, c.v, c.want, c.says)
		}
	}
}

func TestJudgeSync(t *testing.T) {
	t.Parallel()
	always := func(id string, servers int) monitor { return monitor{id: id, name: id, always: true, servers: servers} }
	lazy := monitor{id: "c", name: "c", servers: 3}
	gone := monitor{err: errors.New("away")}
	for name, c := range map[string]struct {
		monitors             []monitor
		test, live, believed Result // believed: confirmed by the setting, in live mode
	}{
		"the only one":        {[]monitor{always("a", 1)}, OK, OK, OK},
		"all three":           {[]monitor{always("a", 3), always("b", 3), always("c", 3)}, OK, OK, OK},
		"one of them lazy":    {[]monitor{always("a", 3), always("b", 3), lazy}, Failed, Failed, Failed},
		"two of three":        {[]monitor{always("a", 3), always("b", 3)}, Warning, Failed, OK},
		"one of them thrice":  {[]monitor{always("a", 3), always("a", 3), always("a", 3)}, Warning, Failed, OK},
		"one of them away":    {[]monitor{always("a", 3), always("b", 3), gone}, Warning, Failed, OK},
		"none answers":        {[]monitor{gone}, Warning, Failed, OK},
		"none is set":         {nil, Warning, Failed, OK},
		"of another cluster":  {[]monitor{always("x", 1)}, Warning, Failed, OK},
		"of both, one lazy":   {[]monitor{gone, lazy}, Failed, Failed, Failed},
		"more than it counts": {[]monitor{always("a", 1), always("b", 1)}, OK, OK, OK},
	} {
		for p, want := range map[syncPolicy]Result{{connected: "a"}: c.test, {connected: "a", live: true}: c.live, {connected: "a", live: true, confirmed: true}: c.believed} {
			if v := judgeSync(c.monitors, p); v.result != want || (v.remedy == "") != (want == OK) {
				t.Errorf("%s, %+v: %+v, want %s", name, p, v, want)
			}
		}
	}
}

func TestJudgeReplicas(t *testing.T) {
	t.Parallel()
	peer := func(name string, current, offline bool) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Name: name, Current: current, Offline: offline, Lag: 7}
	}
	trio := func(leader string, peers ...*jetstream.PeerInfo) group {
		return group{"stream S", 3, &jetstream.ClusterInfo{Leader: leader, Replicas: peers}}
	}
	healthy := trio("a", peer("b", true, false), peer("c", true, false))
	single := group{"stream S", 1, nil}
	for name, c := range map[string]struct {
		groups     []group
		test, live Result
		says       string
	}{
		"three":        {[]group{healthy}, OK, OK, "3 copies"},
		"one":          {[]group{single}, OK, Warning, "cop"},
		"one of two":   {[]group{healthy, single}, OK, Warning, "cop"},
		"no leader":    {[]group{healthy, trio("", peer("b", true, false), peer("c", true, false))}, Failed, Failed, "stream S has no leader"},
		"offline":      {[]group{trio("a", peer("b", true, false), peer("c", false, true))}, Failed, Failed, "c is offline"},
		"behind":       {[]group{trio("a", peer("b", true, false), peer("c", false, false))}, Warning, Warning, "c is 7 operations behind"},
		"one too few":  {[]group{trio("a", peer("b", true, false))}, Failed, Failed, "has 2 of 3 copies"},
		"its durables": {[]group{healthy, {"consumer S/d", 0, &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{}}}}, Failed, Failed, "consumer S/d has no leader"},
		"alone in one": {[]group{{"stream S", 1, &jetstream.ClusterInfo{Leader: "a"}}}, OK, Warning, "cop"},
	} {
		for live, want := range map[bool]Result{false: c.test, true: c.live} {
			if v := judgeReplicas(c.groups, live); v.result != want || !strings.Contains(v.found, c.says) || (v.remedy == "") != (want == OK) {
				t.Errorf("%s, live %t: %+v, want %s with %q", name, live, v, want, c.says)
			}
		}
	}
}

func TestJudgeSpaceAndLag(t *testing.T) {
	t.Parallel()
	stream := func(used uint64, discard jetstream.DiscardPolicy) []streamFacts {
		return []streamFacts{{StreamInfo: &jetstream.StreamInfo{Config: jetstream.StreamConfig{Name: "S", MaxBytes: 1000, Discard: discard}, State: jetstream.StreamState{Bytes: used}}}}
	}
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	durable := func(pending uint64, inFlight, pulls int, acked *time.Time) lane {
		return lane{ConsumerInfo: &jetstream.ConsumerInfo{Name: "d", Stream: "S", NumPending: pending, NumAckPending: inFlight, NumWaiting: pulls, TimeStamp: now,
			AckFloor: jetstream.SequenceInfo{Last: acked}, Config: jetstream.ConsumerConfig{AckWait: time.Minute}, Created: now.Add(-time.Hour)},
			state: jetstream.StreamState{FirstTime: now.Add(-time.Hour)}}
	}
	fresh := durable(1, 0, 0, nil)
	fresh.state.FirstTime = now.Add(-time.Second)
	paused := durable(0, 0, 0, nil)
	paused.Paused = true
	for name, c := range map[string]struct {
		v    verdict
		want Result
		says string
	}{
		"70%":                {judgeSpace(stream(700, jetstream.DiscardNew), nil), OK, "70% of 1000 B"},
		"71%":                {judgeSpace(stream(710, jetstream.DiscardNew), nil), Warning, "filling up"},
		"99%":                {judgeSpace(stream(990, jetstream.DiscardNew), nil), Failed, "new intents are refused"},
		"99%, behind":        {judgeSpace(stream(990, jetstream.DiscardNew), []string{"S/audit (5 messages)"}), Failed, "do not ack: S/audit (5 messages)"},
		"71%, behind":        {judgeSpace(stream(710, jetstream.DiscardNew), []string{"S/audit (5 messages)"}), Warning, "do not ack: S/audit (5 messages)"},
		"50%, behind":        {judgeSpace(stream(500, jetstream.DiscardNew), []string{"S/audit (5 messages)"}), OK, "50%"},
		"old, 95%":           {judgeSpace(stream(950, jetstream.DiscardOld), nil), OK, "95%"},
		"old, 96%":           {judgeSpace(stream(960, jetstream.DiscardOld), nil), Warning, "before their time"},
		"nothing to do":      {judgeLag([]lane{durable(0, 0, 0, ago(time.Hour))}), OK, "0 waiting"},
		"working":            {judgeLag([]lane{durable(9, 9, 0, ago(time.Second))}), OK, "9 waiting, 9 in flight, last ack 1s ago"},
		"nobody works":       {judgeLag([]lane{durable(9, 0, 0, ago(3*time.Minute))}), Warning, "is a worker running"},
		"nobody ever worked": {judgeLag([]lane{durable(9, 0, 0, nil)}), Warning, "none acked, the oldest of 1h0m0s ago"},
		"just published":     {judgeLag([]lane{fresh}), OK, "1 waiting"},
		"pulls, and waits":   {judgeLag([]lane{durable(0, 9, 2, ago(time.Hour))}), OK, "9 in flight"},
		"given up":           {judgeLag([]lane{durable(0, 9, 0, ago(time.Hour))}), Warning, "nobody pulls"},
		"paused":             {judgeLag([]lane{paused}), Warning, "nats consumer resume"},
	} {
		if c.v.result != c.want || !strings.Contains(c.v.found+c.v.remedy, c.says) || (c.v.remedy == "") != (c.want == OK) {
			t.Errorf("%s: %+v, want %s with %q", name, c.v, c.want, c.says)
		}
	}
}

func TestAges(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0s", 1500 * time.Microsecond: "2ms", 1234 * time.Millisecond: "1.2s", 90 * time.Second: "1m30s", 73 * time.Hour: "3 days"} {
		if got := age(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
	if got := size(1 << 60); got != "1024.0 PiB" {
		t.Error(got)
	}
}

// TestSecrets: whatever stands in a URL as a password or a token is covered in what others say.
func TestSecrets(t *testing.T) {
	t.Parallel()
	l := secretsOf(app.Settings{
		StripeKey: "sk_test_abcdef", DatabaseURL: "postgres://u:p%40ssword1@h/d?sslmode=disable", NATSURL: "nats://u:natspass@h, nats://tokentoken@h", NATSMonitorURL: "http://m:monpass@h",
	})
	text := "sk_test_abcdef p@ssword1 p%40ssword1 natspass tokentoken monpass, the rest stays"
	if got := l.hide(text); got != "xxxxx xxxxx xxxxx xxxxx xxxxx xxxxx, the rest stays" {
		t.Error(got)
	}
	if got := secretsOf(app.Settings{DatabaseURL: "host=h user=u password=keyword1"}).hide("keyword1"); got != "xxxxx" {
		t.Error(got)
	}
	if got := (secrets{"", "abc"}).hide("abc"); got != "abc" {
		t.Error(got)
	}
}
