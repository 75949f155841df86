package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// TestDeployedRights: the user of the deployment's own NATS configuration has every right that is asked for here.
func TestDeployedRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "nats", "conf", "accounts.conf"))
	if err != nil {
		t.Fatal(err)
	}
	user := regexp.MustCompile(`(?s)user: ONCEPAY\b.*?publish: \{\s*allow: \[(.*?)\].*?deny: \[(.*?)\].*?subscribe: \{ allow: \[(.*?)\]`).FindStringSubmatch(string(text))
	if user == nil {
		t.Fatal("the user ONCEPAY is not found; change this test with the file")
	}
	subjects := func(list string) (all []string) {
		for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list, -1) {
			all = append(all, m[1])
		}
		return all
	}
	settings, err := app.Load()
	if err != nil {
		t.Fatal(err)
	}
	info := &userInfo{publish: &rules{Allow: subjects(user[1]), Deny: subjects(user[2])}, subscribe: &rules{Allow: subjects(user[3])}}
	needs := rightsOf(settings)
	if missing := missingRights(info, needs); len(missing) > 0 || len(needs.read) == 0 || len(needs.write) == 0 || len(needs.ack) == 0 {
		t.Errorf("missing: %q of %+v", missing, needs)
	}
	without := slices.DeleteFunc(slices.Clone(info.publish.Allow), func(s string) bool { return s == "$JS.ACK.>" })
	if missing := missingRights(&userInfo{publish: &rules{Allow: without}}, needs); len(missing) != len(needs.ack) {
		t.Errorf("without acks: %q", missing)
	}
}
