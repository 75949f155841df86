package payments

// issuerRange is a range of six-digit prefixes that one card scheme issues under, and the lengths of its numbers as a bit set.
type issuerRange struct {
	first, last int
	lengths     uint32
}

const (
	lengths12To19 = 1<<20 - 1<<12
	lengths14To19 = 1<<20 - 1<<14
	lengths16To19 = 1<<20 - 1<<16
)

// issuerRanges follow the schemes' published ranges under ISO/IEC 7812 (as collected in en.wikipedia.org/wiki/Payment_card_number). Diners Club is
// 14 to 19 digits long since its numbers run on Discover's network (Discover Network IIN compliance, 2017); the old 14 alone would miss new cards.
// 622126 to 622925 are shared by Discover and UnionPay with the same lengths, so that 62 covers both. No two ranges overlap.
var issuerRanges = [...]issuerRange{
	{400000, 499999, 1<<13 | 1<<16 | 1<<19}, // Visa
	{510000, 559999, 1 << 16},               // Mastercard
	{222100, 272099, 1 << 16},               // Mastercard, 2-series
	{340000, 349999, 1 << 15},               // American Express
	{370000, 379999, 1 << 15},               // American Express
	{601100, 601199, lengths16To19},         // Discover
	{644000, 659999, lengths16To19},         // Discover
	{620000, 629999, lengths16To19},         // UnionPay, and Discover's part of it
	{352800, 358999, lengths16To19},         // JCB
	{300000, 305999, lengths14To19},         // Diners Club
	{309000, 309999, lengths14To19},         // Diners Club
	{360000, 369999, lengths14To19},         // Diners Club
	{380000, 399999, lengths14To19},         // Diners Club
	{501800, 501899, lengths12To19},         // Maestro
	{502000, 502099, lengths12To19},         // Maestro
	{503800, 503899, lengths12To19},         // Maestro
	{630400, 630499, lengths12To19},         // Maestro
	{675900, 675999, lengths12To19},         // Maestro
	{676100, 676399, lengths12To19},         // Maestro
}
