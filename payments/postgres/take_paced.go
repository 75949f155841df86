package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncepay/oncepay/payments"
)

// dueTicket is a ticket that is due and, it seems, may be given; or, without a payment, an account without room for which tickets wait.
type dueTicket struct {
	key
	account payments.Account // of its tenant; zero: not known
	slot    string           // stands for its account in the turn of the accounts
	free    bool             // no budget pays for it
	budget  budget
	there   bool          // the account has a budget
	marked  time.Duration // for how long the lane's tickets are known to wait
}

func (d dueTicket) isTicket() bool { return d.tenant != "" }

// plan is what a Take intends to give out. The budgets are asked again when they are locked.
type plan struct {
	tickets []dueTicket        // in the order in which they are to be given; more than are given, since some may be locked
	payers  []payments.Account // sorted: those whose budgets change
	rooms   []int32            // how many tickets of each of them there is room for
	most    []int32            // and how many if there is more room by the time that the tickets are given
	waits   []bool             // whether more of its tickets are due than it has room for
	free    int                // how many that cost nothing
	given   int
	cleared bool          // nothing that is due is left
	wait    time.Duration // until the first of the accounts without room has some; 0: none is without
}

// takePaced gives what is due, as far as the accounts' budgets have room. A Take that finds no room locks nothing and writes nothing, but for a
// mark now and then that tickets wait.
func (s *Store) takePaced(ctx context.Context, t taking) (payments.Taking, error) {
	asked := s.wall()
	due, done, err := s.findDue(ctx, t)
	if err != nil {
		return payments.Taking{}, err
	}
	p := newPlan(s.budgets.withoutBusy(due, s.wall()), t.Lane, t.limit)
	if p.wait > 0 {
		done.Wait = p.wait
	}
	if t.Alone {
		p.cleared = false // the others were not looked at
	}
	if p.given == 0 && len(p.payers) == 0 {
		return done, nil
	}
	var missing []payments.Account
	for _, d := range due {
		if !d.there && d.account.ID != "" {
			s.budgets.forget(d.account)
			missing = append(missing, d.account)
		}
	}
	if err := s.makeBudgets(ctx, sortedAccounts(missing)); err != nil {
		return payments.Taking{}, err
	}
	leaseFrom := s.wall() // before the statement: our lease must not outlast the ticket's
	rows, err := s.pool.Query(ctx, query("take_paced"), s.takeColumns(t, p)...)
	if err != nil {
		return payments.Taking{}, err
	}
	defer rows.Close()
	if done.Claims, err = s.scanClaims(rows, t, leaseFrom); err != nil {
		return payments.Taking{}, err
	}
	if t.Alone {
		done.Alone = len(due) > len(done.Claims)
	} else {
		s.turns.served(t.Lane, p.tickets, done.Claims)
	}
	if done.Wait > 0 {
		done.Wait = max(waitMin, done.Wait-s.wall().Sub(asked))
	}
	if s.notePassedOver(p, done.Claims) {
		done.Wait = busyPause
	}
	return done, nil
}

// notePassedOver remembers the accounts whose budgets gave less than planned, since somebody else has them: for a moment they have no room. Else one
// that stays locked would be planned for again and again, and hide the others.
func (s *Store) notePassedOver(p plan, claims []payments.Claim) (some bool) {
	account := make(map[key]payments.Account, len(p.tickets))
	for _, d := range p.tickets {
		if !d.free {
			account[d.key] = d.account
		}
	}
	given := map[payments.Account]int32{}
	for _, c := range claims {
		given[account[claimKey(&c)]]++
	}
	for i, a := range p.payers {
		if given[a] == 0 && p.rooms[i] > 0 {
			s.budgets.busyUntil(a, s.wall().Add(busyPause))
			some = true
		}
	}
	return some
}

// findDue finds what may be given, and what is left for other reasons than want of budget.
func (s *Store) findDue(ctx context.Context, t taking) (due []dueTicket, left payments.Taking, err error) {
	statement, params := "take_due_alone", []any{int16(t.Lane), t.limit, s.now(), s.opts.Rate, t.Account.ID, t.Account.Livemode}
	if !t.Alone {
		turn := s.turns.read(t.Lane, t.Account)
		ids, livemodes := accountArrays(turn.accounts)
		statement, params = "take_due", []any{
			int16(t.Lane), t.limit, s.now(), turn.slot, t.Account.ID, t.Account.Livemode, s.opts.Rate, turn.home, ids, livemodes,
		}
		params = append(params, turn.after)
	}
	b := &pgx.Batch{}
	b.Queue(query(statement), append(params, holdParams(t.TakeRequest)...)...).Query(func(rows pgx.Rows) error {
		due, err = pgx.CollectRows(rows, scanDue)
		return err
	})
	s.queueRest(b, t, &left)
	err = s.pool.SendBatch(ctx, b).Close()
	return due, left, err
}

func scanDue(r pgx.CollectableRow) (dueTicket, error) {
	var d dueTicket
	var tenant pgtype.Text
	var id []byte
	var wait, marked float64
	err := r.Scan(&tenant, &id, &d.account.ID, &d.account.Livemode, &d.slot, &d.free, &d.budget.tokens, &d.budget.rate, &d.budget.interactiveWaits,
		&d.there, &wait, &marked)
	d.tenant = tenant.String
	copy(d.id[:], id)
	d.marked = time.Duration(min(marked, 3600) * float64(time.Second))
	return d, err
}

// newPlan shares the rooms out: in the order of the tickets, as many for each account as it has room for.
func newPlan(due []dueTicket, lane payments.Lane, limit int) plan {
	p := plan{cleared: true}
	type share struct {
		dueTicket
		tickets, room int
		waits         bool
	}
	shares := map[payments.Account]*share{}
	for _, d := range due {
		if d.isTicket() {
			p.tickets = append(p.tickets, d)
		}
		if d.free {
			if p.given < limit {
				p.given, p.free = p.given+1, p.free+1
			} else {
				p.cleared = false
			}
			continue
		}
		a := shares[d.account]
		if a == nil {
			a = &share{dueTicket: d}
			shares[d.account] = a
		}
		if d.isTicket() {
			a.tickets++
		}
		switch {
		case !d.isTicket() || a.room >= d.budget.room(lane):
			a.waits, p.cleared = true, false
		case p.given < limit:
			a.room, p.given = a.room+1, p.given+1
		default:
			p.cleared = false
		}
	}
	for account, a := range shares {
		if a.waits {
			if wait := a.budget.wait(lane, a.room); p.wait == 0 || wait < p.wait {
				p.wait = wait
			}
		}
		// A mark that holds long enough need not be written again, nor one by bulk that yields: what it would stop is stopped.
		least := a.budget.wait(lane, 0)
		if a.room > 0 || a.waits && a.budget.tokens < 1 && (a.marked < least+markLeft || a.marked > least+markWrong) {
			p.payers = append(p.payers, account)
		}
	}
	spare := limit - p.given
	for _, account := range sortedAccounts(p.payers) {
		a := shares[account]
		more := 0
		if a.room > 0 {
			more = min(spare, a.tickets-a.room)
		}
		spare -= more
		p.rooms, p.most, p.waits = append(p.rooms, int32(a.room)), append(p.most, int32(a.room+more)), append(p.waits, a.waits)
	}
	return p
}

// markLeft is how long after the next token a mark must still hold, of the 100 ms with which it is written.
const markLeft = 50 * time.Millisecond

// markWrong is how much longer a mark holds that a wrong clock has written. It is written again, and the time of the tokens with it: they would not
// grow before that clock's time comes, and where nothing new is admitted nobody else writes the row.
const markWrong = 5 * time.Second

// takeColumns are the parameters of the statement that gives the planned tickets out.
func (s *Store) takeColumns(t taking, p plan) []any {
	payer := map[payments.Account]int32{}
	for i, a := range p.payers {
		payer[a] = int32(i + 1)
	}
	var keys []key
	var payers []int32
	var accounts []payments.Account
	for _, d := range p.tickets {
		paid := payer[d.account]
		if d.free {
			paid = 0
		} else if paid == 0 {
			continue // no room
		}
		keys, payers, accounts = append(keys, d.key), append(payers, paid), append(accounts, d.account)
	}
	tenants, ids := keyArrays(keys)
	names, livemodes := accountArrays(accounts)
	payerNames, payerModes := accountArrays(p.payers)
	return append([]any{
		int16(t.Lane), t.limit, t.Lease.Microseconds(), t.tokens, s.now(), tenants, ids, names, livemodes, payers,
		payerNames, payerModes, p.most, p.waits, p.cleared, s.opts.Rate, p.free, t.Alone, t.Account.ID, t.Account.Livemode,
	}, holdParams(t.TakeRequest)...)
}
