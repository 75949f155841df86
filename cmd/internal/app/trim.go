package app

import (
	"github.com/oncepay/oncepay/consumer/trim"
	"github.com/oncepay/oncepay/schema"
)

// buildTrim makes the part that takes acked history off the intents' streams. Every process with a worker has one; several do no harm.
func (v *service) buildTrim(subjects schema.Subjects) (err error) {
	v.trimmer, err = trim.New(trim.Config{
		JetStream: v.js, Clock: SystemClock{}, Log: v.log, Observer: v.metrics.Trim(),
		Held: func() bool { return v.gate.Held() != "" }, // a rewind reads what stands there
		Lanes: []trim.Lane{
			{Stream: subjects.StreamIntents(), Durable: schema.ConsumerIntent},
			{Stream: subjects.StreamBulk(), Durable: schema.ConsumerBulk},
		},
	})
	return err
}

// Trim is the trimmer's view of the metrics.
func (m *Metrics) Trim() trim.Observer {
	return trim.Observer{
		Looked:  func(stream string, bytes uint64, _ int64) { m.streamBytes.WithLabelValues(stream).Set(float64(bytes)) },
		Trimmed: func(stream string, messages, _ uint64) { m.trimmed.WithLabelValues(stream).Add(float64(messages)) },
		Held:    func(stream string, why trim.Why) { m.trimHeld.WithLabelValues(stream, string(why)).Inc() },
	}
}
