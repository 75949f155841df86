package doctor

import (
	"context"
	"strings"
	"time"
)

// checkDurability: what PostgreSQL answered must still be there after its machine died, or payments are charged again.
func checkDurability(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var f durabilityFacts
	err := x.row(ctx, `SELECT current_setting('fsync')::bool, current_setting('full_page_writes')::bool, current_setting('synchronous_commit')`,
		&f.fsync, &f.fullPages, &f.commit)
	if err != nil {
		return x.unanswered(err)
	}
	return judgeDurability(f)
}

type durabilityFacts struct {
	fsync, fullPages bool
	commit           string // synchronous_commit, as it is in force on connections of ours
}

func judgeDurability(f durabilityFacts) verdict {
	switch {
	case !f.fsync:
		return bad("set fsync = on", "fsync is off: a crash of the machine loses payments that were acknowledged")
	case f.commit != "on" && f.commit != "remote_apply":
		return bad("let the pooler between pass synchronous_commit on, or set it to on for the server, the database and the role",
			"synchronous_commit is %s on our connections although they ask for on: a crash loses commits that were answered", f.commit)
	case !f.fullPages:
		return warn("set full_page_writes = on, unless the file system never tears a page (such as ZFS)", "full_page_writes is off: a page that is torn by a crash cannot be mended")
	}
	return good("fsync on, full_page_writes on, and on our connections synchronous_commit = %s", f.commit)
}

// checkStandby: a failover to a standby that lacks the last commits forgets what was sent to Stripe.
func checkStandby(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var f standbyFacts
	err := x.row(ctx, `SELECT current_setting('synchronous_standby_names'), count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
		count(*) FILTER (WHERE state IS NULL) FROM pg_stat_replication`, &f.names, &f.standbys, &f.synchronous, &f.hidden)
	if err != nil {
		return x.unanswered(err)
	}
	return judgeStandby(f, x.live())
}

type standbyFacts struct {
	names                         string // synchronous_standby_names
	standbys, synchronous, hidden int    // hidden: this role may not see their state
}

func judgeStandby(f standbyFacts, live bool) verdict {
	const managed = "add a standby and name it in synchronous_standby_names, unless the storage below replicates every commit by itself (as managed services may)"
	switch {
	case f.names != "" && f.synchronous > 0:
		return good("%d of %d standbys confirm every commit", f.synchronous, f.standbys)
	case f.names != "" && f.hidden > 0:
		return good("synchronous_standby_names is set, %d standbys are connected; their state is hidden from this role (pg_monitor may see it)", f.standbys)
	case f.names != "":
		return bad("bring the standby back, or take it out of synchronous_standby_names for as long as it is away", "synchronous_standby_names is set and no such standby is connected: every commit waits")
	case !live:
		return good("no synchronous standby (%d connected), as is enough in test mode", f.standbys)
	case f.standbys > 0:
		return warn("name one in synchronous_standby_names: a failover to one that lacks the last commits forgets what was sent to Stripe", "%d standbys, none of them synchronous", f.standbys)
	}
	return warn(managed, "no standby: what this machine's disk loses is lost")
}

// storePool is how many connections one serving process keeps open at most.
const storePool = 16

// checkConnections: a process that gets no connection works on nothing.
func checkConnections(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var f connectionFacts
	err := x.row(ctx, `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
			- coalesce(current_setting('reserved_connections', true)::int, 0),
		count(*), count(*) FILTER (WHERE a.datid = d.oid), count(*) FILTER (WHERE a.usesysid = r.oid), d.datconnlimit, r.rolconnlimit
		FROM pg_database d, pg_roles r, pg_stat_activity a
		WHERE d.datname = current_database() AND r.rolname = current_user AND a.datid IS NOT NULL
		GROUP BY d.datconnlimit, r.rolconnlimit`, &f.most, &f.used, &f.ofDatabase, &f.ofRole, &f.databaseLimit, &f.roleLimit)
	if err != nil {
		return x.unanswered(err)
	}
	f.used, f.ofDatabase, f.ofRole = max(f.used-poolSize, 0), max(f.ofDatabase-poolSize, 0), max(f.ofRole-poolSize, 0)
	return judgeConnections(f)
}

type connectionFacts struct {
	most, used                int // for ordinary roles, without this examination's own
	ofDatabase, databaseLimit int // -1: none
	ofRole, roleLimit         int // -1: none
}

func judgeConnections(f connectionFacts) verdict {
	room, limit := f.most-f.used, "max_connections"
	if left := f.databaseLimit - f.ofDatabase; f.databaseLimit >= 0 && left < room {
		room, limit = left, "the database's CONNECTION LIMIT"
	}
	if left := f.roleLimit - f.ofRole; f.roleLimit >= 0 && left < room {
		room, limit = left, "the role's CONNECTION LIMIT"
	}
	if room < storePool {
		return warn("raise "+limit+", or end connections that are not needed", "%d of %d connections are in use, %s leaves room for %d more; a serving process takes up to %d", f.used, f.most, limit, room, storePool)
	}
	return good("%d of %d connections are in use, room for %d more; a serving process takes up to %d", f.used, f.most, room, storePool)
}

// checkVacuum: tickets and outbox rows are deleted all the time, and only vacuum makes room of them.
func checkVacuum(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	f := vacuumFacts{}
	var seconds float64
	err := x.row(ctx, `SELECT current_setting('autovacuum')::bool AND current_setting('track_counts')::bool,
		(SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()),
		greatest((SELECT coalesce(max(age(backend_xmin)), 0) FROM pg_stat_activity), (SELECT coalesce(max(age(transaction)), 0) FROM pg_prepared_xacts),
			(SELECT coalesce(max(greatest(age(xmin), age(catalog_xmin))), 0) FROM pg_replication_slots)),
		(SELECT coalesce(extract(epoch FROM max(now() - xact_start)), 0)::float8 FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type IS DISTINCT FROM 'autovacuum worker')`, &f.on, &f.databaseAge, &f.xminAge, &seconds)
	if err != nil {
		return x.unanswered(err)
	}
	f.oldest = time.Duration(seconds * float64(time.Second))
	return judgeVacuum(f)
}

type vacuumFacts struct {
	on          bool
	databaseAge int           // transactions since the database's oldest row was frozen
	xminAge     int           // transactions since the oldest snapshot that vacuum must respect
	oldest      time.Duration // the longest transaction of this database, as far as the role may see
}

// PostgreSQL stops writing at about 2.1 billion; autovacuum begins to freeze at 200 million.
const (
	wraparoundWarn = 1_000_000_000
	wraparoundFail = 1_900_000_000
	xminWarn       = 1_000_000
	transactionMax = 10 * time.Minute
)

func judgeVacuum(f vacuumFacts) verdict {
	facts := []string{"autovacuum on", "oldest snapshot " + count(f.xminAge, "transaction") + " old", "longest transaction " + age(f.oldest)}
	switch found := strings.Join(facts, ", "); {
	case f.databaseAge >= wraparoundFail:
		return bad("vacuum the database now (VACUUM FREEZE), and find what holds it back: old sessions, prepared transactions, replication slots", "the database is %d transactions old: PostgreSQL soon refuses to write", f.databaseAge)
	case !f.on:
		return bad("set autovacuum and track_counts to on", "autovacuum is off: deleted tickets stay, and every look for due work reads them")
	case f.databaseAge >= wraparoundWarn:
		return warn("find what holds vacuum back: old sessions, prepared transactions, replication slots", "the database is %d transactions old, of about 2,100,000,000", f.databaseAge)
	case f.oldest > transactionMax || f.xminAge > xminWarn:
		return warn("end the session, prepared transaction or replication slot that holds vacuum back (pg_stat_activity, pg_prepared_xacts, pg_replication_slots)", "%s", found)
	default:
		return good("%s", found)
	}
}

// checkPostgresClock: leases and the times of sends are PostgreSQL's, and the last check before a send is ours.
func checkPostgresClock(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var theirs time.Time
	if err := x.row(ctx, `SELECT 1`, new(int)); err != nil { // a connection is made outside of what is measured
		return x.unanswered(err)
	}
	before := x.clock.Now()
	if err := x.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
		return x.unanswered(err)
	}
	return judgeClock("PostgreSQL", between(before, x.clock.Now(), theirs), Failed)
}
