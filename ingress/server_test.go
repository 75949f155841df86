package ingress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// serveDesk serves the desk's API on loopback, Run included, and returns its address and what shuts it down in the order of production.
func serveDesk(t *testing.T, d *desk, change ...func(*http.Server)) (addr string, shutdown func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := Server(d.api.Handler())
	for _, f := range change {
		f(server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = d.api.Run(ctx) })
	group.Go(func() { _ = server.Serve(listener) })
	var once sync.Once
	shutdown = func() {
		once.Do(func() {
			cancel()
			stop, cancelStop := context.WithTimeout(context.Background(), patience)
			defer cancelStop()
			if err := server.Shutdown(stop); err != nil {
				_ = server.Close()
			}
			group.Wait()
		})
	}
	t.Cleanup(shutdown)
	return listener.Addr().String(), shutdown
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// raw sends bytes as they are and reads the answer.
func raw(t *testing.T, conn net.Conn, text string) (reply, bool) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, body}, response.Close
}

const head = "POST /v1/payments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + acmeSecret + "\r\nContent-Type: application/json\r\nIdempotency-Key: order-1\r\n"

// A body that is too large is refused when its length is told, and else when it has come that far; the rest is not read, and the connection ends.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	addr, _ := serveDesk(t, d)
	told, closes := raw(t, dial(t, addr), fmt.Sprintf("%sContent-Length: %d\r\n\r\n{", head, PaymentBodyMax+1))
	if told.is(t, "told", 413, "payload_too_large"); !closes {
		t.Error("the connection stays open")
	}
	huge, closes := raw(t, dial(t, addr), head+"Content-Length: 9223372036854775807\r\n\r\n{")
	if huge.is(t, "huge", 413, "payload_too_large"); !closes {
		t.Error("the connection stays open")
	}
	chunk := strings.Repeat(" ", 16<<10)
	chunks := strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk), PaymentBodyMax/len(chunk)) // as much as may be
	untold, closes := raw(t, dial(t, addr), head+"Transfer-Encoding: chunked\r\n\r\n"+chunks+"1\r\n{\r\n")
	if untold.is(t, "untold", 413, "payload_too_large"); !closes {
		t.Error("the connection stays open")
	}
	for _, got := range []reply{told, huge, untold} {
		got.check(t)
	}
	padded := goodBody + strings.Repeat(" ", PaymentBodyMax-len(goodBody))
	if got, closes := raw(t, dial(t, addr), fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(padded), padded)); got.status != 202 || closes {
		t.Errorf("as large as may be: %d %s", got.status, got.body)
	}
	batch := goodBatch + strings.Repeat(" ", BatchBodyMax-len(goodBatch))
	if got := d.post("/v1/batches", "run", batch); got.status != 202 {
		t.Errorf("a batch as large as may be: %d %s", got.status, got.body)
	}
	d.post("/v1/batches", "run", batch+" ").is(t, "a batch beyond", 413, "payload_too_large")
}

// A body that breaks off is no request: nothing is stored.
func TestBrokenOffBody(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	addr, _ := serveDesk(t, d)
	conn := dial(t, addr)
	if _, err := io.WriteString(conn, head+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(goodBody)+1, goodBody)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	got := reply{response.StatusCode, response.Header, body}
	got.is(t, "broken off", 400, "invalid_request")
	if got.check(t); err != nil || !response.Close || d.store.stored() != 0 {
		t.Errorf("%v, closed: %v, %d rows", err, response.Close, d.store.stored())
	}
}

// A body that comes too slowly is a request that may be repeated as it is, and is told so in the way of those; nothing is stored.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"of told length": head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(goodBody)+1, goodBody),
		"in chunks":      head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(goodBody), goodBody),
	} {
		d := newDesk(t)
		addr, _ := serveDesk(t, d, func(s *http.Server) { s.ReadTimeout = time.Second })
		got, closes := raw(t, dial(t, addr), text)
		got.is(t, name, 503, "unavailable")
		got.check(t)
		if !closes || got.header.Get("Retry-After") != "1" || d.store.stored() != 0 {
			t.Errorf("%s: closed: %v, %v, %d rows", name, closes, got.header, d.store.stored())
		}
	}
}

// A request that has both a length and chunks is two requests to a proxy that goes by the length. net/http goes by the chunks and hides the length, so
// nothing that comes after chunks is read as a request.
func TestNothingFollowsChunks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	addr, _ := serveDesk(t, d)
	for _, length := range []string{"", "Content-Length: 4\r\n"} {
		conn := dial(t, addr)
		chunked := head + length + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(goodBody), goodBody)
		smuggled := strings.Replace(head, "order-1", "order-2", 1) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(goodBody), goodBody)
		if _, err := io.WriteString(conn, chunked+smuggled); err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if rest, _ := io.ReadAll(reader); response.StatusCode != 202 || !response.Close || len(rest) != 0 || d.store.stored() != 1 {
			t.Errorf("%q: %d, closed: %v, then %q; %d rows", length, response.StatusCode, response.Close, rest, d.store.stored())
		}
	}
}

// 200 who never finish their heads or bodies do not hold others up, whose requests do not have to wait until the server has had enough of those.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	addr, shutdown := serveDesk(t, d, func(s *http.Server) { s.ReadHeaderTimeout, s.ReadTimeout = time.Hour, time.Hour })
	var slow []net.Conn
	for i := range 200 {
		conn := dial(t, addr)
		text := head + fmt.Sprintf("Content-Length: %d\r\n\r\n{", len(goodBody))
		if i%2 == 0 {
			text = head[:len(head)/2]
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	waitFor(t, "the slow bodies' handlers", func() bool { return len(d.api.inFlight) == 100 })
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	for i := range 50 {
		r, err := http.NewRequest("POST", "http://"+addr+"/v1/payments", strings.NewReader(goodBody))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + acmeSecret}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprint("order-", i)}}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != 202 {
			t.Fatalf("%d", response.StatusCode)
		}
	}
	for _, conn := range slow {
		_ = conn.Close()
	}
	shutdown()
	if len(d.api.inFlight) != 0 || d.store.stored() != 50 {
		t.Errorf("%d in flight, %d rows", len(d.api.inFlight), d.store.stored())
	}
}

// The limits of the server that slow senders and readers meet.
func TestServerLimits(t *testing.T) {
	t.Parallel()
	s := Server(http.NotFoundHandler())
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout < s.ReadHeaderTimeout || s.IdleTimeout <= 0 || s.MaxHeaderBytes < 8<<10 {
		t.Errorf("%+v", s)
	}
	if s.WriteTimeout <= s.ReadTimeout+waitMax {
		t.Errorf("a slow body and the longest wait take longer than %v", s.WriteTimeout)
	}
}

// Those who wait are answered by a shutdown at once, over the wire.
func TestShutdownAnswersWaiters(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *Config) { c.Clock = systemClock{} })
	addr, shutdown := serveDesk(t, d)
	var answered sync.WaitGroup
	for i := range 20 {
		conn := dial(t, addr)
		text := fmt.Sprintf("POST /v1/payments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nIdempotency-Key: o-%d\r\nPrefer: wait=30\r\nContent-Length: %d\r\n\r\n%s", acmeSecret, i, len(goodBody), goodBody)
		answered.Go(func() {
			if got, _ := raw(t, conn, text); got.status != 202 || got.member("id") != payments.NewID("acme", fmt.Sprint("o-", i)).String() {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	waitFor(t, "the waiters", func() bool {
		d.api.waiting.mu.Lock()
		defer d.api.waiting.mu.Unlock()
		return d.api.waiting.count == 20
	})
	begun := time.Now()
	shutdown()
	answered.Wait()
	if took := time.Since(begun); took > 20*time.Second { // they would wait for 30
		t.Errorf("it took %v", took)
	}
}

// A HEAD is a GET without its body; what net/http itself refuses is refused before anything of ours sees it.
func TestOverTheWire(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.post("/v1/payments", "order-1", goodBody)
	addr, _ := serveDesk(t, d)
	target := "/v1/payments/" + payments.NewID("acme", "order-1").String()
	conn := dial(t, addr)
	if _, err := fmt.Fprintf(conn, "HEAD %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", target, acmeSecret); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "HEAD"})
	if err != nil || response.StatusCode != 200 || response.ContentLength != int64(len(d.get(target).body)) {
		t.Errorf("%v %+v", err, response)
	}
	for name, text := range map[string]string{
		"two lengths":         head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n{}",
		"length and chunks":   "POST /v1/payments HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n{",
		"a zero in a header":  "POST /v1/payments HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\x00b\r\n\r\n",
		"a header without :":  "POST /v1/payments HTTP/1.1\r\nHost: x\r\nIdempotency-Key\r\n\r\n",
		"no host":             "POST /v1/payments HTTP/1.1\r\n\r\n",
		"a folded header":     "POST /v1/payments HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\n : b\r\n\r\n",
		"an overlong request": "GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if got, _ := raw(t, dial(t, addr), text); got.status < 400 || got.status > 501 {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	expecting, _ := raw(t, dial(t, addr), head+"Expect: something\r\nContent-Length: 2\r\n\r\n{}")
	if expecting.status != 417 {
		t.Errorf("an unknown expectation: %d", expecting.status)
	}
	if got, _ := raw(t, dial(t, addr), "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"); got.status != 404 || got.code() != "not_found" {
		t.Errorf("OPTIONS *: %d %s", got.status, got.body)
	}
	if d.store.stored() != 1 {
		t.Errorf("%d rows", d.store.stored())
	}
}
