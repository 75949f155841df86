package doctor

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// rightsAtOnce is how many accounts are asked at the same time.
const rightsAtOnce = 8

// checkRights reads one PaymentIntent and one event of every account, as look-ups read them all: a restricted key that charges well may be kept from them, and then
// nothing that is in doubt is ever settled. It reads one refund, too: a shop that never refunds may do without, so that this is a warning.
func checkRights(ctx context.Context, x *examination) verdict {
	if x.accounts == nil {
		return verdict{result: NotChecked, found: "not checked without ONCEPAY_STRIPE_KEY", remedy: "set ONCEPAY_STRIPE_KEY where workers run", cause: "stripe_account"}
	}
	ways := []string{""} // the installation's own
	x.ways.mu.Lock()
	for tenant := range x.ways.named { // the others cannot be charged, as stripe_tenants says
		ways = append(ways, tenant)
	}
	x.ways.mu.Unlock()
	slices.Sort(ways)
	answers, ofRefunds := make([]error, len(ways)), make([]error, len(ways))
	slots := make(chan struct{}, rightsAtOnce)
	var asking sync.WaitGroup
	for i, tenant := range ways {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answers[i], ofRefunds[i] = x.accounts.MayRead(ctx, tenant), x.accounts.MayReadRefunds(ctx, tenant)
		})
	}
	asking.Wait()
	refused, unread := x.sorted(answers)
	noRefunds, more := x.sorted(ofRefunds)
	unread = append(unread, more...)
	const edit = "edit the restricted key in Stripe's dashboard (Developers, API keys), or use a secret key; until then "
	switch {
	case len(refused) > 0:
		return bad(edit+"payments in doubt stay so", "%s", strings.Join(refused[:min(len(refused), listed)], " | "))
	case len(unread) > 0:
		return warn("look at why Stripe does not answer, and ask again", "what the keys may read could not be asked: %s", unread[0])
	case len(noRefunds) > 0:
		return warn(edit+"refunds wait; charges do not need it", "%s", strings.Join(noRefunds[:min(len(noRefunds), listed)], " | "))
	case len(ways) == 1:
		return good("the key may read PaymentIntents, events and refunds")
	}
	return good("PaymentIntents, events and refunds of %s may be read", count(len(ways), "account"))
}

// sorted are the answers that refuse a key, and those that tell nothing.
func (x *examination) sorted(answers []error) (refused, unread []string) {
	for _, err := range answers {
		for _, one := range each(err) {
			if payments.ErrorCode(one) == payments.CodeInvalid {
				refused = append(refused, x.said(one))
			} else {
				unread = append(unread, x.said(one))
			}
		}
	}
	return refused, unread
}

// each takes joined errors apart.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
