package stripesim

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzForm holds the parser against net/url, and the endpoints' own reading
// against panics and against values that no rule looked at.
func FuzzForm(f *testing.F) {
	for _, s := range []string{
		"", "&", "&&a", "a=b&a=c", "a=b=c", "a%5Bb%5D=c", "a[]=1&a[0]=2", "a[b][c]=d", "[a]=b", "a]=b", "a[=b", "%zz=1", "a=%ff",
		"metadata[a]=b&metadata=&amount=100&currency=usd", "amount=2000&confirm=true&currency=usd&customer=cus_1&metadata[order]=o1&payment_method=pm_card_visa&off_session=true",
		"amount=\x00&currency=%00", "automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=never", "a;b=c", "+=+",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		pairs, err := parseForm(raw)
		want, wantErr := url.ParseQuery(raw)
		if err == nil && wantErr == nil {
			count := 0
			for k, vs := range want {
				count += len(vs)
				if !utf8.ValidString(k) {
					t.Fatalf("%q: a name that is not UTF-8 was let through", raw)
				}
			}
			if count != len(pairs) {
				t.Fatalf("%q: %d pairs, net/url has %d", raw, len(pairs), count)
			}
			for _, p := range pairs {
				if vs := want[p.field()]; len(vs) == 0 {
					t.Fatalf("%q: %q is not in net/url's reading", raw, p.field())
				}
			}
		}
		if err == nil && wantErr != nil && !strings.Contains(raw, ";") {
			t.Fatalf("%q was accepted, and net/url says %v", raw, wantErr)
		}
		if err != nil {
			return
		}
		if fingerprint("POST", "/x", pairs) != fingerprint("POST", "/x", append([]pair(nil), pairs...)) {
			t.Fatal("a fingerprint is not a function of its request")
		}
		op, refused := parseCreate("", pairs)
		if (op == nil) == (refused == nil) {
			t.Fatalf("%q: operation %v, refusal %v", raw, op, refused)
		}
		if refused == nil {
			eff := op.apply(env{}, nil)
			if eff.err == nil && (eff.intent == nil || checkMoney(eff.intent.Amount, eff.intent.Currency) != nil) {
				t.Fatalf("%q made %+v", raw, eff.intent)
			}
		} else if refused.Status != 400 || refused.Message == "" {
			t.Fatalf("%q: refusal %+v", raw, refused)
		}
		for _, parse := range []func(string, []pair) (operation, *apiError){parseConfirm, parseCancel} {
			if op, refused := parse("pi_1", pairs); (op == nil) == (refused == nil) {
				t.Fatalf("%q: operation %v, refusal %v", raw, op, refused)
			}
		}
	})
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	print := func(method, path, raw string) [32]byte {
		pairs, err := parseForm(raw)
		mustNil(t, err)
		return fingerprint(method, path, pairs)
	}
	base := print("POST", "/a", "x=1&y=2&m[k]=v")
	for raw, same := range map[string]bool{"y=2&m[k]=v&x=1": true, "y=2&m%5Bk%5D=v&x=%31": true, "x=1&y=2": false, "x=1&y=2&m[k]=w": false, "x=1&y=2&m[kv]=": false, "x=1y=2&m[k]=v": false} {
		if (print("POST", "/a", raw) == base) != same {
			t.Errorf("%s: same is %v", raw, !same)
		}
	}
	if print("POST", "/b", "x=1&y=2&m[k]=v") == base || print("PUT", "/a", "x=1&y=2&m[k]=v") == base {
		t.Error("another endpoint has the same fingerprint")
	}
	if print("POST", "/a", "x=1&x=2") == print("POST", "/a", "x=2&x=1") {
		t.Error("the order of equal names decides which one wins, and must count")
	}
}

func TestIDsDoNotRepeat(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range []idMaker{{salt: 1}, {salt: 2}} {
		for seq := range uint64(20_000) {
			for _, id := range []string{m.intent(seq), m.charge(seq), m.request(seq)} {
				if seen[id] {
					t.Fatalf("%s came twice", id)
				}
				seen[id] = true
			}
		}
	}
}
