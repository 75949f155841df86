package payments

import "time"

// Mark is how far an installation's database has come. It is counted up, once a second while payments are worked on, in the database itself and
// then in a copy outside of it; a database that was restored from a backup is behind its copy.
type Mark struct {
	SystemID string // of the PostgreSQL cluster: it is kept by physical backups and standbys, and differs everywhere else
	Timeline int64  // it goes up when a standby is promoted, and after a recovery to a point in time
	Counter  int64
	At       time.Time // by PostgreSQL's clock
	// Accepted is when somebody last said that the database is right as it is, in microseconds since 1970; 0: nobody has. Whoever remembers a
	// mark of an older acceptance must forget it. It stands in the copy alone, and a time goes on where a number would begin anew with a lost copy.
	Accepted int64
}

// StreamFloor says up to which message of a stream everything was in the database.
type StreamFloor struct {
	Created  time.Time // the stream's: one that was made anew counts from 1 again
	Sequence uint64
}

// MarkState is what a database says of itself.
type MarkState struct {
	Mark
	// Counted: the database has been marked; else Counter and At are zero.
	Counted bool
	Floors  map[string]StreamFloor // by stream, as of the mark
	// Rewind is the number of the rewind that is running; 0: none.
	Rewind int64
	// Now is PostgreSQL's time.
	Now time.Time
}

// MarkVerdict is what the comparison of a database with the copy of its mark shows.
type MarkVerdict string

// The verdicts. MarkFits and MarkBegins let work go on.
const (
	MarkFits   MarkVerdict = "fits"   // the database is where it was, or further
	MarkBegins MarkVerdict = "begins" // there is no mark yet, neither here nor there
	// MarkPromoted: a standby has taken over, or a recovery went to the very end. Nothing that was marked is missing; what was committed
	// within the last moment may be.
	MarkPromoted MarkVerdict = "promoted"
	MarkBehind   MarkVerdict = "behind"       // the database was restored from a backup: it has forgotten what happened since
	MarkForeign  MarkVerdict = "other_system" // it is another PostgreSQL cluster than the one that was marked
	MarkCopyLost MarkVerdict = "copy_lost"    // the database has been marked and there is no copy: nobody knows how far it had come
)

// Holds reports whether nothing may be sent until the database has been rewound, or somebody has said that it is right.
func (v MarkVerdict) Holds() bool { return v != MarkFits && v != MarkBegins }

// CompareMark compares a database with the newest known copy of its mark, nil if there is none. It is pure.
//
// Whatever the database cannot show is taken against it: what it has forgotten may have been charged, and Stripe forgets keys, too.
func CompareMark(database MarkState, copied *Mark) MarkVerdict {
	switch {
	case !database.Counted && (copied == nil || copied.Counter == 0 && copied.SystemID == database.SystemID):
		return MarkBegins // a copy at zero was made by somebody who began, and came no further
	case copied == nil:
		return MarkCopyLost
	case database.SystemID != copied.SystemID:
		return MarkForeign
	case !database.Counted, database.Counter < copied.Counter:
		return MarkBehind
	case database.Timeline < copied.Timeline:
		return MarkBehind // an old primary has come back, and has not what its successor did
	case database.Timeline > copied.Timeline:
		return MarkPromoted
	default:
		return MarkFits
	}
}

// NewerMark is the one of two copies of a mark that counts: of the newest acceptance, and then the one that has come further. Either may be nil.
func NewerMark(a, b *Mark) *Mark {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.Accepted != b.Accepted:
		if a.Accepted > b.Accepted {
			return a
		}
		return b
	case b.Counter > a.Counter, b.Counter == a.Counter && b.Timeline > a.Timeline:
		return b
	}
	return a
}

// Explain says in words what a verdict means and what to do about it; "" where there is nothing to do.
func (v MarkVerdict) Explain() string {
	if remedy := v.Remedy(); remedy != "" {
		return v.Means() + ": " + remedy
	}
	return v.Means()
}

// Means says in words what a verdict that holds means; "" for the others.
func (v MarkVerdict) Means() string {
	switch v {
	case MarkPromoted:
		return "PostgreSQL has begun a new timeline (a standby took over, or a recovery ended): the last moments are rewound by themselves"
	case MarkBehind:
		return "the database is behind its mark: it was restored from a backup, and has forgotten payments that may have been charged"
	case MarkForeign:
		return "this is another PostgreSQL cluster than the one that was marked: a backup was restored elsewhere, or ONCEPAY_DATABASE_URL names another database"
	case MarkCopyLost:
		return "the copy of the database's mark is gone from NATS, so that nobody can tell whether the database was restored from a backup"
	}
	return ""
}

// Remedy says what a person does about a verdict; "" where nothing is to be done.
func (v MarkVerdict) Remedy() string {
	if !v.Holds() || v == MarkPromoted {
		return ""
	}
	return "run `oncepay rewind --since T` with the time of the backup, or `oncepay doctor --accept-mark --reason R` if you know that nothing was lost"
}
