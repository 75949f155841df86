package app

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/payments"
)

// Metrics are a process's own; names are noun_unit_total, labels are bounded: never a tenant, a key or an id; of the accounts, those that
// were in trouble.
type Metrics struct {
	Registry *prometheus.Registry

	messages     *prometheus.CounterVec
	settled      *prometheus.CounterVec
	observations *prometheus.CounterVec
	taken        *prometheus.CounterVec
	deadLetters  *prometheus.CounterVec
	panics       prometheus.Counter
	inFlight     prometheus.Gauge
	breakerOpen  *prometheus.GaugeVec
	latency      prometheus.Histogram
	eventsSent   prometheus.Counter
	eventsFailed prometheus.Counter
	streamBytes  *prometheus.GaugeVec
	trimmed      *prometheus.CounterVec
	trimHeld     *prometheus.CounterVec
	completed    prometheus.Counter
	requests     *prometheus.CounterVec
	requestTime  *prometheus.HistogramVec
}

// NewMetrics registers everything on a registry of its own.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry:     prometheus.NewRegistry(),
		messages:     counters("messages_total", "Messages read, by lane and by what became of them.", "lane", "fate"),
		settled:      counters("settlements_total", "Claims ended, by the status recorded, or lost or unrecorded.", "lane", "status"),
		observations: counters("stripe_observations_total", "Answers of Stripe, by what they prove.", "kind"),
		taken:        counters("tickets_taken_total", "Due tickets taken.", "lane"),
		deadLetters:  counters("dead_letters_total", "Dead letters committed, by reason.", "reason"),
		panics:       prometheus.NewCounter(prometheus.CounterOpts{Name: "oncepay_handler_panics_total", Help: "Panics recovered in handlers."}),
		inFlight:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "oncepay_payments_in_flight", Help: "Slots in use."}),
		breakerOpen: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "oncepay_breaker_open", Help: "1 while nothing but probes is sent to a Stripe account from here; accounts that never were in trouble are not listed.",
		}, []string{"account"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "oncepay_end_to_end_seconds", Help: "From the message's storage in JetStream to the recorded outcome.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		}),
		eventsSent:   prometheus.NewCounter(prometheus.CounterOpts{Name: "oncepay_outbox_sent_total", Help: "Outbox items stored in their stream."}),
		eventsFailed: prometheus.NewCounter(prometheus.CounterOpts{Name: "oncepay_outbox_failed_total", Help: "Publishes of outbox items that failed or stayed unclear; each is tried again."}),
		streamBytes:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "oncepay_stream_bytes", Help: "Bytes that a stream of intents holds."}, []string{"stream"}),
		trimmed:      counters("stream_trimmed_messages_total", "Acked messages taken off a stream.", "stream"),
		completed:    prometheus.NewCounter(prometheus.CounterOpts{Name: "oncepay_batches_completed_total", Help: "Batches of which this process told that every payment has its outcome."}),
		requests:     counters("http_requests_total", "Requests to the HTTP API, by route, method and status.", "route", "method", "status"),
		requestTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oncepay_http_request_seconds", Help: "From the request's header to the end of its answer, waiting by Prefer included.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"route", "method"}),
		trimHeld: counters("stream_trim_held_total", "Looks at which a stream should have been trimmed and could not be, by what held it.", "stream", "why"),
	}
	m.Registry.MustRegister(m.messages, m.settled, m.observations, m.taken, m.deadLetters, m.panics, m.inFlight, m.breakerOpen, m.latency, m.eventsSent, m.eventsFailed,
		m.streamBytes, m.trimmed, m.trimHeld, m.completed, m.requests, m.requestTime,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oncepay_" + name, Help: help}, labels)
}

// Request counts one answer of the HTTP API. The route is a pattern of ours or "unknown", so that labels stay bounded.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.requestTime.WithLabelValues(route, method).Observe(took.Seconds())
}

// Gauge registers a value that is read when it is scraped; read returns false while it cannot be told.
func (m *Metrics) Gauge(name, help string, read func() (float64, bool)) {
	m.Registry.MustRegister(&readGauge{desc: prometheus.NewDesc("oncepay_"+name, help, nil, nil), read: read})
}

// readGauge leaves a value out while it cannot be read: a wrong zero would silence an alarm.
type readGauge struct {
	desc *prometheus.Desc
	read func() (float64, bool)
}

// Describe implements prometheus.Collector.
func (g *readGauge) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

// Collect implements prometheus.Collector.
func (g *readGauge) Collect(ch chan<- prometheus.Metric) {
	if v, ok := g.read(); ok {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, v)
	}
}

// Observer is the worker's view of the metrics.
func (m *Metrics) Observer() consumer.Observer {
	return consumer.Observer{
		Message: func(l payments.Lane, fate string) { m.messages.WithLabelValues(l.String(), fate).Inc() },
		Settled: func(l payments.Lane, s payments.Settlement, waited time.Duration) {
			m.settled.WithLabelValues(l.String(), settledAs(s)).Inc()
			if waited > 0 && s.Err == nil {
				m.latency.Observe(waited.Seconds())
			}
			if s.Err == nil && s.Recorded.Payment.Status == payments.StatusStalled { // its dead letter was committed with it
				m.deadLetters.WithLabelValues(string(payments.ReasonAttemptsExhausted)).Inc()
			}
		},
		Taken:     func(l payments.Lane, n int) { m.taken.WithLabelValues(l.String()).Add(float64(n)) },
		Buried:    func(r payments.Reason) { m.deadLetters.WithLabelValues(string(r)).Inc() },
		Panicked:  m.panics.Inc,
		Completed: func(n int) { m.completed.Add(float64(n)) },
		InFlight:  func(n int) { m.inFlight.Set(float64(n)) },
		Breaker: func(a payments.Account, open bool) {
			value := 0.0
			if open {
				value = 1
			}
			m.breakerOpen.WithLabelValues(a.ID).Set(value)
		},
	}
}

func settledAs(s payments.Settlement) string {
	switch {
	case s.Lost:
		return "lost"
	case s.Err != nil:
		return "unrecorded"
	default:
		return string(s.Recorded.Payment.Status)
	}
}

// Observation counts an answer of Stripe.
func (m *Metrics) Observation(_ payments.Payment, o payments.Observation) {
	m.observations.WithLabelValues(strings.ToLower(string(o.Kind))).Inc()
}
