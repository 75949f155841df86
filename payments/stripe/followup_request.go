package stripe

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/oncepay/oncepay/payments"
)

const refundsPath = "/v1/refunds"

// The reasons that Stripe knows (docs.stripe.com/api/refunds/create, docs.stripe.com/api/payment_intents/cancel).
var (
	refundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}
	cancelReasons = append([]string{"abandoned"}, refundReasons...)
)

// FollowUpBody returns the form body of the POST that captures, cancels or refunds, sorted by member and then by value. It is a pure function of
// the namespace and the stored follow-up (invariant I5). Errors: an unknown request_version, another kind, no PaymentIntent, an amount or a
// reason that Stripe has no place for, and client metadata under our own prefix; such a request is never sent.
func FollowUpBody(namespace string, p payments.Payment) (string, error) {
	_, form, err := followUpRequest(namespace, p)
	return form, err
}

// followUpRequest is where the follow-up's POST goes, and its body.
func followUpRequest(namespace string, p payments.Payment) (path, form string, err error) {
	if err := known(p.RequestVersion); err != nil {
		return "", "", err
	}
	if !validID(p.StripePaymentIntent, "pi_") {
		return "", "", fmt.Errorf("the %s names no PaymentIntent", p.Kind)
	}
	var fields []field
	switch p.Kind {
	case payments.KindCapture:
		path, fields, err = captureV1(p)
	case payments.KindCancel:
		path, fields, err = cancelV1(p)
	case payments.KindRefund:
		path, fields, err = refundV1(namespace, p)
	default:
		err = fmt.Errorf("the kind %q is no capture, cancel or refund", p.Kind)
	}
	if err != nil {
		return "", "", err
	}
	return path, encode(fields), nil
}

func intentPath(p payments.Payment, verb string) string {
	return createPath + "/" + p.StripePaymentIntent + verb
}

// captureV1 states the amount always: to Stripe none means all that is held by then. The metadata stay the charge's, by which it is looked up.
func captureV1(p payments.Payment) (string, []field, error) {
	if p.Amount < 1 {
		return "", nil, errors.New("the capture has no amount")
	}
	return intentPath(p, "/capture"), []field{{"amount_to_capture", strconv.FormatInt(p.Amount, 10)}}, nil
}

func cancelV1(p payments.Payment) (string, []field, error) {
	fields, err := reasonField("cancellation_reason", p.Intent.Reason, cancelReasons)
	return intentPath(p, "/cancel"), fields, err
}

// refundV1 states the amount always: to Stripe none means all that is left by then.
func refundV1(namespace string, p payments.Payment) (string, []field, error) {
	if p.Amount < 1 {
		return "", nil, errors.New("the refund has no amount")
	}
	reason, err := reasonField("reason", p.Intent.Reason, refundReasons)
	if err != nil {
		return "", nil, err
	}
	theirs, err := clientMetadata(p.Intent)
	if err != nil {
		return "", nil, err
	}
	fields := []field{{"amount", strconv.FormatInt(p.Amount, 10)}, {"payment_intent", p.StripePaymentIntent}}
	return refundsPath, sorted(slices.Concat(fields, reason, ourMetadata(namespace, p.Intent), theirs)), nil
}

// reasonField is the member that says why, if a reason was given; an empty one would not be taken for none.
func reasonField(name, reason string, allowed []string) ([]field, error) {
	switch {
	case reason == "":
		return nil, nil
	case !slices.Contains(allowed, reason):
		return nil, fmt.Errorf("the %s is none of Stripe's", name)
	}
	return []field{{name, reason}}, nil
}
