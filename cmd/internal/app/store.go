package app

import (
	"context"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
)

func (v *service) openStore(ctx context.Context) (*postgres.Store, error) {
	var compared func(context.Context, func(context.Context) (payments.MarkState, error))
	if v.gate != nil {
		compared = v.gate.Connected
	}
	name := ""
	if v.plays(RoleWorker) {
		name = WorkerName(v.settings.StripeRate)
	}
	return postgres.Open(ctx, v.settings.DatabaseURL, postgres.Options{
		Name: name, RequestVersion: stripe.RequestVersion, Namespace: v.settings.Namespace, Rate: v.settings.StripeRate, Logger: v.log,
		Committed: v.receiver.offer, Connected: compared,
	})
}

const workerName = "oncepay rate="

// WorkerName is what the connections of a process with the role worker are called at PostgreSQL: it tells its rate, so that whoever looks there sees
// whether all have the same. A budget is one for all processes, and fills at the rate of whoever looks at it.
func WorkerName(rate float64) string {
	return workerName + strconv.FormatFloat(rate, 'g', -1, 64)
}

// RateOfWorker is the rate that a connection's name tells, and whether it is a worker's.
func RateOfWorker(name string) (rate float64, worker bool) {
	text, worker := strings.CutPrefix(name, workerName)
	rate, err := strconv.ParseFloat(text, 64)
	return rate, worker && err == nil && rate >= 0
}
