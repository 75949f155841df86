// Package ingress is the HTTP door: it takes payments, batches, captures, cancels and refunds in, and shows them, as CONTRACT's section HTTP says. It knows the ports of
// payments and nothing behind them.
//
// A request is checked in this order, and the first objection is the answer:
//
//  1. too many requests at once (503), a card number in path, query or key (400), the Idempotency-Key of a POST, PUT, PATCH or DELETE (400): what
//     the caller can mend without a key of the API, and what must never be read any further. RequireKey stands before every route, known or not;
//  2. the path (404) and the method (405);
//  3. the API key (401), its rate and how many of its requests are in flight or unread (429), and its scope (403); PostgreSQL away is 503, never 401;
//  4. the query (400), the body's type, size and text (400, 413), whose it is and what its key is (400);
//  5. the store's verdict: another request under the same key (422) before what is wrong with this one (400), and that before what its payment does not
//     allow (404, 409, 422).
//
// What net/http cannot read or serve as a request (a malformed or overlong head, an unknown Expect, Transfer-Encoding or version) it refuses on its own
// before any handler runs, with 400, 417, 431, 501 or 505, not as a problem and without a Request-Id: it has no hook there, and rewriting its bytes on
// the connection would be a second HTTP server. Nor does it show a Content-Length that came beside Transfer-Encoding; so the connection of whatever comes
// in chunks ends with the answer, and a proxy in front must refuse requests that have both.
//
// While an answer is written it holds its API key's share and nothing of anybody else's. A request whose body comes too slowly is 503: it may be
// repeated as it is. With too much unpublished (503), what is stored already is still answered as ever.
//
// Nothing is stored unless the answer is 202 or 200, or the connection breaks before the answer: then repeating the same request under the same key
// is right and safe.
package ingress
