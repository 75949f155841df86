package apidoc

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func get(t *testing.T, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

// TestServed: what is served is the committed file, and each caller gets it once.
func TestServed(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	w := get(t, "GET", "/openapi.json")
	if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), committed) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d, %v, %d bytes of %d", w.Code, w.Header(), w.Body.Len(), len(committed))
	}
	for path, mediaType := range map[string]string{
		"/openapi.json": "application/json", "/docs": "text/html; charset=utf-8", "/docs/page.css": "text/css; charset=utf-8",
		"/docs/page.js": "text/javascript; charset=utf-8", "/docs/icon.svg": "image/svg+xml",
	} {
		w := get(t, "GET", path)
		tag := w.Header().Get("ETag")
		if w.Code != 200 || w.Body.Len() == 0 || w.Header().Get("Content-Type") != mediaType || tag == "" {
			t.Errorf("%s: %d, %v", path, w.Code, w.Header())
		}
		if csp := w.Header().Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.HasPrefix(csp, "default-src 'none';") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, w.Header())
		}
		for _, have := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			if w := get(t, "GET", path, "If-None-Match", have); w.Code != 304 || w.Body.Len() != 0 || w.Header().Get("ETag") != tag {
				t.Errorf("%s: whoever has %s gets %d with %d bytes", path, have, w.Code, w.Body.Len())
			}
		}
		if w := get(t, "GET", path, "If-None-Match", `"other"`); w.Code != 200 {
			t.Errorf("%s: another version was answered %d", path, w.Code)
		}
	}
	if w := get(t, "GET", "/docs/"); w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "/docs" {
		t.Errorf("/docs/: %d, %v", w.Code, w.Header())
	}
	for _, method := range []string{"GET", "POST"} {
		if w := get(t, method, "/docs/nothing"); w.Code != 404 || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), `"not_found"`) {
			t.Errorf("%s /docs/nothing: %d, %v", method, w.Code, w.Header())
		}
	}
}

var (
	idPattern   = regexp.MustCompile(`\sid="([^"]*)"`)
	hrefPattern = regexp.MustCompile(`\s(?:href|src)="([^"]*)"`)
)

// TestPage: every operation, schema and code has its place, every link leads somewhere, and nothing comes from elsewhere.
func TestPage(t *testing.T) {
	t.Parallel()
	page := get(t, "GET", "/docs").Body.String()
	var ids []string
	for _, m := range idPattern.FindAllStringSubmatch(page, -1) {
		if slices.Contains(ids, m[1]) {
			t.Errorf("two places have the id %s", m[1])
		}
		ids = append(ids, m[1])
	}
	doc, err := parse(Document())
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, path := range doc.Paths {
		for _, op := range path.Value {
			want = append(want, op.Value.OperationID)
		}
	}
	for _, s := range doc.Components.Schemas {
		want = append(want, "schema-"+s.Name)
	}
	for _, p := range doc.Problems {
		want = append(want, p.Code)
		if p.Title == "" || p.Meaning == "" || p.Remedy == "" || p.Retry == "" || p.Status < 400 {
			t.Errorf("%s is not explained: %+v", p.Code, p)
		}
	}
	for _, id := range want {
		if !slices.Contains(ids, id) {
			t.Errorf("/docs#%s leads nowhere", id)
		}
	}
	for _, m := range hrefPattern.FindAllStringSubmatch(page, -1) {
		link, isAnchor := strings.CutPrefix(m[1], "#")
		switch {
		case isAnchor && !slices.Contains(ids, link):
			t.Errorf("the link #%s leads nowhere", link)
		case !isAnchor && get(t, "GET", m[1]).Code != 200:
			t.Errorf("the page wants %s, which is not served here", m[1])
		}
	}
	for _, inline := range []string{"<style", " style=", "<script>", " onclick", "javascript:", "ZgotmplZ"} {
		if strings.Contains(page, inline) {
			t.Errorf("the page has %q, which its policy forbids, or the template refused", inline)
		}
	}
	for _, name := range []string{"page.css", "page.js"} {
		if text := get(t, "GET", "/docs/"+name).Body.String(); strings.Contains(text, "//") && regexp.MustCompile(`https?:|url\(|@import|import `).MatchString(text) {
			t.Errorf("%s loads something", name)
		}
	}
}

// TestEnumCodes: a Problem's codes are those that are explained, with the same titles and statuses in all examples.
func TestEnumCodes(t *testing.T) {
	t.Parallel()
	doc, err := parse(Document())
	if err != nil {
		t.Fatal(err)
	}
	var explained []string
	for _, p := range doc.Problems {
		explained = append(explained, p.Code)
	}
	problem, _ := doc.Components.Schemas.get("Problem")
	code, _ := problem.Properties.get("code")
	if !slices.Equal(code.Enum, explained) {
		t.Errorf("codes %v\nexplained %v", code.Enum, explained)
	}
	samples := doc.problemExamples()
	for _, p := range doc.Problems {
		for _, r := range doc.Components.Responses {
			for _, m := range r.Value.Content {
				if slices.Contains(m.Value.Schema.codes(), p.Code) && samples[p.Code] == "" {
					t.Errorf("%s has no example", p.Code)
				}
			}
		}
	}
}

func TestFormatted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a <b> & `c <d>`":               "<p>a &lt;b&gt; &amp; <code>c &lt;d&gt;</code></p>",
		"one\n\ntwo":                    "<p>one</p><p>two</p>",
		"## A title\n\n- x\n- `y`":      `<h3 id="a-title">A title</h3><ul><li>x</li><li><code>y</code></li></ul>`,
		"```sh\na <b\n\nc\n```\n\nlast": "<pre tabindex=\"0\"><code>a &lt;b\n\nc</code></pre><p>last</p>",
		"a ` alone":                     "<p>a ` alone</p>",
		"```\nnever closed":             "<pre tabindex=\"0\"><code>never closed</code></pre>",
		"":                              "",
	} {
		if got := string(formatted(text)); got != want {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

// FuzzFormatted: whatever the text, no tag comes out but ours.
func FuzzFormatted(f *testing.F) {
	for _, s := range []string{"<script>", "`<b>`", "- <i>", "## <u>", "```\n<s>\n```", "`", "``", "a`b`c`"} {
		f.Add(s)
	}
	tag := regexp.MustCompile(`<[^>]*>?`)
	ours := regexp.MustCompile(`^</?(p|code|pre|ul|li|h3)( tabindex="0"| id="[^"<>]*")?>$`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range tag.FindAllString(string(formatted(text)), -1) {
			if !ours.MatchString(found) {
				t.Errorf("%q gave the tag %q", text, found)
			}
		}
	})
}

// TestCurl: the commands are read by a shell as the request that the operation describes.
func TestCurl(t *testing.T) {
	t.Parallel()
	doc, err := parse(Document())
	if err != nil {
		t.Fatal(err)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range doc.Paths {
		for _, op := range path.Value {
			method := strings.ToUpper(op.Name)
			command := curl(method, path.Name, op.Value, len(op.Value.Security) > 0)
			c := exec.CommandContext(t.Context(), shell, "-c", `curl() { printf '%s\n' "$@"; }; `+command)
			c.Env = []string{"ONCEPAY_API_URL=http://127.0.0.1", "ONCEPAY_API_KEY=opk_1"}
			out, err := c.CombinedOutput()
			arguments := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			if err != nil || strings.ContainsAny(arguments[0], "{}") || !strings.HasPrefix(arguments[0], "http://127.0.0.1/") {
				t.Errorf("%s %s: %v\n%s", method, path.Name, err, out)
			}
			if method == "POST" && (!slices.Contains(arguments, "-d") || !strings.Contains(string(out), "Idempotency-Key: ")) {
				t.Errorf("%s %s sends no body, or no key:\n%s", method, path.Name, out)
			}
			if strings.HasPrefix(path.Name, "/v1/") != slices.Contains(arguments, "Authorization: Bearer opk_1") {
				t.Errorf("%s %s: the API key:\n%s", method, path.Name, out)
			}
		}
	}
}
