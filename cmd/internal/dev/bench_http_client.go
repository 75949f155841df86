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

// httpClient speaks HTTP/1.1 on one connection that is kept, one request after another. It costs a fraction of net/http's client, which shares the
// machine's cores with what is measured.
type httpClient struct {
	conn net.Conn
	in   *bufio.Reader
	out  bytes.Buffer
}

// clientTimeout bounds one request and its answer.
const clientTimeout = 30 * time.Second

func dialHTTP(ctx context.Context, addr string) (*httpClient, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &httpClient{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *httpClient) close() { _ = c.conn.Close() }

// post sends one document and returns the answer's status.
func (c *httpClient) post(path, secret, key string, body []byte) (status int, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(clientTimeout)); err != nil {
		return 0, err
	}
	c.out.Reset()
	c.out.WriteString("POST " + path + " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer " + secret +
		"\r\nIdempotency-Key: " + key + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
	c.out.Write(body)
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return 0, err
	}
	return c.answer()
}

// answer reads the status of an answer whose length its header tells, and passes over the rest of it.
func (c *httpClient) answer() (status int, err error) {
	length := -1
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch name, value, _ := bytes.Cut(line, []byte(":")); {
		case first:
			if len(line) < 12 {
				return 0, errNoAnswer
			}
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, errNoAnswer
			}
		case len(line) == 0:
			if length < 0 {
				return 0, errNoAnswer
			}
			_, err := c.in.Discard(length)
			return status, err
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 {
				return 0, errNoAnswer
			}
		}
	}
}

var errNoAnswer = errors.New("the server's answer is not one that the benchmark can read")
