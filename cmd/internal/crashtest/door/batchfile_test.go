package door

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
)

// fileRun is the command batch run over one file, through a proxy to a door.
type fileRun struct {
	*world.Caller
	file  string
	proxy *devstacktest.Proxy
}

const fileKey = "payroll"

// fileOf writes a file of so many rows, some of which are declined, and returns the batches that it comes to.
func fileOf(w *world.World, rows int) (name string, parcels []world.Parcel, amount int64) {
	w.Helper()
	const chunk = payments.BatchSizeMax
	var text bytes.Buffer
	text.WriteString("amount,currency,customer,payment_method,metadata.row\r\n")
	for i := range rows {
		if i%chunk == 0 {
			parcels = append(parcels, world.Parcel{Path: world.BatchesPath, Key: fmt.Sprintf("%s.%06d", fileKey, i/chunk)})
		}
		p := &parcels[len(parcels)-1]
		key, err := payments.ChildKey(p.Key, i%chunk)
		if err != nil {
			w.Fatal(err)
		}
		o := w.Order(key)
		o.Money.Customer, o.Money.Amount = fmt.Sprintf("cus_row%d", i), int64(1000+i)
		if i%50 == 49 {
			o.Method, o.Declines = "pm_card_visa_chargeDeclined", true
		}
		p.Orders = append(p.Orders, o)
		amount += o.Money.Amount
		fmt.Fprintf(&text, "%d,USD,%s,%s,%d\r\n", o.Money.Amount, o.Money.Customer, o.Method, i)
	}
	name = filepath.Join(w.TempDir(), "payroll.csv")
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		w.Fatal(err)
	}
	for _, p := range parcels {
		w.ExpectParcel(p)
	}
	return name, parcels, amount
}

// command is the program's command line.
func (f *fileRun) command() *exec.Cmd {
	f.Helper()
	program, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	c := exec.Command(program, "batch", "run", f.file, "--key", fileKey, "--json")
	c.Env = []string{world.ProgramEnv + "=1", "PATH=" + os.Getenv("PATH"), "ONCEPAY_API_URL=http://" + f.proxy.Addr(), "ONCEPAY_API_KEY=" + f.Secret}
	return c
}

// killAt runs the command and kills it with SIGKILL at the n-th piece of what it sends, which gets lost in one of two cases; n is 0 for a kill
// right after its start. It reports whether the run was killed before it had ended by itself.
func (f *fileRun) killAt(n int, lost bool) bool {
	f.Helper()
	c := f.command()
	var mu sync.Mutex
	pieces := 0
	f.proxy.OnClientData(func([]byte) devstacktest.Action {
		mu.Lock()
		defer mu.Unlock()
		if pieces++; pieces < n || n == 0 {
			return devstacktest.Forward
		}
		_ = c.Process.Signal(syscall.SIGKILL)
		if lost || pieces > n {
			return devstacktest.Cut
		}
		return devstacktest.Forward
	})
	mu.Lock()
	err := c.Start()
	mu.Unlock()
	if err != nil {
		f.Fatal(err)
	}
	if n == 0 {
		_ = c.Process.Signal(syscall.SIGKILL)
	}
	err = c.Wait()
	f.proxy.OnClientData(nil)
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		if err != nil {
			f.Fatalf("the run ended by itself: %v", err)
		}
		return false
	}
	return true
}

// fileTotals is what the command says of a run.
type fileTotals struct {
	Parent   string           `json:"parent"`
	Batches  int              `json:"batches"`
	Count    int              `json:"count"`
	Accepted int              `json:"accepted"`
	Amount   map[string]int64 `json:"amount"`
	ByStatus map[payments.Status]struct {
		Count  int              `json:"count"`
		Amount map[string]int64 `json:"amount"`
	} `json:"by_status"`
	Complete bool `json:"complete"`
}

// clean runs the command to its end, which must be exit code 0, and returns what it printed.
func (f *fileRun) clean() (text string, totals fileTotals) {
	f.Helper()
	c := f.command()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		f.Fatal(err)
	}
	late := time.AfterFunc(2*world.RestLimit, func() { _ = c.Process.Kill() })
	defer late.Stop()
	if err := c.Wait(); err != nil {
		f.Fatalf("the clean run: %v\n%s", err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), &totals); err != nil {
		f.Fatalf("%v: %s", err, out.String())
	}
	return out.String(), totals
}

func batchCount(w *world.World) (n int) {
	w.Helper()
	w.SQL(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*) FROM batches").Scan(&n)
	})
	return n
}

// stored is everything that the tables of payments hold, in one value.
func stored(w *world.World) (sum string) {
	w.Helper()
	w.SQL(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT md5(concat(
			(SELECT string_agg(p::text, '|' ORDER BY p.tenant_id, p.id) FROM payments p),
			(SELECT string_agg(b::text, '|' ORDER BY b.tenant_id, b.id) FROM batches b),
			(SELECT string_agg(e::text, '|' ORDER BY e.tenant_id, e.payment_id, e.sequence) FROM payment_events e),
			(SELECT count(*) FROM queue), (SELECT count(*) FROM dead_letters)))`).Scan(&sum)
	})
	return sum
}

// TestBatchFileKilled kills `oncepay batch run` with SIGKILL at random points, again and again: while it checks the file, in the middle of a
// request, between request and answer, while it follows the payments. Then it runs once to the end. Every row is paid once, the totals are the
// file's, and running it again changes nothing.
func TestBatchFileKilled(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.NewOf(t, world.OutageTimes)
	watchCompletions(w)
	straggle(w, 50)
	const rows = 2500 / world.Scale
	seed := world.SeedOf(t)
	random := rand.New(rand.NewPCG(seed, 0))
	addr := w.SpawnDoor().Address()
	f := &fileRun{Caller: w.NewCaller(), proxy: devstacktest.NewProxy(t, addr)}
	file, parcels, amount := fileOf(w, rows)
	f.file = file
	var way []int // how many batches there were after each kill
	// The first runs on a slow machine may come to nothing.
	for runs := 0; len(way) < kills || way[len(way)-1] == 0; runs++ {
		if runs == 5*kills {
			t.Fatalf("of %d runs only %d could be killed", runs, len(way))
		}
		begun := batchCount(w)
		n := random.IntN(begun + 6)
		if len(way) >= kills*4/5 {
			n = len(parcels)*3/4 + random.IntN(len(parcels)) // late: when most is sent, or the payments are being followed
		}
		if f.killAt(n, random.IntN(2) == 0) {
			way = append(way, batchCount(w))
		}
	}
	t.Logf("batches of %d after each kill: %v", len(parcels), way)
	if way[len(way)-1] == 0 || way[0] == len(parcels) {
		t.Error("the killed runs did nothing or everything: the case shows little")
	}
	text, totals := f.clean()
	for _, p := range parcels { // it says so
		for _, o := range p.Orders {
			w.Acknowledged(o.ID())
		}
	}
	declined := rows / 50
	good, bad := totals.ByStatus[payments.StatusSucceeded], totals.ByStatus[payments.StatusFailed]
	if totals.Parent != fileKey || totals.Batches != len(parcels) || totals.Count != rows || totals.Accepted != rows || totals.Amount["usd"] != amount ||
		!totals.Complete || good.Count != rows-declined || bad.Count != declined || good.Amount["usd"]+bad.Amount["usd"] != amount {
		t.Errorf("the totals: %s", text)
	}
	a := w.MustBeGood(0)
	if len(a.Payments) != rows || len(a.Charges) != rows-declined {
		t.Errorf("%d payments, %d charges", len(a.Payments), len(a.Charges))
	}
	mustHaveWitnessed(w, len(parcels))
	mustBeTold(w, a, parcels)

	before, posts := stored(w), w.Sim.Summary().Posts
	if again, _ := f.clean(); again != text {
		t.Errorf("a second run says %s", again)
	}
	w.Rest()
	if stored(w) != before || w.Sim.Summary().Posts != posts {
		t.Error("a second run changed something")
	}
	if b := w.Account(); len(b.Charges) != len(a.Charges) || !slices.Equal(b.Events, a.Events) {
		t.Errorf("a second run: %d charges and %d events where there were %d and %d", len(b.Charges), len(b.Events), len(a.Charges), len(a.Events))
	}
}
