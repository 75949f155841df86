package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/oncepay/oncepay/schema"
)

// ClientOptions say where the API is and who asks.
type ClientOptions struct {
	URL    string // https, or http on loopback
	APIKey string // opk_…
	// Insecure allows http to other hosts, where the key and the payments can be read on the way.
	Insecure bool
	// Timeout bounds one attempt. Default 60 s.
	Timeout time.Duration
	// Connections bounds the connections. Default 8.
	Connections int
	// UserAgent is sent along.
	UserAgent string
}

// Client speaks to the HTTP door. It makes one attempt a call: whether it is made again is its caller's matter. It follows no redirect, since one
// would carry the key elsewhere.
type Client struct {
	base    string
	key     string
	agent   string
	timeout time.Duration
	http    *http.Client
}

// NewClient checks the options. No error repeats the URL or the key.
func NewClient(o ClientOptions) (*Client, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must be an address such as https://pay.example.com")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("must have neither user, query nor fragment")
	case u.Scheme == "http" && !loopback(u.Hostname()) && !o.Insecure:
		return nil, errors.New("is http to another machine, where the API key and all payments can be read on the way: use https")
	}
	if o.Timeout <= 0 {
		o.Timeout = 60 * time.Second
	}
	if o.Connections <= 0 {
		o.Connections = 8
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxConnsPerHost:       o.Connections,
		MaxIdleConnsPerHost:   o.Connections,
		IdleConnTimeout:       30 * time.Second,
		ForceAttemptHTTP2:     true,
		ExpectContinueTimeout: time.Second,
	}
	return &Client{
		base: strings.TrimSuffix(u.String(), "/"), key: o.APIKey, agent: o.UserAgent, timeout: o.Timeout,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// Bounds on answers, in bytes: more is not of this API.
const (
	answerMax = 16 << 20
	errorMax  = 256 << 10
)

// Accept posts a batch under its key. replayed says that it had been accepted before. Its errors are *ProblemError for an answer that is no
// acceptance, and else the connection's: what became of the request is then unknown, and the same call is right.
func (c *Client) Accept(ctx context.Context, key string, body []byte) (accepted schema.BatchAccepted, replayed bool, err error) {
	header := http.Header{
		schema.HeaderIdempotencyKey: {quoteKey(key)},
		"Content-Type":              {"application/json"},
	}
	answer, err := c.do(ctx, http.MethodPost, "/v1/batches", header, body, &accepted)
	return accepted, answer.Get("Idempotent-Replayed") == "true", err
}

// Batches reads a page of the batches of a run, oldest first.
func (c *Client) Batches(ctx context.Context, run, cursor string, limit int) (page schema.List[schema.Batch], err error) {
	query := url.Values{"parent": {run}, "limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	_, err = c.do(ctx, http.MethodGet, "/v1/batches?"+query.Encode(), http.Header{}, nil, &page)
	return page, err
}

// Payment reads the payment of a key.
func (c *Client) Payment(ctx context.Context, key string) (schema.Payment, error) {
	var page schema.List[schema.Payment]
	_, err := c.do(ctx, http.MethodGet, "/v1/payments?"+url.Values{"idempotency_key": {key}}.Encode(), http.Header{}, nil, &page)
	if err == nil && (len(page.Data) != 1 || page.Data[0].IdempotencyKey != key) {
		err = &ProblemError{Status: http.StatusOK, Code: codeForeign}
	}
	if err != nil {
		return schema.Payment{}, err
	}
	return page.Data[0], nil
}

// quoteKey writes a key as a structured-field string where it could otherwise be taken for one.
func quoteKey(key string) string {
	if !strings.HasPrefix(key, `"`) {
		return key
	}
	return string(appendQuoted(nil, key))
}

func (c *Client) do(ctx context.Context, method, path string, header http.Header, body []byte, into any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the request cannot be made: check the address")
	}
	header.Set("Authorization", "Bearer "+c.key)
	header.Set("Accept", "application/json, application/problem+json")
	header.Set("User-Agent", c.agent)
	request.Header = header
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, connectionError(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusAccepted && answer.StatusCode != http.StatusOK {
		return nil, readProblem(answer)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, answerMax+1))
	if err != nil {
		return nil, connectionError(err)
	}
	if len(data) > answerMax || json.Unmarshal(data, into) != nil {
		return nil, &ProblemError{Status: answer.StatusCode, Code: codeForeign}
	}
	return answer.Header, nil
}

// connectionError leaves out the address, which names the key of no one but the path of everybody.
func connectionError(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	var unreached *net.OpError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at ONCEPAY_API_URL: is the service running, and is the address right? (%w)", err)
	case errors.As(err, &unreached) && unreached.Op == "dial":
		return fmt.Errorf("ONCEPAY_API_URL cannot be reached: check the address and the network (%w)", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer in time: %w", err)
	}
	return err
}
