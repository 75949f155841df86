package ingress

import (
	"context"
	"net/http"
	"strings"

	"github.com/oncepay/oncepay/payments"
)

const (
	secretPrefix    = "opk_"
	secretLengthMax = 200
)

// unauthorizedDetail is the one answer to every key that is missing, malformed, unknown, expired or revoked: it does not tell which.
const unauthorizedDetail = "send a key of this API that is valid, as Authorization: Bearer " + secretPrefix + "…"

// authenticate finds whose request it is.
func (a *API) authenticate(ctx context.Context, h http.Header) (payments.APIKey, *problem) {
	secret := bearer(h["Authorization"])
	if secret == "" {
		return payments.APIKey{}, refuse(CodeUnauthorized, unauthorizedDetail)
	}
	key, err := a.keys.find(ctx, secret)
	switch payments.ErrorCode(err) {
	case "":
		return key, nil
	case payments.CodeNotFound:
		return payments.APIKey{}, refuse(CodeUnauthorized, unauthorizedDetail)
	default:
		return payments.APIKey{}, failed(err)
	}
}

// bearer reads the secret out of the one Authorization line (RFC 6750, section 2.1; the scheme's case does not matter, RFC 9110, section 11.1), or
// returns "".
func bearer(lines []string) string {
	if len(lines) != 1 {
		return ""
	}
	scheme, secret, _ := strings.Cut(lines[0], " ")
	secret = strings.TrimLeft(secret, " ")
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(secret, secretPrefix) || len(secret) > secretLengthMax {
		return ""
	}
	for _, c := range []byte(secret[len(secretPrefix):]) {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return ""
		}
	}
	return secret
}
