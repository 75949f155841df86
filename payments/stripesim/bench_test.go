package stripesim

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func benchmarkPosts(b *testing.B, s *Server) {
	b.Helper()
	var n atomic.Int64
	body := pay("customer", "cus_1").Encode()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req := httptest.NewRequest("POST", intentsPath, strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer sk_test_1")
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Idempotency-Key", fmt.Sprint("k", n.Add(1)))
			w := httptest.NewRecorder()
			s.ServeHTTP(w, req)
			if w.Code != http.StatusOK {
				b.Fatalf("status %d: %s", w.Code, w.Body)
			}
		}
	})
}
