package payments

import (
	"maps"
	"time"
)

// goodIntent is an intent that uses every field and breaks no rule.
func goodIntent() Intent {
	return Intent{
		TenantID:                  "acme",
		IdempotencyKey:            "order-1",
		Kind:                      KindCharge,
		Amount:                    9900,
		Currency:                  "usd",
		Customer:                  "cus_1",
		PaymentMethod:             "pm_card_visa",
		Description:               "Two tickets",
		StatementDescriptorSuffix: "TICKETS",
		ReceiptEmail:              "jenny.rosen@example.com",
		CaptureMethod:             CaptureAutomatic,
		OffSession:                true,
		ReturnURL:                 "https://example.com/return",
		Metadata:                  maps.Clone(map[string]string{"order": "1", "channel": "web"}),
		ExpiresAt:                 time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}
