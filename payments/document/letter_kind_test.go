package document

import (
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestLettersSpeakOfTheirKind: what is about a refund, a capture or a cancel has its id in the form in which it is known.
func TestLettersSpeakOfTheirKind(t *testing.T) {
	t.Parallel()
	id := payments.NewID("acme", "order-1")
	for kind, want := range map[payments.Kind]string{"": id.String(), payments.KindCharge: id.String(), payments.KindRefund: "ref_" + id.Hex(), payments.KindCancel: "op_" + id.Hex()} {
		letter, item := DeadLetter(payments.DeadLetter{PaymentID: &id, PaymentKind: kind}), ReplayItem(payments.ReplayItem{PaymentID: &id, Kind: kind})
		if letter.PaymentID == nil || *letter.PaymentID != want || item.PaymentID == nil || *item.PaymentID != want {
			t.Errorf("%q: %v, %v; want %s", kind, letter.PaymentID, item.PaymentID, want)
		}
	}
}
