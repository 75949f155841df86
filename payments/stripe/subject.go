package stripe

import (
	"fmt"

	"github.com/oncepay/oncepay/payments"
)

// subject says in errors whose way to Stripe is wrong. The zero value is the installation's own, whose settings have names; a tenant's has
// none but the tenant and, for a key of its own, the file.
type subject struct {
	tenant string
	file   string // of the tenant's own key; "" : the installation's key
}

// setting is an error about the setting, with the remedy.
func (s subject) setting(name, remedy string) error {
	switch {
	case s.tenant == "":
		return setting(name, remedy)
	case s.file != "":
		return s.wrong("the key in " + s.file + " " + remedy)
	case name == "connected account":
		return s.wrong("the connected account " + remedy)
	default:
		return s.wrong(name + " " + remedy)
	}
}

func (s subject) wrong(text string) error {
	return &payments.Error{Code: payments.CodeInvalid, Field: "tenant " + s.tenant, Message: text}
}

// needsAccount: the key may not read the account that it belongs to.
func (s subject) needsAccount() error {
	const problem = "may not read its own account (403)"
	if s.tenant == "" {
		return setting("ONCEPAY_STRIPE_ACCOUNT", "is needed: the key "+problem+"; set the id acct_… that the key belongs to")
	}
	return s.setting("", problem+"; write the id acct_… that it belongs to on the second line of that file, or put a key there that may")
}

// accountDiffers: the key belongs to another account than was stated.
func (s subject) accountDiffers(stated, belongs string) error {
	if s.tenant == "" {
		return setting("ONCEPAY_STRIPE_ACCOUNT", fmt.Sprintf("is %s, but the key belongs to %s; correct one of them", stated, belongs))
	}
	return s.setting("", fmt.Sprintf("belongs to %s, but the second line of that file says %s; correct one of them", belongs, stated))
}
