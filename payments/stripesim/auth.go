package stripesim

import (
	"net/http"
	"strings"
)

// testKey accepts the forms of Stripe's secret and restricted test keys.
func testKey(s string) bool {
	for _, prefix := range []string{"sk_test_", "rk_test_"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok && rest != "" {
			return true
		}
	}
	return false
}

func unauthorized(code, message string) *apiError {
	return &apiError{Status: http.StatusUnauthorized, Type: typeInvalid, Code: code, Message: message, DocURL: docURL(code)}
}

// redact keeps a key's kind and nothing of its secret.
func redact(key string) string {
	for _, prefix := range []string{"sk_test_", "rk_test_", "pk_test_", "sk_live_", "rk_live_", "pk_live_"} {
		if strings.HasPrefix(key, prefix) {
			return prefix + "***"
		}
	}
	return "***"
}

// apiKey reads the key from Bearer or Basic authentication, as Stripe does.
func apiKey(r *http.Request) string {
	h := r.Header.Get("Authorization")
	if len(h) > 7 && strings.EqualFold(h[:7], "bearer ") {
		return strings.TrimSpace(h[7:])
	}
	user, _, _ := r.BasicAuth()
	return user
}

// identify names the account a request speaks for, whether or not it may: the
// ledger wants to know it even of a refused request.
func (s *Server) identify(r *http.Request) (secret string, key *Key, account string) {
	secret = apiKey(r)
	keys := *s.keys.Load()
	key = keys[secret]
	switch connected := r.Header.Get("Stripe-Account"); {
	case connected != "":
		account = connected
	case key != nil && key.Account != "":
		account = key.Account
	case len(keys) == 0 && accountOfKey(secret) != "":
		account = accountOfKey(secret)
	default:
		account = s.opts.Account
	}
	return secret, key, account
}

// accountOfKey is the account that a key names in its own form: after
// sk_test_5 the sixteen characters of the account's id, of which the first is
// a 1, and more. Any other key names none.
func accountOfKey(secret string) string {
	const digits = 16
	rest, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(secret, "sk_test_"), "rk_test_"), "5")
	if !ok || len(rest) <= digits || rest[0] != '1' || strings.Trim(rest[:digits], base62) != "" {
		return ""
	}
	return "acct_" + rest[:digits]
}

// reaches reports whether the key speaks for the account, as its own or as a
// connected one.
func (a *attempt) reaches() bool {
	return !a.connected || a.apiKey == nil || a.apiKey.Connected == nil || contains(a.apiKey.Connected, a.account.id)
}

// authorize decides whether the key may make the request.
func (s *Server) authorize(a *attempt) *apiError {
	switch {
	case a.secret == "":
		return unauthorized("", "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').")
	case strings.HasPrefix(a.secret, "pk_test_"):
		return unauthorized("secret_key_required", "This API call cannot be made with a publishable API key. Please use a secret API key.")
	case !testKey(a.secret), len(*s.keys.Load()) > 0 && a.apiKey == nil:
		return unauthorized("", "Invalid API Key provided: "+redact(a.secret))
	}
	if a.apiKey != nil && a.apiKey.Expired {
		return unauthorized("api_key_expired", "Expired API Key provided: "+redact(a.secret))
	}
	forbidden := &apiError{Status: http.StatusForbidden, Type: typeInvalid}
	if !validAccount(a.account.id) || !a.reaches() {
		forbidden.Code = "account_invalid"
		forbidden.Message = "The provided key '" + redact(a.secret) + "' does not have access to the account named by Stripe-Account (or that account does not exist)."
		return forbidden
	}
	if a.apiKey != nil && a.route != nil && contains(a.apiKey.Deny, a.route.name) {
		forbidden.Message = "The provided key '" + redact(a.secret) + "' does not have the required permissions for this endpoint on account '" + a.account.id + "'."
		return forbidden
	}
	return nil
}
