package stripe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// keyFileMax bounds what is read of a key's file, in bytes.
const keyFileMax = 4 << 10

// CheckKeyRef says what is wrong with the reference to a tenant's own key, "" for nothing. A reference is file:/path; the file is read by every
// process that works, when it needs the key. Its first line is the key, a second one states the account (acct_…) of a key that may not read it.
func CheckKeyRef(ref string) string {
	path, ok := strings.CutPrefix(ref, "file:")
	switch {
	case looksLikeKey(ref):
		return "takes a reference to the key, file:/path, and never the key: write the key to a file that only the workers may read, and roll the one that was given here"
	case !ok:
		return "must be a reference to a file with the key, file:/path"
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/":
		return "must name the file by its full path, as in file:/etc/oncepay/acme.key: every worker reads it"
	case len(path) > 1000 || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "must be a path of at most 1000 printable ASCII characters without spaces"
	}
	return ""
}

// looksLikeKey reports whether the text holds a key of Stripe's where a reference belongs.
func looksLikeKey(s string) bool { return keyPattern.MatchString(s) && !strings.HasPrefix(s, "file:") }

// keyFile is what a tenant's own key is read from.
type keyFile struct {
	key     string
	account string // stated in the file, or ""
	open    bool   // others than its owner may read it
}

// readKeyFile reads the key that the reference names. Its errors name the file, and never what is in it.
func readKeyFile(s subject, ref string) (keyFile, error) {
	if problem := CheckKeyRef(ref); problem != "" {
		return keyFile{}, s.wrong("its stripe_key " + problem)
	}
	path := strings.TrimPrefix(ref, "file:")
	info, err := os.Stat(path)
	if err != nil {
		return keyFile{}, s.unreadable(err)
	}
	if !info.Mode().IsRegular() { // to open a pipe could wait for ever
		return keyFile{}, s.wrong(s.file + " is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return keyFile{}, s.unreadable(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, keyFileMax+1))
	if err != nil {
		return keyFile{}, s.unreadable(err)
	}
	words := strings.Fields(string(data))
	k := keyFile{open: info.Mode().Perm()&0o077 != 0}
	switch {
	case len(data) > keyFileMax || len(words) == 0 || len(words) > 2:
		return keyFile{}, s.wrong(s.file + " must hold one secret or restricted key of Stripe's, and nothing else but, on a second line, the account of a key that may not read it")
	case len(words) == 2:
		k.account = words[1]
	}
	if k.key = words[0]; !validKey(k.key) {
		return keyFile{}, s.setting("", "must be a secret or restricted key of Stripe's (sk_… or rk_…)")
	}
	if k.account != "" && !validID(k.account, "acct_") {
		return keyFile{}, s.wrong("the second line of " + s.file + " must be the id of the key's account, acct_…")
	}
	return k, nil
}

// unreadable is unavailable, not invalid: a file that is being replaced, or whose volume is not mounted yet, comes back.
func (s subject) unreadable(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &payments.Error{Code: payments.CodeUnavailable, Field: "tenant " + s.tenant, Message: fmt.Sprintf("the key in %s cannot be read: %s; every worker must be able to read it", s.file, err)}
}
