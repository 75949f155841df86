package dev

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"time"
)

// httpClient speaks HTTP/1.1 on one connection that is kept, one request after another, as load generators do: it renders each request into one
// write, and reads of an answer what it must. It costs a fraction of net/http's client, which shares the machine's cores with what is measured.
type httpClient struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	head string // of every request, up to its key
}

// clientTimeout is how long after its turn a client still waits for an answer.
const clientTimeout = 30 * time.Second

// dialHTTP connects a client that posts documents to one path until the given time, and gives up clientTimeout later.
func dialHTTP(ctx context.Context, addr, path, secret string, until time.Time) (*httpClient, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(until.Add(clientTimeout)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &httpClient{
		conn: conn, in: bufio.NewReader(conn),
		head: "POST " + path + " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer " + secret + "\r\nIdempotency-Key: ",
	}, nil
}

func (c *httpClient) close() { _ = c.conn.Close() }

// post sends one document and returns the answer's status.
func (c *httpClient) post(key string, body []byte) (status int, err error) {
	c.out = append(append(c.out[:0], c.head...), key...)
	c.out = append(strconv.AppendInt(append(c.out, "\r\nContent-Length: "...), int64(len(body)), 10), "\r\n\r\n"...)
	c.out = append(c.out, body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, err
	}
	return c.answer()
}

var (
	endOfHead     = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ") // as net/http writes it, on both sides
)

// answer reads the status of an answer whose length its header tells, and passes over the rest of it.
func (c *httpClient) answer() (status int, err error) {
	for need := 1; ; need = c.in.Buffered() + 1 {
		if _, err := c.in.Peek(need); err != nil { // a head that is larger than the buffer, too
			return 0, err
		}
		buffered, _ := c.in.Peek(c.in.Buffered())
		end := bytes.Index(buffered, endOfHead)
		if end < 0 {
			continue
		}
		head := buffered[:end+2]
		at := bytes.Index(head, contentLength)
		if at < 12 {
			return 0, errNoAnswer
		}
		digits, _, _ := bytes.Cut(head[at+len(contentLength):], endOfHead[:2])
		length, lengthErr := strconv.Atoi(string(digits))
		status, err := strconv.Atoi(string(head[9:12]))
		if err != nil || lengthErr != nil || length < 0 {
			return 0, errNoAnswer
		}
		_, err = c.in.Discard(end + len(endOfHead) + length)
		return status, err
	}
}

var errNoAnswer = errors.New("the server's answer is not one that the benchmark can read")
