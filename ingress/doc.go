// Package ingress is the HTTP door: it takes payments and batches in, and shows them, as CONTRACT's section HTTP says. It knows the ports of
// payments and nothing behind them.
//
// A request is checked in this order, and the first objection is the answer:
//
//  1. too many requests at once (503), a card number in path, query or key (400), the Idempotency-Key of a POST, PUT, PATCH or DELETE (400): what
//     the caller can mend without a key of the API, and what must never be read any further. RequireKey stands before every route, known or not;
//  2. the path (404) and the method (405);
//  3. the API key (401), its rate and how many of its requests are in flight (429), and its scope (403); PostgreSQL away is 503, never 401;
//  4. the query (400), the body's type, size and text (400, 413), whose it is and what its key is (400);
//  5. the store's verdict: another request under the same key (422) before what is wrong with this one (400).
//
// Nothing is stored unless the answer is 202 or 200, or the connection breaks before the answer: then repeating the same request under the same key
// is right and safe.
package ingress
