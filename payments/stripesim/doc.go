// Package stripesim is a stateful Stripe over HTTP, made to be failed against.
//
// It keeps PaymentIntents, refunds, idempotency keys and a ledger, speaks API version
// 2023-10-16, and can lose, break or delay any answer after (or before) the
// money moved. Its ledger, outside /v1, says what really happened. It is not
// for real money: live keys are refused.
//
// # Order of a request
//
// Every request walks the same way: API key (401, 403) -> rate limiter (429
// with Stripe-Rate-Limited-Reason) -> parse and validate (400, not stored) ->
// idempotency key (400 mismatch, 409 in flight, or replay) -> object lock (429
// lock_timeout, immediate) -> latency -> execute, append to the ledger file and
// store the answer under the key, in one write -> fault -> answer. What is
// refused before "execute" leaves the key free. What is raised while executing
// (402, and a 400 for a wrong state or an unknown payment method) is stored and
// replayed. A PaymentIntent or refund that is not there (404) is refused before the key
// is used. A blank Idempotency-Key header is refused with 400, so that a client
// that lost its key is seen; whether Stripe does so is not documented.
//
// A client that goes away does not stop its request: it is executed all the
// same, after the latency, as at Stripe.
//
// # Accounts
//
// Each account has PaymentIntents, idempotency keys, lists, a balance and limits
// of its own; the ledger names the account of every request and charge.
// Options.Keys say which key belongs to which; Stripe-Account names a connected
// one (403 account_invalid where the key may not). Without Options.Keys every
// test key is accepted, and belongs to Options.Account, but for a key of the
// form sk_test_51…: the sixteen characters after the 5 name its account, as in
// keys of Stripe's own (sk_test_51AbCdEfGhIjKlMnO… belongs to
// acct_1AbCdEfGhIjKlMnO).
//
// # Faults
//
// A fault comes from a rule (POST /_sim/faults) or, for one request, from the
// header Oncepay-Sim-Fault. "Executed" and "stored" are about a POST that has
// passed validation and is not a replay:
//
//	fault              executed  stored  the client sees
//	reset_before       no        no      TCP RST, before anything else happened
//	unauthorized_401   no        no      401 in place of the API key check
//	rate_limit_429     no        no      429, Stripe-Rate-Limited-Reason: global-rate
//	in_use_409         no        no      409 idempotency_key_in_use
//	lock_timeout_429   no        no      429 lock_timeout, no reason header
//	commit_then_hang   yes       yes     nothing, until it goes away; the stored answer after DELETE /_sim/faults
//	commit_then_reset  yes       yes     TCP RST
//	commit_then_500    yes       as 500  500 api_error, now and at every replay
//	commit_then_503    yes       no      503 api_error; a repeat under the same key executes again
//	truncate_body      yes       yes     status and Content-Length of the true answer, half its body, end of stream
//	html_502           yes       yes     502 with an HTML page; a repeat replays the true answer
//	garbage_200        yes       yes     200 with a body that is no JSON; a repeat replays the true answer
//	slow:<ms>          yes       yes     the true answer, its first byte held back for that long
//	should_retry_true  yes       yes     the true answer with Stripe-Should-Retry: true, this time only
//	should_retry_false yes       yes     the true answer with Stripe-Should-Retry: false
//
// On a GET, "executed" means read: the faults change the answer alone. On a
// replay nothing is executed and nothing is stored again; the faults change
// that one answer, but for commit_then_500, which is about the stored answer
// and leaves a replay as it is. A request that is refused before a fault's
// place does not meet the fault: its ledger entry has none and the summary does
// not count it, though a rule's `times` is spent when the request arrives.
// Whatever the fault, a committed PaymentIntent or refund is listed at once.
//
// A rule chooses by method (POST if left out), exact path and metadata of the
// request's own form. It begins at its nth match, hits each match with its
// rate, and ends after `times` hits. The first rule that hits decides; every
// rule counts every match.
//
// # Control
//
// These need no key and are never under /v1. Bodies are strict JSON; what is
// wrong with them is answered 400 with error.type simulator_error.
//
//	GET    /_sim/ledger       Ledger
//	GET    /_sim/summary      Summary
//	POST   /_sim/faults       a Rule; nth, times and rate may not be 0
//	DELETE /_sim/faults       drops all rules, lets hung calls have their answers
//	POST   /_sim/limits       Limits, replacing all of them
//	POST   /_sim/clock        {"advance_s":90000}, forwards only
//	POST   /_sim/idempotency  {"enabled":false}
//
// # What is kept
//
// With Options.Path set, state survives SIGKILL: requests, PaymentIntents,
// stored answers, charges, refunds and the clock's offset. Each finished request is one
// line of the file, written before its answer leaves; a request that was killed
// before that has executed nothing. Fault rules, limits and the idempotency
// switch are not kept.
//
// # Where it is narrower than Stripe
//
// Parameters that it does not act on are refused (parameter_unknown) rather
// than ignored, so is expand. Any customer id that begins with cus_ exists. Only
// Stripe's test payment methods exist; a pm_ id out of an answer cannot be used
// again, as at Stripe when it is attached to no customer. One that was attached
// has an id which can, for its customer, until it is detached: then a charge is
// refused with 400, while executing. The minimum amount is that of the presented
// currency. Events are those of PaymentIntents (created, processing,
// requires_action, amount_capturable_updated, payment_failed, succeeded,
// canceled) and of refunds (refund.created and charge.refunded, refund.updated
// and charge.refund.updated), listed for 30 days. Search and webhooks are not
// here yet: their URLs are answered 404 as unrecognised.
//
// # Captures and refunds
//
// A capture takes all that is held or a part of it, once; the rest is released,
// which is no refund here. Refunds give back what was captured, in as many parts
// as one likes and never more. A refund succeeds at once, but those of bank
// debits and of pm_card_pendingRefund (the card that ends in 7726) are pending first,
// and those of pm_card_refundFail (in 5126) fail after they have
// succeeded, all after Options.DebitSettle; what failed can be given back anew.
// No refund ever requires an action, so none can be canceled. A charge is shown
// by GET /v1/charges/{id} while it is the latest of its PaymentIntent.
package stripesim
