package stripesim_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/oncepay/oncepay/payments/stripesim"
)

// A charge whose answer is lost, and the repeat that finds it.
func ExampleServer() {
	sim, err := stripesim.New(stripesim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sim.Close()
	_ = sim.AddFault(stripesim.Rule{Fault: stripesim.FaultHTML502, Times: 1})
	for range 2 {
		body := "amount=2000&currency=usd&confirm=true&off_session=true&payment_method=pm_card_visa&metadata[oncepay_payment]=pay_1"
		req := httptest.NewRequest("POST", "/v1/payment_intents", strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer sk_test_example")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Idempotency-Key", "order-1")
		res := httptest.NewRecorder()
		sim.ServeHTTP(res, req)
		fmt.Printf("%d replayed=%t\n", res.Code, res.Header().Get("Idempotent-Replayed") != "")
	}
	fmt.Println(sim.Summary().Charges, "charge")
	// Output:
	// 502 replayed=false
	// 200 replayed=true
	// 1 charge
}
