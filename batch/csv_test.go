package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// readAll reads every intent of a file, or its faults.
func readAll(t *testing.T, format Format, data string) ([]schema.Intent, []Fault) {
	t.Helper()
	// One byte at a time: where the reader's buffers end must not matter.
	c, err := newChunks("run", format, iotest.OneByteReader(strings.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	var all []schema.Intent
	for {
		next, err := c.next(t.Context(), nil)
		if errors.Is(err, io.EOF) || errors.Is(err, errStop) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(c.found.list) > 0 {
			continue
		}
		message, err := schema.DecodeBatch(next.body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, message.Payments...)
	}
	return all, c.found.list
}

const head = "amount,currency,payment_method\n"

// TestCSVForms: what different programs write of the same table is the same.
func TestCSVForms(t *testing.T) {
	t.Parallel()
	want, faults := readAll(t, CSV, "amount,currency,payment_method,description\n9900,usd,pm_1,\"a \"\"b\"\", c\"\n100,eur,pm_2,\n")
	if len(faults) > 0 || len(want) != 2 || want[0].Description != schema.Some(`a "b", c`) || want[1].Description.Set {
		t.Fatalf("%+v, %v", want, faults)
	}
	for name, data := range map[string]string{
		"CRLF":               "amount,currency,payment_method,description\r\n9900,usd,pm_1,\"a \"\"b\"\", c\"\r\n100,eur,pm_2,\r\n",
		"byte order mark":    "\uFEFFamount,currency,payment_method,description\n9900,usd,pm_1,\"a \"\"b\"\", c\"\n100,eur,pm_2,\n",
		"mark and quotes":    "\uFEFF\"amount\",\"currency\",\"payment_method\",\"description\"\r\n\"9900\",\"usd\",\"pm_1\",\"a \"\"b\"\", c\"\r\n\"100\",\"eur\",\"pm_2\",\"\"\r\n",
		"blank lines":        "\n\r\namount,currency,payment_method,description\n\n\n9900,usd,pm_1,\"a \"\"b\"\", c\"\n\r\n100,eur,pm_2,\n\n\n",
		"no last line feed":  "amount,currency,payment_method,description\n9900,usd,pm_1,\"a \"\"b\"\", c\"\n100,eur,pm_2,",
		"other order":        "description,payment_method,currency,amount\n\"a \"\"b\"\", c\",pm_1,usd,9900\n,pm_2,eur,100\n",
		"decimals":           "amount_decimal,currency,payment_method,description\n99.00,usd,pm_1,\"a \"\"b\"\", c\"\n1,eur,pm_2,\n",
		"decimals come last": "currency,payment_method,description,amount_decimal\nusd,pm_1,\"a \"\"b\"\", c\",99\neur,pm_2,,1.0\n",
	} {
		got, faults := readAll(t, CSV, data)
		if len(faults) > 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v", name, got, faults)
		}
	}
}

func TestCSVEveryColumn(t *testing.T) {
	t.Parallel()
	var names, cells []string
	values := map[string]string{
		"kind": "charge", "amount": "100", "currency": "USD", "capture_method": "manual", "off_session": "FALSE", "return_url": "https://example.com/", "expires_at": "2030-01-31T12:00:00+01:00",
		"receipt_email": "a@example.com", "statement_descriptor_suffix": "SHOP", "payment_method": "pm_1", "customer": "cus_1", "description": "d",
	}
	for _, name := range Columns() {
		if value, ok := values[name]; ok {
			names, cells = append(names, name), append(cells, value)
			delete(values, name)
		}
	}
	if len(values) > 0 {
		t.Fatalf("these are no columns: %v", values)
	}
	names, cells = append(names, "metadata.order", "metadata.Größe"), append(cells, "1", "XL")
	got, faults := readAll(t, CSV, strings.Join(names, ",")+"\n"+strings.Join(cells, ",")+"\n")
	want, err := schema.DecodeIntent([]byte(`{"kind":"charge","amount":100,"currency":"USD","payment_method":"pm_1","customer":"cus_1","description":"d","statement_descriptor_suffix":"SHOP",` +
		`"receipt_email":"a@example.com","capture_method":"manual","off_session":false,"return_url":"https://example.com/","metadata":{"order":"1","Größe":"XL"},"expires_at":"2030-01-31T11:00:00Z"}`))
	if err != nil || len(faults) > 0 || len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Fatalf("%+v, %v, %v", got, faults, err)
	}
	// Every member of an intent has its column, but for those that a file must not say.
	for _, member := range schema.IntentMembers() {
		_, ok := columnOf(member)
		if want := !slices.Contains([]string{"idempotency_key", "tenant_id", "metadata", "reason"}, member); ok != want {
			t.Errorf("%s: a column: %v", member, ok)
		}
	}
}

// TestDecimals: for every exponent, what is one amount and what could be another.
func TestDecimals(t *testing.T) {
	t.Parallel()
	const (
		digits   = "must be written in digits"
		two      = "at most 2 decimals"
		three    = "at most 3 decimals"
		whole    = "must be a whole number"
		needless = "needless 0"
	)
	for _, c := range []struct {
		currency, cell string
		amount         int64
		want           string // of the fault
	}{
		{"usd", "99.00", 9900, ""}, {"usd", "99", 9900, ""}, {"usd", "99.5", 9950, ""}, {"usd", "0.50", 50, ""}, {"usd", "1234.56", 123456, ""}, {"USD", "1.20", 120, ""},
		{"jpy", "1234", 1234, ""}, {"krw", "50000", 50000, ""}, {"kwd", "1.230", 1230, ""}, {"kwd", "1.23", 1230, ""}, {"kwd", "5", 5000, ""}, {"bhd", "0.010", 10, ""},
		{"isk", "500", 50000, ""}, {"ugx", "500.00", 50000, ""}, {"huf", "100.25", 10025, ""},

		{"usd", "1,234", 0, digits}, {"usd", "1.234", 0, two}, {"usd", "1,234.00", 0, digits}, {"usd", "1.234,00", 0, digits}, {"usd", "99,00", 0, digits},
		{"usd", "1 234.00", 0, digits}, {"usd", "1'234.00", 0, digits}, {"usd", "1_234", 0, digits}, {"usd", "\u00a099", 0, digits},
		{"usd", "+5", 0, digits}, {"usd", "-5.00", 0, digits}, {"usd", "(5.00)", 0, digits}, {"usd", "5.00-", 0, digits}, {"usd", "9.9e1", 0, digits}, {"usd", "1E3", 0, digits},
		{"usd", "$5", 0, digits}, {"usd", "5.00 USD", 0, digits}, {"usd", "5 €", 0, digits}, {"usd", "5.00x", 0, digits}, {"usd", "0x10", 0, digits}, {"usd", "５", 0, digits},
		{"usd", ".5", 0, digits}, {"usd", "5.", 0, digits}, {"usd", ".", 0, digits}, {"usd", "1.2.3", 0, digits}, {"usd", "NaN", 0, digits}, {"usd", "=1+1", 0, digits},
		{"usd", " 5", 0, digits}, {"usd", "5 ", 0, digits}, {"usd", "1.001", 0, two}, {"usd", "1.000", 0, two},
		{"usd", "007.00", 0, needless}, {"usd", "00.50", 0, needless}, {"usd", "99999999999999999999", 0, "too large"},
		{"jpy", "1234.0", 0, whole}, {"jpy", "1.234", 0, whole}, {"jpy", "1,234", 0, digits}, {"kwd", "1.2345", 0, three}, {"kwd", "1,234", 0, digits},
		{"kwd", "1.234", 0, "must end in 0"}, {"isk", "5.50", 0, "divisible by 100"}, {"usd", "0", 0, "positive"}, {"usd", "0.00", 0, "positive"}, {"usd", "1000000.00", 0, "at most 8 digits"},
	} {
		row := c.currency + ",pm_1,\"" + c.cell + "\"\n"
		got, faults := readAll(t, CSV, "currency,payment_method,amount_decimal\n"+row)
		if c.want == "" {
			if len(faults) > 0 || len(got) != 1 || got[0].Amount != schema.Some(c.amount) {
				t.Errorf("%s %s: %+v, %v", c.cell, c.currency, got, faults)
			}
			continue
		}
		if len(faults) != 1 || !strings.Contains(faults[0].String(), "row 1 (line 2), column amount_decimal: ") || !strings.Contains(faults[0].Message, c.want) {
			t.Errorf("%s %s: %+v, %v, want %q", c.cell, c.currency, got, faults, c.want)
		}
	}
}

func TestMinorUnits(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"9900": "", "1": "", "99.00": "amount_decimal", "1,234": "minor units", "-1": "minor units", "+1": "minor units", "1e3": "minor units", "0": "positive", "007": "needless 0",
		" 1": "minor units", "$1": "minor units", "9223372036854775808": "too large", "99999999999999999999999": "too large", "123456789": "at most 8 digits",
	} {
		got, faults := readAll(t, CSV, head+"\""+cell+"\",usd,pm_1\n")
		if want == "" && (len(faults) > 0 || fmt.Sprint(got[0].Amount.Value) != cell) || want != "" && (len(faults) != 1 || faults[0].Column != "amount" || !strings.Contains(faults[0].Message, want)) {
			t.Errorf("%q: %+v, %v", cell, got, faults)
		}
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	for names, want := range map[string][]string{
		"curency,amount,payment_method":                            {"line 1, column curency: the column is unknown: did you mean currency?", "line 1, column currency: is missing"},
		"Amount,currency,payment_method":                           {"column Amount: the column is unknown: did you mean amount?", "column amount: is missing"},
		"amount,currency,Payment Method":                           {"did you mean payment_method?", "column payment_method: is missing"},
		"amount,currency,paymentMethod":                            {"did you mean payment_method?", "column payment_method: is missing"},
		"amount,currency,payment_method,currency":                  {"column currency: the column stands there twice"},
		"amount,amount_decimal,currency,payment_method":            {"column amount_decimal: stands beside amount"},
		"amount,currency,payment_method,metadata.a,metadata.a":     {"column metadata.a: the column stands there twice"},
		"amount,currency,payment_method,metadata":                  {"as metadata.order"},
		"amount,currency,payment_method,metadata.":                 {"as metadata.order"},
		"amount,currency,payment_method,Metadata.order":            {"did you mean metadata.NAME?"},
		"amount,currency,payment_method,metadata.oncepay_x":        {"column metadata.oncepay_x: must not use names that begin with oncepay_"},
		"amount,currency,payment_method,metadata.a[b]":             {"column 4 of the header: must have names of 1 to 40"},
		"amount,currency,payment_method,metadata.4242424242424242": {"column 4 of the header: the name contains what looks like a card number"},
		"amount,currency,payment_method,4242424242424242":          {"column 4 of the header: the column is unknown"},
		"amount,currency,payment_method,":                          {"column 4 of the header: the column has no name"},
		"amount,currency,payment_method,idempotency_key":           {"no key of its own"},
		"amount,currency,payment_method,tenant_id":                 {"the API key says whose"},
		"amount,currency,payment_method,colour":                    {"the column is unknown: remove it"},
		"amount, currency,payment_method":                          {"column  currency: there are spaces around the name: write currency without them", "column currency: is missing"},
		"amount,currency,payment_method\r100,usd,pm_card_visa":     {"line 1: its lines end in carriage returns alone"},
		"amount;currency;payment_method":                           {"separated by semicolons"},
		"amount\tcurrency\tpayment_method":                         {"separated by tabs"},
		"customer":                                                 {"amount_decimal (99.00)", "column currency: is missing", "column payment_method: is missing"},
		"9900,usd,pm_card_visa":                                    {"column 1 of the header: the column is unknown", "unknown", "unknown", "is missing", "is missing", "is missing"},
		"":                                                         {"the file is empty"},
		"\xFF\xFEa\x00m\x00":                                       {"UTF-16"},
		"PK\x03\x04\x14\x00\x06,\x00\n1,2":                         {"line 1: the file is no CSV text: save the table as CSV"},
		"\x1f\x8b\x08\x00":                                         {"the file is no CSV text"},
		"a\x00m\x00":                                               {"the file is no CSV text"},
	} {
		_, faults := readAll(t, CSV, names)
		if len(faults) != len(want) {
			t.Errorf("%q: %v", names, faults)
			continue
		}
		for i, w := range want {
			if !strings.Contains(faults[i].String(), w) || strings.Contains(faults[i].String(), "4242") {
				t.Errorf("%q: %q does not say %q", names, faults[i], w)
			}
		}
	}
}

func TestRowsAreNamed(t *testing.T) {
	t.Parallel()
	const columns = "amount,currency,payment_method,customer,off_session,expires_at,metadata.note\n"
	for rows, want := range map[string][]string{
		"1,usd,pm_1,,,,\n\n1,usd,pm_1\n":                 {"row 2 (line 4): has 3 cells where the header has 7"},
		"1,usd,pm_1,,,,,\n":                              {"row 1 (line 2): has 8 cells where the header has 7"},
		",,,,,,\n":                                       {"row 1 (line 2): the row is empty"},
		"1,usd,,,,,\n":                                   {"row 1 (line 2), column payment_method: is required"},
		"1,,pm_1,,,,\n":                                  {"row 1 (line 2), column currency: is required"},
		"1,us,pm_1,,,,\n":                                {"column currency: must be one of Stripe's"},
		",usd,pm_1,,,,\n":                                {"column amount: must be a positive integer"},
		"1,usd,pm_1,,yes,,\n":                            {"column off_session: must be true or false"},
		"1,usd,pm_1,,True,,\n":                           {"column off_session: must be true or false"},
		"1,usd,pm_1,,,2030-01-31,\n":                     {"column expires_at: must be an RFC 3339 time"},
		"1,usd,pm_1,,,0001-01-01T00:00:00Z,\n":           {"column expires_at: must be an RFC 3339 time"},
		"1,usd,pm_1,4242424242424242,,,\n":               {"column customer: contains what looks like a card number"},
		"1,usd,pm_1,,,,4242 4242 4242 4242\n":            {"column metadata.note: contains what looks like a card number"},
		"4242424242424242,usd,pm_1,,,,\n":                {"column amount: contains what looks like a card number"},
		"1,usd,pm_1,a b,,,\n":                            {"column customer: must consist of printable ASCII"},
		"1,usd,pm_1,,,,\"two\nlines\"\n1,xyz,pm_1,,,,\n": {"row 2 (line 4), column currency"},
		"1,usd,pm_1,,,,a\x00b\n":                         {"column metadata.note: must be valid UTF-8 without"},
		"1,usd,pm_1,,,,\xff\n":                           {"column metadata.note: must be valid UTF-8"},
		"1,usd,pm_1,,,,a\"b\n1,usd,pm_1,,,,\n":           {"row 1 (line 2): a quote (\") stands where none may"},
		"1,usd,pm_1,,,,\"a\"b\n":                         {"row 1 (line 2): a quote (\") stands where none may"},
		"x,us,,a b,yes,now,\n":                           {"column amount", "column off_session", "column expires_at", "column currency", "column payment_method", "column customer"},
		"1,usd,pm_1,,,,\"never closed\n" + strings.Repeat("1,usd,pm_1,,,,\n", 100): {"goes on to line"},
	} {
		got, faults := readAll(t, CSV, columns+rows)
		if len(faults) != len(want) {
			t.Errorf("%q: %+v, %v", rows, got, faults)
			continue
		}
		for i, w := range want {
			if !strings.Contains(faults[i].String(), w) || strings.Contains(faults[i].String(), "4242") {
				t.Errorf("%q: %q does not say %q", rows, faults[i], w)
			}
		}
	}
}

// TestRowWithoutEnd: a quote that is never closed, or a file without line feeds, is not read into memory.
func TestRowWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format      Format
		begin, then string
	}{
		"quote":     {CSV, head + "1,usd,\"", "1,usd,pm_1\n"},
		"header":    {CSV, "amount", "x"},
		"line":      {CSV, head, "1"},
		"json line": {JSONLines, "{", " "},
	} {
		in := &endless{text: strings.NewReader(c.begin), then: []byte(c.then)}
		_, err := Check(t.Context(), func() (io.Reader, error) { return in, nil }, FileOptions{Run: "run", Format: c.format})
		var refused *FaultsError
		if !errors.As(err, &refused) || in.read > 2*(schema.IntentMaxBytes+2*readAhead) {
			t.Errorf("%s: %v after %d bytes", name, err, in.read)
		}
	}
}

// endless begins with a text and never ends.
type endless struct {
	text io.Reader
	then []byte
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n, err := e.text.Read(p)
	if err == io.EOF {
		n = copy(p, bytes.Repeat(e.then, len(p)/len(e.then)))
	}
	e.read += n
	return n, nil
}

func TestOnlySoManyFaults(t *testing.T) {
	t.Parallel()
	for format, data := range map[Format]string{CSV: head + strings.Repeat("x,usd,pm_1\n", 1000), JSONLines: strings.Repeat("{}\n", 1000)} {
		_, err := Check(t.Context(), sourceOf([]byte(data)), FileOptions{Run: "run", Format: format})
		var refused *FaultsError
		if !errors.As(err, &refused) || len(refused.Faults) != faultsMax || !refused.More || !strings.Contains(err.Error(), "the rest of the file was not looked at") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// FuzzCSV: whatever stands in a file, an accepted row is an intent that the door takes, and nothing that is said repeats a value.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		head + "9900,usd,pm_1\n", "\uFEFF" + head + "1,usd,\"a,\"\"b\"\r\n", "amount_decimal,currency,payment_method,metadata.a\n1.00,usd,pm_1,x\n", head + "\"", "a;b\n", "\n\n",
		head + "1,usd,pm_1,\n", head + "4242424242424242,usd,pm\n", "\xff\xfe", head + "1,usd,\x00\n", "amount,currency,payment_method,off_session,expires_at\n1,usd,pm,TRUE,2030-01-31T12:00:00Z\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := newChunks("run", CSV, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for {
			next, err := c.next(t.Context(), nil)
			if errors.Is(err, io.EOF) || errors.Is(err, errStop) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(c.found.list) > 0 {
				continue
			}
			message, err := schema.DecodeBatch(next.body)
			if err != nil || len(message.Payments) != next.rows {
				t.Fatalf("%s: %v", next.body, err)
			}
			request := requestOf(next.key("run"), message)
			if wrong := request.Validate(); wrong != nil || request.CardField() != "" || payments.CardInBytes(next.body) {
				t.Fatalf("%s: %v", next.body, wrong)
			}
		}
		for _, fault := range c.found.list {
			if payments.ContainsCardNumberString(fault.String()) || fault.Message == "" {
				t.Fatalf("%q", fault)
			}
		}
	})
}

// FuzzDecimal: an amount that is accepted is written in one way only, and means what a person reads.
func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{"99.00", "1,234", "1.234", "-1", "1e3", "0.5", "007", "5.", ".5", "１", "99999999999999999999"} {
		for _, currency := range []string{"usd", "jpy", "kwd", "isk"} {
			f.Add(seed, currency)
		}
	}
	f.Fuzz(func(t *testing.T, cell, currency string) {
		var in intent
		exponent, known := payments.Exponent(currency)
		if !known || setDecimal(&in, cell, currency) != "" {
			if in.Amount.Set {
				t.Fatal("refused, and set")
			}
			return
		}
		whole, fraction, _ := strings.Cut(cell, ".")
		for len(fraction) < exponent {
			fraction += "0"
		}
		want := strings.TrimLeft(whole+fraction, "0")
		if want == "" {
			want = "0"
		}
		if got := fmt.Sprint(in.Amount.Value); got != want || len(fraction) > exponent {
			t.Fatalf("%q in %s is %s, want %s", cell, currency, got, want)
		}
	})
}
