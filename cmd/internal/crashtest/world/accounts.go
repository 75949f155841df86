package world

// The tenants with a way to Stripe of their own, the accounts of all, and keys of those.
const (
	Keyed     = "keyed"     // has a key of its own
	Connected = "connected" // has an account that is connected to the installation's

	KeyedAccount     = "acct_1Keyed"
	ConnectedAccount = "acct_1Connected"
	OtherAccount     = "acct_1Other" // nobody's

	KeyedKey      = "sk_test_keyed0000"
	KeyedNewKey   = "sk_test_keyedNew0"
	RestrictedKey = "rk_test_keyed0000" // may not read its account
	OtherKey      = "sk_test_other0000"
)
