package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/producer"
	"github.com/oncepay/oncepay/schema"
)

// publishFlags are one intent, as flags.
type publishFlags struct {
	intent            payments.Intent
	bulk, onSession   bool
	wait              bool
	within            time.Duration
	kind              string
	named             bool // an amount was named
	captureMethod     string
	metadata          []string
	expiresAt, source string
}

func publishCommand(s *shared) *cobra.Command {
	f := publishFlags{}
	c := &cobra.Command{
		Use: "publish [-]", Short: "Publish one payment intent, from flags or as JSON from standard input (-)", Args: Arguments(0, 1),
		Long: "Publish one payment intent. Repeat it as often as you like: the same key is the same payment.\n\n" +
			"  oncepay publish --tenant acme --key order-1 --amount 9900 --currency usd \\\n    --payment-method pm_card_visa\n" +
			"  oncepay publish --tenant acme --key refund-1 --kind refund --payment-id pay_… --amount 500\n" +
			"  echo '{\"idempotency_key\":\"order-1\",…}' | oncepay publish --tenant acme -\n\n" +
			"With --wait the exit code is 0 only if the payment succeeded, and standard error tells of a key\n" +
			"that was known already, and of a pause that holds the payment. Without it nothing but NATS is\n" +
			"asked, which takes a repeat as it takes a new intent.",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "-" {
				return &app.UsageError{Text: "give flags, or - to read one intent from standard input"}
			}
			if f.within <= 0 {
				return &app.UsageError{Text: "--within: must be longer than 0"}
			}
			f.named = c.Flags().Changed("amount")
			if len(args) == 0 {
				return s.publish(c.Context(), f, nil)
			}
			// What stands in the document does not stand in flags, too: one of both would be ignored.
			for _, name := range documentFlags {
				if c.Flags().Changed(name) {
					return &app.UsageError{Text: "--" + name + ": goes into the document on standard input"}
				}
			}
			return s.publish(c.Context(), f, c.InOrStdin())
		},
	}
	i := &f.intent
	c.Flags().StringVar(&i.TenantID, "tenant", "", "the tenant (required)")
	c.Flags().StringVar(&i.IdempotencyKey, "key", "", "idempotency key: one per payment, the same on every repeat")
	c.Flags().StringVar(&f.kind, "kind", "", "charge (the default); or capture, cancel or refund of --payment-id")
	c.Flags().StringVar(&i.PaymentID, "payment-id", "", "the payment that a capture, cancel or refund is about (pay_…)")
	c.Flags().Int64Var(&i.Amount, "amount", 0, "amount in minor units, as Stripe counts them: 9900 is 99.00 USD; of a capture\nor refund, all that is left unless it is named")
	c.Flags().StringVar(&i.Reason, "reason", "", "of a cancel or refund: duplicate, fraudulent, requested_by_customer; of a cancel, abandoned, too")
	c.Flags().StringVar(&i.Currency, "currency", "", "three-letter currency code")
	c.Flags().StringVar(&i.Customer, "customer", "", "Stripe customer (cus_…)")
	c.Flags().StringVar(&i.PaymentMethod, "payment-method", "", "Stripe payment method (pm_…)")
	c.Flags().StringVar(&i.Description, "description", "", "description")
	c.Flags().StringVar(&i.StatementDescriptorSuffix, "statement-descriptor-suffix", "", "what the customer's statement shows after your name")
	c.Flags().StringVar(&i.ReceiptEmail, "receipt-email", "", "where Stripe sends a receipt")
	c.Flags().StringVar(&f.captureMethod, "capture-method", "", "automatic or manual")
	c.Flags().BoolVar(&f.onSession, "on-session", false, "the customer is there and can authenticate")
	c.Flags().StringVar(&i.ReturnURL, "return-url", "", "where the customer returns to after authenticating")
	c.Flags().StringArrayVar(&f.metadata, "metadata", nil, "name=value; may be repeated")
	c.Flags().StringVar(&f.expiresAt, "expires-at", "", "never charge after this RFC 3339 time")
	c.Flags().BoolVar(&f.bulk, "bulk", false, "publish on the bulk lane")
	c.Flags().BoolVar(&f.wait, "wait", false, "wait for the outcome (reads the database)")
	c.Flags().DurationVar(&f.within, "within", time.Minute, "how long --wait waits")
	return c
}

// documentFlags are the flags that a document on standard input takes the place of.
var documentFlags = []string{
	"kind", "payment-id", "reason", "amount", "currency", "customer", "payment-method", "description", "statement-descriptor-suffix", "receipt-email", "capture-method", "on-session",
	"return-url", "metadata", "expires-at",
}

// publish publishes the intent of the flags, or of in where that is not nil.
func (s *shared) publish(ctx context.Context, f publishFlags, in io.Reader) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	if f.intent.TenantID == "" {
		return &app.UsageError{Text: "--tenant: is required"}
	}
	intent, err := f.read(in)
	if err != nil {
		return err
	}
	message := producer.Message{Intent: intent, Lane: payments.LaneInteractive}
	if f.bulk {
		message.Lane = payments.LaneBulk
	}
	if f.wait {
		// The database comes first: who cannot be told the outcome has not published either.
		return s.withStore(ctx, func(store *postgres.Store) error {
			known, err := knownBefore(ctx, store, intent)
			if err != nil {
				return err
			}
			result, err := send(ctx, settings, message)
			if err != nil {
				return err
			}
			if known != nil {
				fmt.Fprintln(s.err, errorLine("oncepay: "+repeated(*known)))
			}
			return s.waitFor(ctx, store, intent, result, f.within)
		})
	}
	result, err := send(ctx, settings, message)
	if err != nil {
		return err
	}
	id := intent.ID().Format(intent.Normalized().Kind)
	if s.json {
		return console.JSON(s.out, map[string]any{
			"id": id, "tenant_id": intent.TenantID, "idempotency_key": intent.IdempotencyKey, "stream": result.Stream, "stream_seq": result.Sequence,
		})
	}
	fmt.Fprintf(s.out, "%s stored in %s as message %d\n", id, result.Stream, result.Sequence)
	return nil
}

// read makes the intent, from flags or from one JSON document as strict as the stream's own.
func (f publishFlags) read(in io.Reader) (payments.Intent, error) {
	i := f.intent
	if in == nil {
		i.CaptureMethod, i.OffSession, i.Kind = payments.CaptureMethod(f.captureMethod), !f.onSession, payments.Kind(f.kind)
		if i.Kind.FollowUp() { // as the wire is read: what only charges have is seen where it was given, and refused
			i.OffSession, i.All = f.onSession, i.Kind != payments.KindCancel && !f.named
		}
		for _, pair := range f.metadata {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				return i, &app.UsageError{Text: "--metadata: must be name=value"}
			}
			if i.Metadata == nil {
				i.Metadata = map[string]string{}
			}
			i.Metadata[name] = value
		}
		if f.expiresAt == "" {
			return i, nil
		}
		at, err := schema.ParseTime(f.expiresAt)
		if err != nil || at.IsZero() { // the zero time would stand for none
			return i, &app.UsageError{Text: "--expires-at: must be an RFC 3339 time such as 2026-01-31T03:00:00Z"}
		}
		i.ExpiresAt = at
		return i, nil
	}
	data, err := io.ReadAll(io.LimitReader(in, schema.IntentMaxBytes+1))
	if err != nil {
		return i, err
	}
	wire, err := schema.DecodeIntent(data)
	if err != nil {
		return i, &app.UsageError{Text: "standard input: " + err.Error()}
	}
	if wire.TenantID.Set && wire.TenantID.Value != i.TenantID {
		return i, &app.UsageError{Text: "tenant_id: is not the tenant of --tenant"}
	}
	if wire.IdempotencyKey.Set && i.IdempotencyKey != "" && wire.IdempotencyKey.Value != i.IdempotencyKey {
		return i, &app.UsageError{Text: "idempotency_key: is not the key of --key"}
	}
	return document.ReadIntent(wire, i.TenantID, wire.IdempotencyKey.Or(i.IdempotencyKey)), nil
}

// How long NATS may take to be reached, and to answer; what is unknown after it is safe to repeat.
const (
	connectTimeout = 5 * time.Second
	publishTimeout = 15 * time.Second
)

// send publishes the message. Its errors say whether it was published.
func send(ctx context.Context, settings app.Settings, m producer.Message) (producer.Result, error) {
	if err := refusal(m.Intent); err != nil {
		return producer.Result{}, err
	}
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	nc, _, err := app.ConnectNATS(connecting, settings, "oncepay-publish", slog.New(slog.DiscardHandler))
	var usage *app.UsageError
	switch {
	case errors.As(err, &usage):
		return producer.Result{}, err
	case err != nil:
		return producer.Result{}, fmt.Errorf("nothing was published: %w", err)
	}
	defer nc.Close()
	subjects, _ := settings.Streams()
	publisher, err := producer.New(nc, subjects, producer.Options{})
	if err != nil {
		return producer.Result{}, err
	}
	defer publisher.Close()
	publishing, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return publisher.Publish(publishing, m)
}

// refusal is a usage error when the intent would be refused; it names the field and never its value.
func refusal(i payments.Intent) error {
	if wrong := payments.CheckTenantID(i.TenantID); wrong != "" {
		return &app.UsageError{Text: "not published: tenant_id: " + wrong}
	}
	if payments.ReservedKey(i.IdempotencyKey) {
		return &app.UsageError{Text: "not published: idempotency_key: must not contain " + payments.ChildSeparator + ", which is reserved for the payments of a batch"}
	}
	if field := i.CardField(); field != "" {
		return &app.UsageError{Text: "not published: " + field + ": contains what looks like a card number; send a Stripe payment method (pm_…), and never card data"}
	}
	if refused := i.ValidateAny(); refused != nil {
		return &app.UsageError{Text: "not published: " + refused.Error()}
	}
	return nil
}
