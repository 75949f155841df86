package stripesim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
	"unicode/utf8"
)

// maxBody bounds a form: far above 50 metadata entries of 500 characters.
const maxBody = 1 << 20

// attempt is one HTTP request on its way through the pipeline.
type attempt struct {
	entry     Request  // for the ledger; the request's own goroutine fills it
	stored    *Request // the ledger's copy, under its lock
	secret    string
	apiKey    *Key
	connected bool // Stripe-Account names the account
	account   *account
	route     *route
	id        string // of the PaymentIntent, refund, charge or payment method in the path
	pairs     []pair
	badBody   *apiError
	blankKey  bool
	fault     fault
	freed     <-chan struct{} // ends commit_then_hang
	recorded  bool            // the ledger file has the entry
}

// reply is the answer to write.
type reply struct {
	answer
	body     any    // of a read; else the answer is rendered
	original uint64 // request that executed the key; 0 if the answer is not a key's
	late     bool   // a fault after the execution has its place here
	abort    bool   // no answer: the simulator is closing
	reset    bool   // no answer: reset_before
}

func refusal(e *apiError) reply { return reply{answer: answer{err: e}} }

// api runs one request of Stripe's API.
func (s *Server) api(w http.ResponseWriter, r *http.Request) {
	a, bad := s.arrive(w, r)
	var rep reply
	if bad != nil {
		rep = refusal(bad)
	} else {
		var leave func()
		rep, leave = s.process(a)
		defer leave()
	}
	s.conclude(a, &rep)
	s.write(w, r, a, rep)
}

// arrive reads the request in full and puts it in the ledger.
func (s *Server) arrive(w http.ResponseWriter, r *http.Request) (*attempt, *apiError) {
	a := &attempt{}
	body, readErr := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var name string
	a.secret, a.apiKey, name = s.identify(r)
	a.connected = r.Header.Get("Stripe-Account") != ""
	if validAccount(name) {
		a.account = s.book.lookupAccount(name)
	} else {
		a.account = &account{id: name}
	}
	a.route, a.id = findRoute(r.Method, r.URL.Path)
	sum := sha256.Sum256(body)
	a.entry = Request{Method: r.Method, Path: r.URL.Path, Account: name, BodySHA256: hex.EncodeToString(sum[:]), At: s.book.time().UTC()}
	if r.Method == http.MethodPost {
		key, present := r.Header["Idempotency-Key"]
		if present {
			a.entry.IdempotencyKey = key[0]
		}
		a.blankKey = present && key[0] == ""
	}
	a.readForm(r, body, readErr)
	var bad *apiError
	a.freed = s.faults.hold() // before the choice, so that a DELETE after it is noticed
	a.fault = s.faults.choose(r.Method, r.URL.Path, a.pairs)
	if own := r.Header.Get("Oncepay-Sim-Fault"); own != "" {
		f, err := parseFault(own)
		if err != nil {
			bad = invalid("", "Oncepay-Sim-Fault", err.Error())
		}
		a.fault = f
	}
	a.stored = s.log.arrive(&a.entry, s.ids)
	return a, bad
}

// readForm parses the parameters; what is wrong with them is told after
// authentication and limits have had their say.
func (a *attempt) readForm(r *http.Request, body []byte, readErr error) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(readErr, &tooLarge):
		a.badBody = invalid("", "", "Request body is too large.")
		a.badBody.Status = http.StatusRequestEntityTooLarge
		return
	case readErr != nil:
		a.badBody = invalid("", "", "Request body could not be read.")
		return
	}
	if len(body) > 0 && !formContent(r.Header.Get("Content-Type")) {
		a.badBody = invalid("", "", "Invalid request (check that your POST content type is application/x-www-form-urlencoded).")
		return
	}
	raw := r.URL.RawQuery
	if len(body) > 0 {
		if raw != "" {
			raw += "&"
		}
		raw += string(body)
	}
	pairs, err := parseForm(raw)
	if err != nil {
		a.badBody = invalid("", "", "Invalid request: "+err.Error()+".")
		return
	}
	a.pairs = pairs
}

func formContent(contentType string) bool {
	const form = "application/x-www-form-urlencoded"
	return contentType == form || (len(contentType) > len(form) && contentType[:len(form)] == form && contentType[len(form)] == ';')
}

// meet says whether the request's fault is kind, and if so notes it.
func (a *attempt) meet(kind string) bool {
	if a.fault.kind != kind {
		return false
	}
	a.entry.Fault = a.fault.name()
	return true
}

// process walks the pipeline up to the answer. leave is called when the
// answer is out.
func (s *Server) process(a *attempt) (rep reply, leave func()) {
	leave = func() {}
	if a.meet(FaultResetBefore) {
		return reply{reset: true}, leave
	}
	if a.meet(FaultUnauthorized401) {
		return refusal(unauthorized("", "Invalid API Key provided: "+redact(a.secret))), leave
	}
	if e := s.authorize(a); e != nil {
		return refusal(e), leave
	}
	if a.meet(FaultRateLimit429) {
		return refusal(rateLimited("global-rate")), leave
	}
	limits := s.limits.Load()
	if reason := a.account.limiter.enter(limits, a.entry.At); reason != "" {
		return refusal(rateLimited(reason)), leave
	}
	leave = a.account.limiter.leave
	latency := time.Duration(limits.LatencyMS) * time.Millisecond
	switch {
	case a.route == nil:
		return refusal(unrecognised(a.entry.Method, a.entry.Path)), leave
	case a.badBody != nil:
		return refusal(a.badBody), leave
	case a.route.read != nil:
		return s.look(a, latency), leave
	}
	return s.post(a, latency), leave
}

// look answers a GET.
func (s *Server) look(a *attempt, latency time.Duration) reply {
	if a.meet(FaultInUse409) {
		return refusal(keyInUse(a.entry.IdempotencyKey))
	}
	if a.meet(FaultLockTimeout429) {
		return refusal(lockTimeout())
	}
	if !s.pause(latency) {
		return reply{abort: true}
	}
	body, e := a.route.read(s, a)
	return reply{answer: answer{err: e}, body: body, late: true}
}

// post validates and, under its key and the object's lock, executes a POST.
func (s *Server) post(a *attempt, latency time.Duration) reply {
	key := a.entry.IdempotencyKey
	switch {
	case a.blankKey:
		return refusal(invalid("", "Idempotency-Key", "The Idempotency-Key header is blank. Leave it out, or send a key."))
	case !utf8.ValidString(key):
		return refusal(invalid("", "Idempotency-Key", "The Idempotency-Key header is not valid UTF-8."))
	case len(key) > 255:
		return refusal(invalid("", "Idempotency-Key", "Idempotency keys can have up to 255 characters."))
	}
	op, e := a.route.parse(a.id, a.pairs)
	if e != nil {
		return refusal(e)
	}
	if op.target() != "" && !s.book.exists(a.account, op.target()) {
		return refusal(absent(op))
	}
	if a.meet(FaultInUse409) {
		return refusal(keyInUse(key))
	}
	var entry *keyEntry
	if key != "" && s.idemp.Load() {
		found, claimed, e := a.account.keys.begin(key, fingerprint(a.entry.Method, a.entry.Path, a.pairs), a.entry.Seq, s.book.time())
		if e != nil {
			return reply{answer: answer{err: e}, original: found.seq}
		}
		if !claimed {
			a.entry.Replayed = true
			a.entry.PaymentIntent = found.answer.about()
			return reply{answer: *found.answer, original: found.seq, late: a.fault.kind != FaultCommitThen500}
		}
		entry = found
		defer func() { // a no-op once the key has its answer
			if entry.answer == nil {
				a.account.keys.forget(key, entry)
			}
		}()
	}
	if a.meet(FaultLockTimeout429) {
		return refusal(lockTimeout())
	}
	var target *slot
	if id := op.target(); id != "" {
		var free bool
		if target, free = s.book.lock(a.account, id); !free {
			return refusal(lockTimeout())
		}
		defer s.book.unlock(target)
	}
	if !s.pause(latency) {
		return reply{abort: true}
	}
	return s.execute(a, op, target, entry)
}

// absent is the refusal of an operation whose target is not there.
func absent(op operation) *apiError {
	if own, ok := op.(interface{ absent() *apiError }); ok {
		return own.absent()
	}
	return noSuchIntent(op.target())
}

// conclude writes the attempt down, in memory and in the file, before a byte
// of the answer leaves.
func (s *Server) conclude(a *attempt, rep *reply) {
	if rep.late && a.fault.late() && !a.entry.Executed {
		a.entry.Fault = a.fault.name()
		if !a.entry.Replayed && a.fault.kind == FaultCommitThen500 {
			rep.answer = answer{err: serverError(http.StatusInternalServerError)}
		}
		if a.fault.kind == FaultCommitThen503 {
			rep.answer = answer{err: serverError(http.StatusServiceUnavailable)}
		}
	}
	if !a.recorded {
		switch {
		case rep.abort || rep.reset:
			a.entry.Status = 0
		case rep.late:
			a.entry.Status = a.fault.sent(rep.status())
		default:
			a.entry.Status = rep.status()
		}
		if err := s.book.note(a); err != nil {
			s.opts.Logger.Error("ledger file cannot be written", "error", err)
		}
	}
	s.log.settle(a.stored, a.entry)
}

// render is the body of the true answer.
func (rep *reply) render() []byte {
	if rep.err != nil {
		return errorBody(rep.err, rep.intent)
	}
	v := rep.body
	switch {
	case rep.intent != nil:
		v = rep.intent.view()
	case rep.refund != nil:
		v = rep.refund.view()
	case rep.saved != nil:
		v = rep.saved.view()
	}
	b, err := json.Marshal(v)
	if err != nil { // plain strings, numbers and maps of strings cannot fail
		panic(err)
	}
	return b
}
