package apidoc

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed openapi.json
var openAPI []byte

//go:embed assets/page.css assets/page.js assets/icon.svg
var assets embed.FS

// Document returns the OpenAPI document, byte for byte as it is committed and served.
func Document() []byte { return slices.Clone(openAPI) }

// Handler serves GET and HEAD of /openapi.json, /docs and what lies below /docs/, which are the page's own style, script and icon. Every
// answer has an ETag and is 304 to whoever has it already. What it serves is made once.
func Handler() http.Handler { return handler() }

var handler = sync.OnceValue(func() http.Handler {
	doc, err := parse(openAPI)
	if err != nil {
		panic("apidoc: the embedded openapi.json: " + err.Error()) // the tests have read the same bytes
	}
	page, err := render(doc)
	if err != nil {
		panic("apidoc: the page of the embedded openapi.json: " + err.Error())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /openapi.json", newFile("application/json", openAPI))
	mux.Handle("GET /docs", newFile("text/html; charset=utf-8", page))
	mux.Handle("GET /docs/{$}", http.RedirectHandler("/docs", http.StatusPermanentRedirect))
	// The types are stated, since those of package mime change with the machine's tables.
	for name, mediaType := range map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic("apidoc: " + err.Error())
		}
		mux.Handle("GET /docs/"+name, newFile(mediaType, data))
	}
	mux.Handle("/", missing(doc))
	return mux
})

// missing says that there is nothing, as the API does everywhere.
func missing(doc *document) http.HandlerFunc {
	body := []byte(doc.problemExamples()["not_found"])
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(body) // the client has gone, or HEAD
	}
}

// policy lets the page load its own style, script and icon, and nothing else; it runs nothing inline, sends no form and stands in no frame.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is one thing that is served as it is.
type file struct {
	mediaType, tag string
	data           []byte
}

func newFile(mediaType string, data []byte) file {
	sum := sha256.Sum256(data)
	return file{mediaType: mediaType, tag: `"` + hex.EncodeToString(sum[:16]) + `"`, data: data}
}

// ServeHTTP answers with the file, or that the caller has it.
func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache") // kept, and asked for anew each time: an upgrade shows at once
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if matches(r.Header.Values("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.mediaType)
	h.Set("Content-Length", strconv.Itoa(len(f.data)))
	_, _ = w.Write(f.data) // the client has gone, or HEAD
}

// matches compares weakly, as RFC 9110, section 13.1.2, wants it for If-None-Match.
func matches(lines []string, tag string) bool {
	for _, line := range lines {
		for candidate := range strings.SplitSeq(line, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == tag {
				return true
			}
		}
	}
	return false
}
