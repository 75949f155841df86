package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/oncepay/oncepay/ingress/apidoc"
)

// limit bounds one browser, its start included.
const limit = 4 * time.Minute

// page is the reference page in a browser of its own.
type page struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu        sync.Mutex
	said      []string // on the console
	elsewhere []string // requests that left the origin
	loaded    int
}

// newPage starts a browser that shows nothing yet.
func newPage(t *testing.T, width, height int64) *page {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Fatal("this test needs Chromium: install it (Debian: apt-get install chromium)")
	}
	server := httptest.NewServer(apidoc.Handler())
	t.Cleanup(server.Close)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(limit))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit) // t.Context ends before the browser is asked to
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits for its end: its folder is removed next
			t.Errorf("the browser did not end: %v", err)
		}
		cancel()
	})
	p := &page{t: t, ctx: ctx, origin: server.URL}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	p.run(command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}), command(runtime.Enable, cdp.Empty{}))
	if width < 600 {
		p.run(chromedp.EmulateViewport(width, height, chromedp.EmulateMobile))
	} else {
		p.run(chromedp.EmulateViewport(width, height))
	}
	return p
}

func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		p.said = append(p.said, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		p.said = append(p.said, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		p.said = append(p.said, e.Entry.Text+" "+e.Entry.URL)
	case *network.EventRequestWillBeSent:
		p.loaded++
		if !strings.HasPrefix(e.Request.URL, p.origin+"/") {
			p.elsewhere = append(p.elsewhere, e.Request.URL)
		}
	}
}

func (p *page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// value is what an action finds.
func value[T any](p *page, action chromedp.Action[T]) T {
	p.t.Helper()
	found, err := chromedp.Run(p.ctx, action)
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// command is a command of the protocol as an action.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// eval is what a JavaScript expression says.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	return value(p, chromedp.Evaluate[T](expression))
}

// quiet checks what holds of every visit, at its end.
func (p *page) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.said) > 0 {
		p.t.Errorf("on the console: %s", strings.Join(p.said, "\n"))
	}
	if len(p.elsewhere) > 0 {
		p.t.Errorf("asked of others: %v", p.elsewhere)
	}
	if p.loaded < 4 { // the page, its style, its script, its icon
		p.t.Errorf("only %d requests were seen", p.loaded)
	}
}

// TestLinks follows every link of the page to its place.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			p := newPage(t, width, 800)
			p.run(chromedp.Navigate(p.origin + "/docs"))
			if wide := eval[int64](p, `document.documentElement.scrollWidth`); wide > width {
				t.Errorf("the page is %d wide in a window of %d", wide, width)
			}
			lost := eval[[]string](p, `(() => {
				const lost = [];
				const header = document.querySelector("header").getBoundingClientRect().height;
				const seen = new Set();
				for (const a of document.querySelectorAll("a[href^='#']")) {
					if (seen.has(a.hash)) continue;
					seen.add(a.hash);
					location.hash = a.hash;
					const place = document.getElementById(a.hash.slice(1));
					const at = place?.getBoundingClientRect();
					const last = Math.ceil(scrollY + innerHeight) >= document.documentElement.scrollHeight;
					if (!at || at.top >= innerHeight || (at.top < header - 1 && a.hash !== "#main" && !last)) lost.push(a.hash + " at " + at?.top);
				}
				if (seen.size < 50) lost.push("only " + seen.size + " links");
				return lost;
			})()`)
			if len(lost) > 0 {
				t.Errorf("links that do not show their place: %v", lost)
			}
			p.quiet()
		})
	}
}

// TestKeyboard reads the page without a mouse.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	p := newPage(t, 1280, 800)
	p.run(chromedp.Navigate(p.origin+"/docs"), chromedp.KeyEvent(kb.Tab))
	if got := eval[string](p, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first stop is %q, want the link past the contents", got)
	}
	// As a keyboard does it, and chromedp.KeyEvent does not: the text comes with the key, and is held back where the key is.
	p.run(command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/"}), chromedp.KeyEvent("batch"))
	if got := eval[string](p, `document.getElementById("filter").value`); got != "batch" {
		t.Errorf("the filter has %q", got)
	}
	shown := `[...document.querySelectorAll("nav li")].filter((li) => li.offsetParent !== null).map((li) => li.textContent.trim().toLowerCase())`
	found := eval[[]string](p, shown)
	for _, text := range found {
		if !strings.Contains(text, "batch") {
			t.Errorf("the filter shows %q", text)
		}
	}
	if len(found) < 5 {
		t.Errorf("the filter shows %v", found)
	}
	p.run(chromedp.KeyEvent(kb.Escape))
	if all := eval[[]string](p, shown); len(all) < 40 {
		t.Errorf("after Escape %d entries are shown", len(all))
	}
	if got := eval[string](p, `document.activeElement.id`); got != "main" {
		t.Errorf("after Escape the focus is on %q", got)
	}
	p.quiet()
}

// TestThemes: the system's theme counts until the reader chooses, and the choice is kept.
func TestThemes(t *testing.T) {
	t.Parallel()
	p := newPage(t, 1280, 800)
	paper := func() string { return eval[string](p, `getComputedStyle(document.body).backgroundColor`) }
	const light, dark = "rgb(255, 255, 255)", "rgb(17, 23, 22)"
	scheme := func(value string) chromedp.Action[chromedp.Void] {
		return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
	}
	p.run(scheme("dark"), chromedp.Navigate(p.origin+"/docs"))
	if got := paper(); got != dark {
		t.Errorf("in a dark system the paper is %s", got)
	}
	p.run(scheme("light"))
	if got := paper(); got != light {
		t.Errorf("in a light system the paper is %s", got)
	}
	p.run(chromedp.Click("#theme"), chromedp.Click("#theme"), chromedp.Reload())
	if got := paper(); got != dark {
		t.Errorf("the reader chose dark; after a reload the paper is %s", got)
	}
	faint := eval[[]string](p, contrast)
	if len(faint) > 0 {
		t.Errorf("dark: hard to read: %v", faint)
	}
	p.run(chromedp.Click("#theme"), chromedp.Click("#theme"))
	if faint := eval[[]string](p, contrast); len(faint) > 0 {
		t.Errorf("light: hard to read: %v", faint)
	}
	p.quiet()
}

// contrast lists kinds of text whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3).
const contrast = `(() => {
	const light = (c) => {
		const [r, g, b] = c.match(/\d+(\.\d+)?/g).map(Number).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor;
			if (c !== "rgba(0, 0, 0, 0)") return c;
		}
		return "rgb(255, 255, 255)";
	};
	const faint = new Set();
	for (const e of document.querySelectorAll("main *, nav *, header *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) faint.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
	}
	return [...faint];
})()`

// TestWithoutScript: whoever turns JavaScript off reads the same page.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	p := newPage(t, 390, 800)
	p.run(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(p.origin+"/docs"))
	text := value(p, chromedp.Text("main"))
	for _, want := range []string{"idempotency_key_reused", "/v1/batches", "What to do"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q cannot be read", want)
		}
	}
	contents := value(p, chromedp.Text("nav"))
	if !strings.Contains(contents, "rate_limited") || strings.Contains(contents, "Filter") {
		t.Errorf("the contents without script: %s", contents)
	}
}

// TestNarrowContents: on a narrow screen the contents give way to what they lead to.
func TestNarrowContents(t *testing.T) {
	t.Parallel()
	p := newPage(t, 390, 800)
	p.run(chromedp.Navigate(p.origin + "/docs"))
	open := `document.getElementById("contents").open`
	if eval[bool](p, open) {
		t.Error("the contents cover the page at first")
	}
	p.run(chromedp.Click("nav summary"))
	if !eval[bool](p, open) {
		t.Error("the contents do not open")
	}
	p.run(chromedp.Click(`nav a[href="#getBatch"]`))
	if eval[bool](p, open) || eval[string](p, `location.hash`) != "#getBatch" {
		t.Error("a link of the contents does not lead to its place")
	}
	p.quiet()
}
