package postgres

import (
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// turns is whose turn it is in a process, by lane: accounts come in turn, and the tenants of an account. Where accounts have no rate all tenants
// come in one turn.
type turns struct {
	mu     sync.Mutex
	tenant map[payments.Lane]string
	slot   map[payments.Lane]string
	within map[payments.Lane]map[payments.Account]string
}

// homeSlot is the slot of the installation's account, which comes after those of all tenants with a way of their own.
const homeSlot = "~"

// turn is where a Take begins: after the account and the tenants that were served last.
type turn struct {
	slot     string
	home     string // of the installation's account
	accounts []payments.Account
	after    []string // of other accounts that several tenants share
}

func (t *turns) read(lane payments.Lane, home payments.Account) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := turn{slot: t.slot[lane], home: t.within[lane][home]}
	for a, after := range t.within[lane] {
		if a != home {
			now.accounts, now.after = append(now.accounts, a), append(now.after, after)
		}
	}
	return now
}

// served notes who got something.
func (t *turns) served(lane payments.Lane, found []dueTicket, claims []payments.Claim) {
	if len(claims) == 0 {
		return
	}
	of := make(map[key]dueTicket, len(found))
	first := map[payments.Account]string{}
	shared := map[payments.Account]bool{}
	for _, d := range found {
		of[d.key] = d
		if before, met := first[d.account]; met && before != d.tenant || d.slot == homeSlot {
			shared[d.account] = true
		}
		first[d.account] = d.tenant
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slot == nil {
		t.slot, t.within = map[payments.Lane]string{}, map[payments.Lane]map[payments.Account]string{}
	}
	if t.within[lane] == nil {
		t.within[lane] = map[payments.Account]string{}
	}
	for _, c := range claims {
		d := of[claimKey(&c)]
		t.slot[lane] = d.slot
		if shared[d.account] {
			t.within[lane][d.account] = d.tenant
		} else {
			delete(t.within[lane], d.account) // one tenant has no turn; this keeps the list short
		}
	}
}

// last is the tenant that was served last where accounts have no rate.
func (t *turns) last(lane payments.Lane) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tenant[lane]
}

func (t *turns) servedLast(lane payments.Lane, claims []payments.Claim) {
	if len(claims) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tenant == nil {
		t.tenant = map[payments.Lane]string{}
	}
	t.tenant[lane] = claims[len(claims)-1].Payment.TenantID
}
