package batch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// column is one column of a CSV file.
type column struct {
	name string
	// set reads a cell that is not empty into its member; the message says what is wrong with it, "" if nothing is.
	set func(in *intent, cell string) (message string)
}

// The columns that are no text members.
const (
	columnAmount    = "amount"
	columnDecimal   = "amount_decimal"
	columnCurrency  = "currency"
	columnMethod    = "payment_method"
	metadataPrefix  = "metadata."
	memberMetadata  = "metadata"
	memberKey       = "idempotency_key"
	memberTenant    = "tenant_id"
	memberExpiresAt = "expires_at"
	memberReason    = "reason" // of cancels and refunds, which no batch has
)

// textMembers are the members that a cell becomes as it is.
var textMembers = map[string]func(*intent) *schema.Optional[string]{
	"kind":                        func(in *intent) *schema.Optional[string] { return &in.Kind },
	"payment_id":                  func(in *intent) *schema.Optional[string] { return &in.PaymentID },
	columnCurrency:                func(in *intent) *schema.Optional[string] { return &in.Currency },
	columnMethod:                  func(in *intent) *schema.Optional[string] { return &in.PaymentMethod },
	"customer":                    func(in *intent) *schema.Optional[string] { return &in.Customer },
	"description":                 func(in *intent) *schema.Optional[string] { return &in.Description },
	"statement_descriptor_suffix": func(in *intent) *schema.Optional[string] { return &in.StatementDescriptorSuffix },
	"receipt_email":               func(in *intent) *schema.Optional[string] { return &in.ReceiptEmail },
	"capture_method":              func(in *intent) *schema.Optional[string] { return &in.CaptureMethod },
	"return_url":                  func(in *intent) *schema.Optional[string] { return &in.ReturnURL },
}

// Columns lists the names of the columns that a CSV file may have; there may also be metadata.NAME for any NAME. One of amount and amount_decimal,
// currency and payment_method are required.
func Columns() []string {
	var names []string
	for _, member := range schema.IntentMembers() {
		switch member {
		case memberKey, memberTenant, memberMetadata, memberReason:
		case columnAmount:
			names = append(names, columnAmount, columnDecimal)
		default:
			names = append(names, member)
		}
	}
	return names
}

// columnOf returns the column of a name, if there is one.
func columnOf(name string) (column, bool) {
	if member, ok := textMembers[name]; ok {
		return column{name, func(in *intent, cell string) string { *member(in) = schema.Some(cell); return "" }}, true
	}
	if key, ok := strings.CutPrefix(name, metadataPrefix); ok && key != "" {
		return column{safeMetadata(name), func(in *intent, cell string) string {
			if in.Metadata == nil {
				in.Metadata = make(map[string]string)
			}
			in.Metadata[key] = cell
			return ""
		}}, true
	}
	switch name {
	case columnAmount:
		return column{name, setAmount}, true
	case "off_session":
		return column{name, setOffSession}, true
	case memberExpiresAt:
		return column{name, setExpiresAt}, true
	}
	return column{}, false
}

func safeMetadata(name string) string {
	if safe := safeName(name); safe != "" {
		return safe
	}
	return memberMetadata
}

// readHeader makes the columns of the header's names, or says what is wrong with them.
func readHeader(names []string) ([]column, []Fault) {
	if separator := looksSeparatedBy(names); separator != "" {
		return nil, []Fault{{Message: "the columns seem to be separated by " + separator + ": save the file with commas between them"}}
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "\r") }) {
		return nil, []Fault{{Message: "its lines end in carriage returns alone: save the file with line feeds (LF, or CR and LF)"}}
	}
	var wrong []Fault
	columns := make([]column, len(names))
	decimal := -1
	for i, name := range names {
		c, ok := columnOf(name)
		switch {
		case slices.Contains(names[:i], name):
			wrong = append(wrong, Fault{Column: placeOf(name, i), Message: "the column stands there twice: remove one"})
		case name == columnDecimal:
			decimal = i
		case !ok:
			wrong = append(wrong, Fault{Column: placeOf(name, i), Message: unknownColumn(name)})
		case strings.HasPrefix(name, metadataPrefix):
			if message := checkMetadataName(strings.TrimPrefix(name, metadataPrefix)); message != "" {
				wrong = append(wrong, Fault{Column: placeOf(name, i), Message: message})
			}
		}
		columns[i] = c
	}
	has := func(name string) bool { return slices.Contains(names, name) }
	switch {
	case has(columnAmount) && has(columnDecimal):
		wrong = append(wrong, Fault{Column: columnDecimal, Message: "stands beside amount: remove one, since they could disagree"})
	case !has(columnAmount) && !has(columnDecimal):
		wrong = append(wrong, Fault{Column: columnAmount, Message: "is missing: name the amount in minor units (9900 for 99.00 USD), or as amount_decimal (99.00)"})
	}
	for _, required := range []string{columnCurrency, columnMethod} {
		if !has(required) {
			wrong = append(wrong, Fault{Column: required, Message: "is missing: every payment needs it"})
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if decimal >= 0 {
		columns[decimal] = column{columnDecimal, nil}
	}
	return columns, nil
}

// placeOf names a column by its own name where that may be repeated, and else by its place.
func placeOf(name string, i int) string {
	if safe := safeName(name); safe != "" {
		return safe
	}
	return strconv.Itoa(i+1) + " of the header"
}

// checkMetadataName says what is wrong with a metadata column, as it would be said of every row.
func checkMetadataName(name string) string {
	probe := payments.Intent{
		IdempotencyKey: "k", Amount: 100, Currency: "usd", PaymentMethod: "pm_1", Metadata: map[string]string{name: "v"},
	}
	if probe.CardField() != "" {
		return "the name " + cardRemedy
	}
	if refused := probe.Validate(); refused != nil {
		return refused.Fields[0].Message
	}
	return ""
}

func unknownColumn(name string) string {
	switch name {
	case "":
		return "the column has no name: name it, or remove it"
	case memberKey:
		return "a payment of a file has no key of its own: remove the column; the run's key and the row's place name it"
	case memberTenant:
		return "remove the column: the API key says whose payments these are"
	case memberMetadata, metadataPrefix:
		return "put each metadata entry into a column of its own, as metadata.order"
	}
	if bare := strings.TrimSpace(name); bare != name && slices.Contains(Columns(), bare) {
		return "there are spaces around the name: write " + bare + " without them"
	}
	if near := nearest(name); near != "" {
		return "the column is unknown: did you mean " + near + "?"
	}
	return "the column is unknown: remove it, or name it metadata.… to send it along"
}

// nearest is the known name that differs least from a misspelled one, if any is near.
func nearest(name string) string {
	fold := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == ' ' || r == '_' || r == '-' || r == '.' || r == '\uFEFF' {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	best, least := "", 3
	for _, known := range Columns() {
		if d := distance(fold(name), fold(known), least); d < least {
			best, least = known, d
		}
	}
	if best == "" && strings.HasPrefix(fold(name), memberMetadata) {
		return metadataPrefix + "NAME"
	}
	return best
}

// distance is how many letters must be put in, taken out or replaced to make b of a (Levenshtein); most is enough.
func distance(a, b string, most int) int {
	if abs := max(len(a)-len(b), len(b)-len(a)); abs >= most {
		return most
	}
	line := make([]int, len(b)+1)
	for j := range line {
		line[j] = j
	}
	for i := range len(a) {
		diagonal := line[0]
		line[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = line[j+1]
			line[j+1] = min(cost, line[j]+1, line[j+1]+1)
		}
	}
	return line[len(b)]
}
