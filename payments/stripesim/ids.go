package stripesim

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// idMaker derives every id from the number of the request that made it: an
// atomic counter is all the randomness a request needs, and a re-opened ledger
// cannot give an id twice.
type idMaker struct{ salt uint64 }

// Distinct constants keep a request's several ids unlike one another.
const (
	saltIntent  = 0x9e3779b97f4a7c15
	saltCharge  = 0xc2b2ae3d27d4eb4f
	saltRequest = 0x165667b19e3779f9
	saltSecret  = 0x27d4eb2f165667c5
	saltMethod  = 0x85ebca77c2b2ae63
	saltEvent   = 0x94d049bb133111eb
	saltRefund  = 0xd6e8feb86659fd93
)

func (m idMaker) intent(seq uint64) string  { return m.make("pi_3", saltIntent, seq) }
func (m idMaker) charge(seq uint64) string  { return m.make("ch_3", saltCharge, seq) }
func (m idMaker) method(seq uint64) string  { return m.make("pm_1", saltMethod, seq) }
func (m idMaker) refund(seq uint64) string  { return m.make("re_3", saltRefund, seq) }
func (m idMaker) event(n uint64) string     { return m.make("evt_1", saltEvent, n) }
func (m idMaker) request(seq uint64) string { return m.make("req_", saltRequest, seq) }
func (m idMaker) secret(id string, seq uint64) string {
	return id + "_secret_" + m.make("", saltSecret, seq)
}

// make appends 22 characters: the first 11 are a permutation of seq, so two
// requests of one ledger never share them; the rest sets ledgers apart.
func (m idMaker) make(prefix string, salt, seq uint64) string {
	b := make([]byte, 0, len(prefix)+22)
	b = append(b, prefix...)
	b = appendBase62(b, mix(seq+mix(m.salt^salt)))
	b = appendBase62(b, mix(mix(seq^salt)+m.salt))
	return string(b)
}

// mix is the finaliser of splitmix64, a bijection on 64 bits.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func appendBase62(b []byte, x uint64) []byte {
	for range 11 { // 62^11 > 2^64
		b = append(b, base62[x%62])
		x /= 62
	}
	return b
}
