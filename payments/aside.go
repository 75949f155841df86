package payments

import "context"

// Aside is where an owner waits while Stripe's records are read. A listing can have hundreds of pages; whoever waits for one sends nothing, and
// must neither keep those from working who would, nor be kept from sharing it.
type Aside interface {
	// Leave gives the caller's place to others. It is called once.
	Leave()
	// Return waits until the caller has a place again and reports whether it has; false when ctx ends.
	Return(ctx context.Context) bool
}

// asideFrom is the count from which an owner who stands aside counts one less: should the process end now, it was another payment that ended it, or
// the machine, and the next owner must count as this one does. Reading a listing is the same code whosever PaymentIntent is looked for; what concerns
// one payment alone is done when its owner is back. It is never less by more than one: of several that end their process, in turn, each would take
// the others' counts away, and none would ever be given up.
const asideFrom = AbandonedAlone - 1

// stepAside leaves the caller's place, if there is somewhere to go.
func (p *Processor) stepAside(ctx context.Context, c Claim) (Claim, error) {
	if p.Aside == nil {
		return c, nil
	}
	if c.Abandoned >= asideFrom {
		c.Abandoned--
		next, err := p.Store.Extend(ctx, c, p.Lease, false)
		if err != nil {
			return c, err
		}
		c = next
	}
	p.Aside.Leave()
	return c, nil
}

// stepBack waits for a place, and counts again as before. Once ctx has ended there is none; what was read can be recorded all the same.
func (p *Processor) stepBack(ctx context.Context, c Claim, abandoned int) (Claim, error) {
	if p.Aside == nil {
		return c, nil
	}
	if c.LeaseUntil.Round(0).Sub(p.Clock.Now().Round(0)) < p.Lease/3 { // it could end during the first wait
		next, err := p.Store.Extend(ctx, c, p.Lease, false)
		switch {
		case err == nil:
			c = next
		case ctx.Err() == nil:
			return c, err
		}
	}
	for {
		bounded, cancel := context.WithTimeout(ctx, p.Lease/3)
		back := p.Aside.Return(bounded)
		cancel()
		if ctx.Err() != nil && !back {
			return c, nil
		}
		if back {
			break
		}
		next, err := p.Store.Extend(ctx, c, p.Lease, false)
		if err != nil {
			return c, err
		}
		c = next
	}
	if c.Abandoned == abandoned {
		return c, nil
	}
	c.Abandoned = abandoned
	return p.Store.Extend(ctx, c, p.Lease, false)
}
