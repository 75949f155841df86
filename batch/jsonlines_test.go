package batch

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

const line = `{"amount":9900,"currency":"usd","payment_method":"pm_1"}`

func TestJSONLines(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"plain":             line + "\n" + line + "\n",
		"no last line feed": line + "\n" + line,
		"CRLF":              line + "\r\n" + line + "\r\n",
		"byte order mark":   "\uFEFF" + line + "\n" + line + "\n",
		"blank lines":       "\n \t\r\n" + line + "\n\n\n  " + line + "  \n\n",
		"other order":       `{ "payment_method" : "pm_1", "currency":"usd", "amount":9900 }` + "\n" + line,
	} {
		got, faults := readAll(t, JSONLines, data)
		if len(faults) > 0 || len(got) != 2 || got[0].Amount != schema.Some[int64](9900) || fmt.Sprint(got[0]) != fmt.Sprint(got[1]) {
			t.Errorf("%s: %+v, %v", name, got, faults)
		}
	}
	long := `{"amount":1,"currency":"usd","payment_method":"pm_1","description":"d"` + strings.Repeat(" ", 3*readAhead) + "}"
	if got, faults := readAll(t, JSONLines, long+"\n"+line+"\n"+long); len(faults) > 0 || len(got) != 3 || got[2].Description != schema.Some("d") {
		t.Errorf("long lines: %+v, %v", got, faults)
	}
}

func TestJSONLinesRefused(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		line + "\n\n" + `{"amount":1.5,"currency":"usd","payment_method":"pm_1"}`: "row 2 (line 3), column amount: it must be an integer literal",
		`{"idempotency_key":"a",` + line[1:]:                                      "row 1 (line 1), column idempotency_key: a payment of a file has no key of its own",
		`{"tenant_id":"a",` + line[1:]:                                            "column tenant_id: remove it",
		`{"amount_decimal":"1.00","currency":"usd","payment_method":"pm_1"}`:      "column amount_decimal: is a column of CSV alone: write amount",
		`{"curency":"usd"}`:                                   "column curency: the member is unknown",
		`{"amount":1,"amount":2}`:                             "column amount: a member is repeated",
		`{"amount":1,"currency":"usd"}`:                       "column payment_method: is required",
		`{"amount":1,"currency":"usd","payment_method":null}`: "column payment_method: null is not allowed",
		line + line:        "something follows the object",
		"[" + line + "]":   "it must be a JSON object",
		"{\n\"amount\":1}": "row 1 (line 1): the message ends too early",
		`{"amount":1,"currency":"usd","payment_method":"pm_1","customer":"4242424242424242"}`:          "row 1 (line 1), column customer: contains what looks like a card number",
		`{"amount":1,"currency":"usd","payment_method":"pm_1","customer":"\u0034242424242424242"}`:     "row 1 (line 1), column customer: contains what looks like a card number",
		`{"amount":1,"currency":"usd","payment_method":"pm_1","metadata":{"4242-4242-4242-4242":"x"}}`: "row 1 (line 1), column metadata: contains what looks like a card number",
		`{"amount":1,"currency":"usd","metadata":{"a":"x","note":"4242424242424242"}}`:                 "row 1 (line 1), column metadata.note: contains what looks like a card number",
		`{"card_number":4242424242424242}`:          "row 1 (line 1), column card_number: contains what looks like a card number",
		`{"card":{"pan":["4242424242424242"]}}`:     "row 1 (line 1), column card.pan: contains what looks like a card number",
		`{"4242424242424242":"x"}`:                  "row 1 (line 1): contains what looks like a card number",
		`{"4242424242424242":"4242424242424242"}`:   "row 1 (line 1): contains what looks like a card number",
		`{"amount":1,"customer":"4242424242424242"`: "row 1 (line 1), column customer: contains what looks like a card number",
		`["4242424242424242"]`:                      "row 1 (line 1): contains what looks like a card number",
		"\xFE\xFF\x00{":                             "UTF-16",
		"amount,currency\n1,usd":                    "row 1 (line 1): it is not well-formed JSON",
		strings.Repeat(" ", 600<<10):                "the line is longer than any intent",
		"":                                          "the file holds no payment",
		"\n\n":                                      "the file holds no payment",
	} {
		_, err := Check(t.Context(), sourceOf([]byte(data)), FileOptions{Run: "run", Format: JSONLines})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "4242") {
			t.Errorf("%.100q: %v, want %q", data, err, want)
		}
	}
	if _, err := Check(t.Context(), sourceOf([]byte(head+"\n\n")), FileOptions{Run: "run", Format: CSV}); err == nil || !strings.Contains(err.Error(), "the file holds no payment") {
		t.Errorf("a header alone: %v", err)
	}
}

// TestChunkTooLarge: rows that are good one by one may be too much for one request together.
func TestChunkTooLarge(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("amount,currency,payment_method")
	for i := range 45 {
		fmt.Fprintf(&b, ",metadata.m%d", i)
	}
	b.WriteString("\n")
	for range 130 {
		b.WriteString("1,usd,pm_1" + strings.Repeat(","+strings.Repeat("x", 400), 45) + "\n")
	}
	_, faults := readAll(t, CSV, b.String())
	if len(faults) != 1 || !strings.Contains(faults[0].String(), "row 1: the 100 rows from here on") {
		t.Errorf("%v", faults)
	}
}

func TestSumBeyond64Bits(t *testing.T) {
	t.Parallel()
	s := sums{of: map[string]*Sum{}}
	const most = 1<<63 - 1
	if !s.add(payments.Intent{Currency: "usd", Amount: most}) || s.add(payments.Intent{Currency: "usd", Amount: 1}) || !s.add(payments.Intent{Currency: "eur", Amount: 1}) {
		t.Error("wrong")
	}
	if *s.of["usd"] != (Sum{1, most}) || s.rows != 2 {
		t.Errorf("%+v", s.of["usd"])
	}
}

func FuzzJSONLines(f *testing.F) {
	for _, seed := range []string{line, line + "\r\n\r\n" + line, "\uFEFF" + line, `{"a":`, "{}\n{}\n", `{"metadata":{"a":"b"},` + line[1:], "\xff\xfe"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, err := Check(t.Context(), sourceOf(data), FileOptions{Run: "run", Format: JSONLines})
		if err != nil {
			if payments.ContainsCardNumberString(err.Error()) {
				t.Fatal(err)
			}
			return
		}
		if plan.Rows < 1 || plan.Batches() != int((plan.Rows+ChunkRows-1)/ChunkRows) {
			t.Fatalf("%+v", plan)
		}
	})
}

// TestCSVAndJSONLinesAgree: the same payments are the same requests, byte for byte, whichever way they are written.
func TestCSVAndJSONLinesAgree(t *testing.T) {
	t.Parallel()
	text := rapid.StringMatching(`[ -~äß€,"\n]{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		columns := []string{"amount", "currency", "payment_method", "customer", "description", "off_session", "capture_method", "metadata.a", "metadata.b c"}
		decimal := rapid.Bool().Draw(t, "decimal")
		if decimal {
			columns[0] = "amount_decimal"
		}
		columns = rapid.Permutation(columns).Draw(t, "columns")
		var table [][]string
		var lines bytes.Buffer
		for range rapid.IntRange(1, 250).Draw(t, "rows") {
			currency := rapid.SampledFrom([]string{"usd", "EUR", "jpy", "kwd", "isk"}).Draw(t, "currency")
			amount := 1000 * rapid.Int64Range(1, 9999).Draw(t, "amount")
			in := schema.Intent{Amount: schema.Some(amount), Currency: schema.Some(currency), PaymentMethod: schema.Some("pm_1")}
			cells := map[string]string{
				"amount": fmt.Sprint(amount), "amount_decimal": strings.Fields(payments.FormatAmount(amount, currency))[0], "currency": currency, "payment_method": "pm_1",
			}
			maybe := func(name string, value string, set func(string)) {
				if rapid.Bool().Draw(t, name) && !payments.ContainsCardNumberString(value) {
					cells[name] = value
					set(value)
				}
			}
			maybe("customer", "cus_1", func(v string) { in.Customer = schema.Some(v) })
			maybe("description", text.Draw(t, "text"), func(v string) { in.Description = schema.Some(v) })
			maybe("off_session", "false", func(string) { in.OffSession = schema.Some(false) })
			maybe("capture_method", "manual", func(v string) { in.CaptureMethod = schema.Some(v) })
			for _, name := range []string{"a", "b c"} {
				maybe("metadata."+name, text.Draw(t, "value"), func(v string) {
					if in.Metadata == nil {
						in.Metadata = map[string]string{}
					}
					in.Metadata[name] = v
				})
			}
			row := make([]string, len(columns))
			for i, c := range columns {
				row[i] = cells[c]
			}
			table = append(table, row)
			encoded, err := schema.EncodeIntent(in)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(encoded)
			lines.WriteByte('\n')
		}
		var file bytes.Buffer
		w := csv.NewWriter(&file)
		if err := w.WriteAll(append([][]string{columns}, table...)); err != nil {
			t.Fatal(err)
		}
		ofCSV, err := Check(t.Context(), sourceOf(file.Bytes()), FileOptions{Run: "run", Format: CSV})
		if err != nil {
			t.Fatal(err)
		}
		ofLines, err := Check(t.Context(), sourceOf(lines.Bytes()), FileOptions{Run: "run", Format: JSONLines})
		if err != nil {
			t.Fatal(err)
		}
		if !equalSums(ofCSV, ofLines) || fmt.Sprint(ofCSV.Sums) != fmt.Sprint(ofLines.Sums) || ofCSV.Rows != int64(len(table)) {
			t.Fatalf("%v\n%v", ofCSV, ofLines)
		}
	})
}

func equalSums(a, b *Plan) bool {
	for i := range a.Batches() {
		if !b.chunks.is(i, a.chunks.blocks[i/sumsBlock][i%sumsBlock]) {
			return false
		}
	}
	return a.Batches() == b.Batches()
}
