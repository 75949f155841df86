package schema

// KeyMaxBytes is the length of the longest idempotency key.
const KeyMaxBytes = 255

// TenantMaxBytes is the length of the longest tenant id.
const TenantMaxBytes = 63

// ValidKey reports whether key is 1 to 255 printable ASCII characters (0x21 to
// 0x7E). Whether the key is reserved is not looked at.
func ValidKey(key string) bool {
	if key == "" || len(key) > KeyMaxBytes {
		return false
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7E {
			return false
		}
	}
	return true
}

// ValidTenant reports whether tenant has the form of a tenant id:
// ^[a-z0-9][a-z0-9_-]{0,62}$. Such a name is always one safe subject token.
func ValidTenant(tenant string) bool {
	return len(tenant) <= TenantMaxBytes && validToken(tenant)
}

// validToken reports whether s is lower-case letters, digits, "_" and "-",
// beginning with a letter or a digit: never a wildcard, never a reserved name.
func validToken(s string) bool {
	if s == "" || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
