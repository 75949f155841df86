package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// audited checks that tenants and keys, which were made and revoked, are in the audit with who did it, and no secret is.
func (b *bench) audited(key map[string]any, secret string) {
	b.t.Helper()
	b.run("keys", "revoke", key["id"].(string), "--actor", "ann", "--note", "it leaked").says(b.t, exitOK, "revoked\n", "")
	b.fails(b.run("keys", "revoke", "key_nosuch", "--note="), exitUsage, "--note: is empty")
	b.fails(b.run("keys", "create", "--tenant", "acme", "--actor="), exitUsage, "--actor: is empty")
	b.fails(b.run("tenants", "create", "gamma", "--note", card), exitUsage, "--note: contains what looks like a card number")
	var lines []string
	for _, line := range list(b.t, b.json("audit")) {
		e := line.(map[string]any)
		result, err := json.Marshal(e["result"])
		if err != nil {
			b.t.Fatal(err)
		}
		if !strings.Contains(e["actor"].(string), "@") && e["actor"] != "ann" || e["target"] == nil != (e["action"] == "tenants create") {
			b.t.Errorf("%v", e)
		}
		lines = append(lines, fmt.Sprintf("%s %s %v %s", e["action"], e["tenant_id"], e["reason"], result))
	}
	want := []string{`keys revoke acme it leaked {"ended":false}`, `keys revoke acme <nil> {"ended":true}`, `keys create beta <nil> {"scopes":["payments:write","payments:read"]}`,
		`keys create acme <nil> {"expires_at":"` + key["expires_at"].(string) + `","scopes":["payments:read","payments:write"]}`, `tenants create beta <nil> {}`, `tenants create acme <nil> {}`}
	if !slices.Equal(lines, want) {
		b.t.Errorf("audit:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if got := list(b.t, b.json("audit", "--target", key["id"].(string), "--action", "keys revoke")); len(got) != 2 {
		b.t.Errorf("of the key: %v", got)
	}
	if all := b.run("audit", "--json").out; strings.Contains(all, secret[:12]) {
		b.t.Errorf("the audit holds a secret: %s", all)
	}
}
