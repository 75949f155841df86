// Package stripemock holds the requests of payments/stripe against Stripe's own description of its API: stripe-mock checks the path, the
// names, the types, the enumerated values and the stated lengths of every request against the OpenAPI specification that Stripe publishes,
// and refuses a parameter that is not in it. It has no state and no semantics, so what an answer means is tested elsewhere.
//
// stripe-mock is v0.183.0, of March 2024: its specification is that of API 2023-10-16, the version which stripe-go v76 asks for. It runs with
// -strict-version-check, so it refuses every other version, and an SDK that asked for one would fail here. Newer releases speak versions to
// which 2023-10-16 is history, the releases before October 2023 do not know it yet; on v0.203.0 or v0.162.0 a parameter could be accepted or
// refused that Stripe treats otherwise for us.
//
// The module is one of its own, since the product needs none of this. go.mod pins stripe-mock as a tool; the tests build it, run it with both
// of its listeners on loopback, and end it. Without it they fail.
package stripemock
