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
	key = s.keys[secret]
	switch connected := r.Header.Get("Stripe-Account"); {
	case connected != "":
		account = connected
	case key != nil && key.Account != "":
		account = key.Account
	default:
		account = s.opts.Account
	}
	return secret, key, account
}

// authorize decides whether the key may make the request.
func (s *Server) authorize(a *attempt) *apiError {
	switch {
	case a.secret == "":
		return unauthorized("", "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').")
	case strings.HasPrefix(a.secret, "pk_test_"):
		return unauthorized("secret_key_required", "This API call cannot be made with a publishable API key. Please use a secret API key.")
	case !testKey(a.secret), len(s.keys) > 0 && a.apiKey == nil:
		return unauthorized("", "Invalid API Key provided: "+redact(a.secret))
	}
	if a.apiKey != nil && a.apiKey.Expired {
		return unauthorized("api_key_expired", "Expired API Key provided: "+redact(a.secret))
	}
	forbidden := &apiError{Status: http.StatusForbidden, Type: typeInvalid}
	if !validAccount(a.account.id) {
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
