package producer_test

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// A service publishes an intent under its own key, and repeats it whenever it does not know what became of it.
func ExamplePublisher_Publish() {
	ctx := context.Background()
	server, err := devstack.StartNATS(devstack.NATSOptions{MaxStore: 64 << 30}) // yours is a URL; room for streams of production on any disk
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	nc, err := nats.Connect(server.URL(), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	subjects := schema.Subjects{}
	js, _ := jetstream.New(nc)
	if err := provision.Ensure(ctx, js, subjects.Streams(schema.DefaultSettings()), nil); err != nil { // `oncepay serve` does that
		fmt.Println(err)
		return
	}

	publisher, err := producer.New(nc, subjects, producer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer publisher.Close()
	intent := payments.Intent{
		TenantID: "demo", IdempotencyKey: "order-3", Amount: 9900, Currency: "usd", PaymentMethod: "pm_card_visa", OffSession: true,
	}
	for range 2 {
		result, err := publisher.Publish(ctx, producer.Message{Intent: intent})
		fmt.Println(result.Outcome, result.PaymentID, err)
	}
	// Output:
	// stored pay_719e2e0b9e12eb37f86f9ec07741f384 <nil>
	// stored pay_719e2e0b9e12eb37f86f9ec07741f384 <nil>
}
