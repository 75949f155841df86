package devstack

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFetchThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.NotFound(w, r)
	}))
	defer repository.Close()
	home := filepath.Join(t.TempDir(), "cache", "postgres")
	if dir, err := fetchEmbedded(home, repository.URL); err == nil {
		t.Fatalf("fetched %s from nothing", dir)
	}
	if path := <-asked; !strings.Contains(path, string(embeddedVersion)) {
		t.Errorf("asked for %s", path)
	}
	entries, err := os.ReadDir(filepath.Dir(home))
	if err != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, err)
	}
	if _, err := fetchEmbedded("", repository.URL); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("without a home: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}
