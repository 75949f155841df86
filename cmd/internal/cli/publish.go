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
	captureMethod     string
	metadata          []string
	expiresAt, source string
}

func publishCommand(s *shared) *cobra.Command {
	f := publishFlags{}
	c := &cobra.Command{
		Use: "publish [-]", Short: "Publish one payment intent, from flags or as JSON from standard input (-)", Args: cobra.MaximumNArgs(1),
		Long: "Publish one payment intent. Repeat it as often as you like: the same key is the same payment.\n\n" +
			"  oncepay publish --tenant acme --key order-1 --amount 9900 --currency usd --payment-method pm_card_visa\n" +
			"  echo '{\"idempotency_key\":\"order-1\",…}' | oncepay publish --tenant acme -\n\n" +
			"With --wait the exit code is 0 only if the payment succeeded.",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "-" {
				return &app.UsageError{Text: "give flags, or - to read one intent from standard input"}
			}
			return s.publish(c.Context(), f, len(args) == 1, c.InOrStdin())
		},
	}
	i := &f.intent
	c.Flags().StringVar(&i.TenantID, "tenant", "", "the tenant (required)")
	c.Flags().StringVar(&i.IdempotencyKey, "key", "", "idempotency key: one per payment, the same on every repeat")
	c.Flags().Int64Var(&i.Amount, "amount", 0, "amount in minor units, as Stripe counts them: 9900 is 99.00 USD")
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

func (s *shared) publish(ctx context.Context, f publishFlags, fromStdin bool, in io.Reader) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	if f.intent.TenantID == "" {
		return &app.UsageError{Text: "--tenant: is required"}
	}
	intent, err := f.read(fromStdin, in)
	if err != nil {
		return err
	}
	message := producer.Message{Intent: intent, Lane: payments.LaneInteractive}
	if f.bulk {
		message.Lane = payments.LaneBulk
	}
	since := time.Now()
	result, err := send(ctx, settings, message)
	if err != nil {
		var refused *payments.ValidationError
		if errors.As(err, &refused) {
			return &app.UsageError{Text: "not published: " + refused.Error()}
		}
		return err
	}
	if f.wait {
		return s.withStore(ctx, func(store *postgres.Store) error { return s.waitFor(ctx, store, intent, since, f.within) })
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
func (f publishFlags) read(fromStdin bool, in io.Reader) (payments.Intent, error) {
	i := f.intent
	if !fromStdin {
		i.CaptureMethod, i.OffSession = payments.CaptureMethod(f.captureMethod), !f.onSession
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
		if err != nil {
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
	return payments.Intent{
		TenantID: i.TenantID, IdempotencyKey: wire.IdempotencyKey.Or(i.IdempotencyKey), Kind: payments.Kind(wire.Kind.Value), PaymentID: wire.PaymentID.Value,
		Amount: wire.Amount.Value, Currency: wire.Currency.Value, Customer: wire.Customer.Value, PaymentMethod: wire.PaymentMethod.Value,
		Description: wire.Description.Value, StatementDescriptorSuffix: wire.StatementDescriptorSuffix.Value, ReceiptEmail: wire.ReceiptEmail.Value,
		CaptureMethod: payments.CaptureMethod(wire.CaptureMethod.Value), OffSession: wire.OffSession.Or(true), ReturnURL: wire.ReturnURL.Value,
		Metadata: wire.Metadata, ExpiresAt: wire.ExpiresAt.Value,
	}, nil
}

// publishTimeout is how long NATS may take; what is unknown after it is safe to repeat.
const publishTimeout = 15 * time.Second

func send(ctx context.Context, settings app.Settings, m producer.Message) (producer.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	nc, _, err := app.ConnectNATS(settings, "oncepay-publish", slog.New(slog.DiscardHandler))
	if err != nil {
		return producer.Result{}, err
	}
	defer nc.Close()
	if err := app.WaitConnected(ctx, nc); err != nil {
		return producer.Result{}, fmt.Errorf("ONCEPAY_NATS_URL: NATS cannot be reached; nothing was published: %w", err)
	}
	subjects, _ := settings.Streams()
	publisher, err := producer.New(nc, subjects, producer.Options{})
	if err != nil {
		return producer.Result{}, err
	}
	defer publisher.Close()
	return publisher.Publish(ctx, m)
}

// waitFor reads the payment until nobody has to act on it any more.
func (s *shared) waitFor(ctx context.Context, store *postgres.Store, intent payments.Intent, since time.Time, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		p, err := store.FindByKey(ctx, intent.TenantID, intent.IdempotencyKey)
		switch {
		case err == nil && payments.Fingerprint(p.Intent) != payments.Fingerprint(intent.Normalized()):
			return NewExit(exitFailed, "oncepay: the key already names another request; differs: "+strings.Join(payments.Differs(p.Intent, intent.Normalized()), ", "))
		case err == nil && (!p.Status.HasTicket() || p.Status == payments.StatusPending):
			return s.printOutcome(ctx, store, p)
		case err != nil && payments.ErrorCode(err) != payments.CodeNotFound && ctx.Err() == nil:
			return err
		case err != nil && ctx.Err() == nil:
			letters, _, err := store.DeadLetters(ctx, postgres.DeadLettersRequest{TenantID: intent.TenantID, IdempotencyKey: intent.IdempotencyKey, Since: since.Add(-time.Minute), Limit: 1})
			if err == nil && len(letters) > 0 {
				return NewExit(exitFailed, "oncepay: dead letter "+letters[0].ID+": "+letters[0].Message)
			}
		}
		select {
		case <-ctx.Done():
			return NewExit(exitFailed, "oncepay: no outcome within "+within.String()+"; `oncepay payments show` tells more, and publishing again is safe")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *shared) printOutcome(ctx context.Context, store *postgres.Store, p payments.Payment) error {
	if s.json {
		if err := console.JSON(s.out, document.Payment(p)); err != nil {
			return err
		}
	} else {
		timeline, err := store.Timeline(ctx, p.TenantID, p.ID)
		if err != nil {
			return err
		}
		if err := s.printPayment(p, timeline); err != nil {
			return err
		}
	}
	if p.Status != payments.StatusSucceeded {
		return NewExit(exitFailed, "")
	}
	return nil
}
