package stripesim

import (
	"container/heap"
	"sort"
	"sync"
	"time"
)

// book is everything that moves money: PaymentIntents, charges, the clock. Its
// lock is held for a state change and one write to the ledger file, never for
// a wait.
type book struct {
	mu       sync.Mutex
	ids      idMaker
	settle   time.Duration
	clock    func() time.Time
	offset   time.Duration
	journal  *journal // nil in memory
	accounts map[string]*account
	charges  []Charge
	perPay   map[string]int // charges per payment, by namespace and payment id
	doubled  []string
	strays   int // charges without a payment's id
	refunds  []Refund

	perRefund     map[string]int // refunds per follow-up, by namespace and its id
	refundedTwice []string
	strayRefunds  int

	intents int
	events  uint64 // made so far, in all accounts
	due     dueQueue
}

// account is what one Stripe account owns.
type account struct {
	id          string
	limiter     limiter
	keys        keyStore
	intents     map[string]*slot
	order       []*slot // oldest first; created never decreases
	byCustomer  map[string][]*slot
	byCharge    map[string]*slot
	refunds     map[string]*refundSlot
	refundOrder []*refundSlot    // oldest first; created never decreases
	balance     map[string]int64 // captured and not given back, by currency
	saved       map[string]*savedMethod
	events      []event        // oldest first; created never decreases
	eventAt     map[string]int // index in events of the first len(eventAt), by id
}

// slot is a PaymentIntent's place in the lists, with its current state.
type slot struct {
	current *intent
	at      int  // index in account.order
	busy    bool // a request holds the object lock

	ledger   int           // the charge's index in book.charges, from 1; 0: there is none
	refunds  []*refundSlot // oldest first
	refunded int64         // by those that have not failed
}

// now is the simulator's time. Call with mu held.
func (b *book) now() time.Time { return b.clock().Add(b.offset) }

// time settles what is due and returns the simulator's time.
func (b *book) time() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.tick(now)
	return now
}

// account returns the account, making it at first sight. Call with mu held.
func (b *book) account(id string) *account {
	a := b.accounts[id]
	if a == nil {
		a = &account{id: id, intents: map[string]*slot{}, byCustomer: map[string][]*slot{}, balance: map[string]int64{}, saved: map[string]*savedMethod{},
			byCharge: map[string]*slot{}, refunds: map[string]*refundSlot{}}
		a.keys.entries = map[string]*keyEntry{}
		b.accounts[id] = a
	}
	return a
}

func (b *book) lookupAccount(id string) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.account(id)
}

// lock takes the object lock of a PaymentIntent, by any id of place. It reports whether it exists
// and whether the lock was free.
func (b *book) lock(a *account, id string) (s *slot, free bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, _ = a.place(id)
	if s == nil || s.busy {
		return s, false
	}
	s.busy = true
	return s, true
}

func (b *book) unlock(s *slot) {
	if s == nil {
		return
	}
	b.mu.Lock()
	s.busy = false
	b.mu.Unlock()
}

func (b *book) exists(a *account, id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, _ := a.place(id)
	return s != nil
}

// created is the creation second of a new PaymentIntent: the clock's, unless
// the clock went back. Call with mu held.
func (a *account) created(now time.Time) int64 {
	s := now.Unix()
	if n := len(a.order); n > 0 && a.order[n-1].current.Created > s {
		return a.order[n-1].current.Created
	}
	return s
}

// apply makes a record's changes: live after it was written, or at start from
// the file. Call with mu held.
func (b *book) apply(a *account, in *intent, charge *chargeNote, c cause, at time.Time) {
	s := a.intents[in.ID]
	b.addEvents(a, s == nil, in, c, at)
	if s == nil {
		s = &slot{at: len(a.order)}
		a.intents[in.ID] = s
		a.order = append(a.order, s)
		if in.Customer != "" {
			a.byCustomer[in.Customer] = append(a.byCustomer[in.Customer], s)
		}
		b.intents++
	}
	s.current = in
	if in.Charge != "" {
		a.byCharge[in.Charge] = s
	}
	if in.Due != 0 {
		heap.Push(&b.due, dueItem{at: in.Due, account: a, slot: s})
	}
	if charge != nil {
		b.addCharge(a, s, charge, at)
	}
}

func (b *book) addCharge(a *account, s *slot, note *chargeNote, at time.Time) {
	in := s.current
	if note.Held && s.ledger > 0 {
		c := &b.charges[s.ledger-1]
		c.Captured, c.AmountCaptured = true, in.Received
		a.balance[in.Currency] += in.Received
		return
	}
	b.charges = append(b.charges, Charge{
		ID: note.ID, PaymentIntent: in.ID, Account: a.id, Amount: in.Amount, Currency: in.Currency, Customer: in.Customer,
		Captured: note.Captured, AmountCaptured: in.Received, Metadata: in.Metadata, IdempotencyKey: note.Key, At: at,
	})
	s.ledger = len(b.charges)
	if note.Captured {
		a.balance[in.Currency] += in.Amount
	}
	payment := in.Metadata["oncepay_payment"]
	if payment == "" {
		b.strays++
		return
	}
	id := in.Metadata["oncepay_namespace"] + "\x00" + payment
	b.perPay[id]++
	if b.perPay[id] == 2 {
		b.doubled = append(b.doubled, payment)
	}
}

// tick settles every PaymentIntent that is due. One that a request has locked
// waits for the next tick, the request going first; so do all when the ledger
// file cannot be written. Call with mu held.
func (b *book) tick(now time.Time) {
	var busy []dueItem
	for len(b.due) > 0 && b.due[0].at <= now.UnixNano() {
		item := b.due[0]
		if item.slot.busy {
			busy = append(busy, item)
		} else if item.live() && b.settleItem(item) != nil {
			break
		}
		heap.Pop(&b.due)
	}
	for _, item := range busy {
		heap.Push(&b.due, item)
	}
}

// settleItem writes and applies what the clock does to one PaymentIntent or refund.
func (b *book) settleItem(item dueItem) error {
	if item.refund != nil {
		next := item.refund.current.settled()
		if err := b.journal.append(&record{Account: item.account.id, Refund: next, At: item.at}); err != nil {
			return err
		}
		return b.applyRefund(item.account, next, cause{}, time.Unix(0, item.at).UTC())
	}
	eff := settle(item.slot.current)
	rec := &record{Account: item.account.id, Intent: eff.intent, Changed: true, Charge: eff.charge, At: item.at}
	if err := b.journal.append(rec); err != nil {
		return err
	}
	b.apply(item.account, eff.intent, eff.charge, cause{}, time.Unix(0, item.at).UTC())
	return nil
}

// find returns a PaymentIntent's current state.
func (b *book) find(a *account, id string) *intent {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tick(b.now())
	if s := a.intents[id]; s != nil {
		return s.current
	}
	return nil
}

// page is a query of the list of PaymentIntents.
type page struct {
	customer      string
	from, to      int64 // created, both inclusive
	limit         int
	after, before string // cursors: ids
}

// cut chooses [lo, hi) of n objects, oldest first, whose creation times and places in the account never decrease; cursor is the place that the page
// ends before or begins after, -1 for none.
func (p page) cut(n, cursor int, created func(i int) int64, place func(i int) int) (lo, hi int, more bool) {
	lo = sort.Search(n, func(i int) bool { return created(i) >= p.from })
	hi = sort.Search(n, func(i int) bool { return created(i) > p.to })
	switch {
	case cursor < 0:
	case p.after != "":
		hi = min(hi, sort.Search(n, func(i int) bool { return place(i) >= cursor }))
	default:
		lo = max(lo, sort.Search(n, func(i int) bool { return place(i) > cursor }))
	}
	if hi <= lo {
		return 0, 0, false
	}
	more = hi-lo > p.limit
	if p.before != "" {
		return lo, min(hi, lo+p.limit), more
	}
	return max(lo, hi-p.limit), hi, more
}

// list returns a page, newest first, in time logarithmic in what is stored.
// ok is false if a cursor names nothing.
func (b *book) list(a *account, p page) (items []*intent, more, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tick(b.now())
	all := a.order
	if p.customer != "" {
		all = a.byCustomer[p.customer]
	}
	cursor := -1
	if id := p.after + p.before; id != "" {
		s := a.intents[id]
		if s == nil {
			return nil, false, false
		}
		cursor = s.at
	}
	lo, hi, more := p.cut(len(all), cursor, func(i int) int64 { return all[i].current.Created }, func(i int) int { return all[i].at })
	if hi <= lo {
		return nil, false, true
	}
	items = make([]*intent, 0, hi-lo)
	for i := hi - 1; i >= lo; i-- {
		items = append(items, all[i].current)
	}
	return items, more, true
}

// dueItem is a PaymentIntent, or a refund of it, that the clock will change.
type dueItem struct {
	at      int64
	account *account
	slot    *slot
	refund  *refundSlot
}

// live reports whether the item is still due: its state may have moved on.
func (i dueItem) live() bool {
	if i.refund != nil {
		return i.refund.current.Due == i.at
	}
	return i.slot.current.Due == i.at
}

// dueQueue is a heap by time; items whose state has moved on are skipped.
type dueQueue []dueItem

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q dueQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *dueQueue) Push(x any)        { *q = append(*q, x.(dueItem)) }
func (q *dueQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
