package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// schemaDoc is the part of JSON Schema 2020-12 that our files use. A keyword
// that is not here makes the test fail: it would not be held against anything.
type schemaDoc struct {
	Schema      string `json:"$schema"`
	ID          string `json:"$id"`
	Title       string
	Description string
	Default     any
	Format      string // an annotation, as the specification has it by default

	Type                 string
	Const                any
	Enum                 []any
	Pattern              string
	MinLength            *int
	Minimum, Maximum     *json.Number
	Properties           map[string]*schemaDoc
	PropertyNames        *schemaDoc
	AdditionalProperties *schemaDoc
	Required             []string
	Not, If, Then, Else  *schemaDoc

	never bool // the schema false
}

func (s *schemaDoc) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		s.never = true
		return nil
	}
	type plain schemaDoc
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	return dec.Decode((*plain)(s))
}

func loadSchema(t *testing.T, name string) *schemaDoc {
	t.Helper()
	data, err := JSONSchema(name)
	if err != nil {
		t.Fatal(err)
	}
	var s schemaDoc
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	if s.Schema != "https://json-schema.org/draft/2020-12/schema" || s.ID == "" || s.Type != "object" {
		t.Fatalf("%s is not a schema of ours: %+v", name, s)
	}
	return &s
}

// faults says where v is not what s describes.
func (s *schemaDoc) faults(path string, v any) []string {
	if s == nil {
		return nil
	}
	var out []string
	fault := func(wrong bool, keyword string) {
		if wrong {
			out = append(out, path+": "+keyword)
		}
	}
	fault(s.never, "false")
	fault(s.Const != nil && !reflect.DeepEqual(s.Const, v), "const")
	fault(s.Enum != nil && !slices.Contains(s.Enum, v), "enum")
	fault(s.Not != nil && len(s.Not.faults(path, v)) == 0, "not")
	if s.If != nil {
		if len(s.If.faults(path, v)) == 0 {
			out = append(out, s.Then.faults(path, v)...)
		} else {
			out = append(out, s.Else.faults(path, v)...)
		}
	}
	kind := "null"
	switch v := v.(type) {
	case string:
		kind = "string"
		fault(s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v), "pattern")
		fault(s.MinLength != nil && len([]rune(v)) < *s.MinLength, "minLength")
	case json.Number:
		kind = "number"
		n, ok := new(big.Rat).SetString(v.String())
		if ok && n.IsInt() {
			kind = "integer"
		}
		fault(s.Minimum != nil && n.Cmp(rat(*s.Minimum)) < 0, "minimum")
		fault(s.Maximum != nil && n.Cmp(rat(*s.Maximum)) > 0, "maximum")
	case bool:
		kind = "boolean"
	case []any:
		kind = "array"
	case map[string]any:
		kind = "object"
		for _, name := range s.Required {
			_, ok := v[name]
			fault(!ok, "required "+name)
		}
		for name, value := range v {
			out = append(out, s.PropertyNames.faults(path+"/"+name, name)...)
			if property, ok := s.Properties[name]; ok {
				out = append(out, property.faults(path+"/"+name, value)...)
			} else {
				out = append(out, s.AdditionalProperties.faults(path+"/"+name, value)...)
			}
		}
	}
	fault(s.Type != "" && s.Type != kind, "type")
	return out
}

func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("not a number: " + n.String())
	}
	return r
}

func sortedNames(properties map[string]*schemaDoc) []string {
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func enumOf(s *schemaDoc) []string {
	var words []string
	for _, word := range s.Enum {
		words = append(words, fmt.Sprint(word))
	}
	return words
}

func TestIntentSchemaIsTheStruct(t *testing.T) {
	t.Parallel()
	s := loadSchema(t, "intent")
	names := structMembers(reflect.TypeFor[Intent]())
	if !slices.Equal(names, IntentMembers()) {
		t.Errorf("the struct has %q, the list %q", names, IntentMembers())
	}
	if got := sortedNames(s.Properties); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
		t.Errorf("the schema has %q, the struct %q", got, names)
	}
	if s.AdditionalProperties == nil || !s.AdditionalProperties.never {
		t.Error("the schema allows unknown members, which the codec refuses")
	}
	typ := reflect.TypeFor[Intent]()
	for i, name := range names {
		want := map[reflect.Type]string{
			reflect.TypeFor[Optional[string]](): "string", reflect.TypeFor[Optional[int64]](): "integer",
			reflect.TypeFor[Optional[bool]](): "boolean", reflect.TypeFor[map[string]string](): "object",
		}[typ.Field(i).Type]
		if want == "" { // a time
			want = "string"
			if s.Properties[name].Format != "date-time" {
				t.Errorf("%s has no format", name)
			}
		}
		if s.Properties[name].Type != want || s.Properties[name].Description == "" {
			t.Errorf("%s is %+v, the struct has %s", name, s.Properties[name], want)
		}
	}
	if got := enumOf(s.Properties["kind"]); !slices.Equal(got, []string{KindCharge, KindCapture, KindCancel, KindRefund}) {
		t.Errorf("kinds %q", got)
	}
	if got := enumOf(s.Properties["capture_method"]); !slices.Equal(got, []string{CaptureAutomatic, CaptureManual}) {
		t.Errorf("capture methods %q", got)
	}
}

func TestEventSchemaIsTheCodec(t *testing.T) {
	t.Parallel()
	s := loadSchema(t, "event")
	if got := sortedNames(s.Properties); !slices.Equal(got, slices.Sorted(slices.Values(EventAttributes()))) {
		t.Errorf("the schema has %q, the codec %q", got, EventAttributes())
	}
	if got := enumOf(s.Properties["type"]); !slices.Equal(got, EventTypes()) {
		t.Errorf("types\n%q\nwant\n%q", got, EventTypes())
	}
	// Whatever is required must be written, and missed.
	text, err := EncodeEvent(sampleEvent())
	if err != nil {
		t.Fatal(err)
	}
	if faults := s.faults("", stdlibView(text)); faults != nil {
		t.Errorf("an event of ours is not what the schema describes: %q", faults)
	}
	for _, name := range EventAttributes() {
		view := stdlibView(text).(map[string]any)
		delete(view, name)
		_, err := DecodeEvent(mustJSON(view))
		if required := slices.Contains(s.Required, name); required != (err != nil) {
			t.Errorf("%s: required is %v, the codec says %v", name, required, err)
		}
	}
}

func TestIntentSchemaOnExamples(t *testing.T) {
	t.Parallel()
	s := loadSchema(t, "intent")
	for data, good := range map[string]bool{
		smallestIntent: true,
		`{"amount":1,"currency":"USD","payment_method":"pm","metadata":{"a":"b"},"expires_at":"2030-01-31T12:00:00Z"}`: true,
		`{"kind":"charge","amount":1,"currency":"usd","payment_method":"pm"}`:                                          true,
		`{"kind":"refund","payment_id":"pay_af5f4f1841e88ebcae502028d51c062c"}`:                                        true,
		`{"kind":"refund"}`: false,
		`{}`:                false,
		`{"kind":"gift","amount":1,"currency":"usd","payment_method":"pm"}`:                      false,
		`{"amount":0,"currency":"usd","payment_method":"pm"}`:                                    false,
		`{"amount":"1","currency":"usd","payment_method":"pm"}`:                                  false,
		`{"amount":1,"currency":"usdd","payment_method":"pm"}`:                                   false,
		`{"amount":1,"currency":"usd","payment_method":"pm","idempotency_key":"a::0"}`:           false,
		`{"amount":1,"currency":"usd","payment_method":"pm","idempotency_key":"a b"}`:            false,
		`{"amount":1,"currency":"usd","payment_method":"pm","tenant_id":"Acme"}`:                 false,
		`{"amount":1,"currency":"usd","payment_method":"pm","metadata":{"oncepay_payment":"x"}}`: false,
		`{"amount":1,"currency":"usd","payment_method":"pm","metadata":{"a":1}}`:                 false,
		`{"amount":9223372036854775808,"currency":"usd","payment_method":"pm"}`:                  false,
		`{"amount":1,"currency":"usd","payment_method":"pm","ammount":1}`:                        false,
		`{"amount":1,"currency":"usd","payment_method":"pm","off_session":"true"}`:               false,
	} {
		if faults := s.faults("", stdlibView([]byte(data))); (faults == nil) != good {
			t.Errorf("%s: %q", data, faults)
		}
	}
}

// What the codec refuses for a member's name or type, the schema refuses as
// well, where JSON Schema can see it: to it 1.0 and 1e2 are integers, and a
// format is a comment.
func TestIntentSchemaRefusesWhatTheCodecRefuses(t *testing.T) {
	t.Parallel()
	s := loadSchema(t, "intent")
	unseen := map[string]bool{
		"amount-1_0": true, "amount-1e2": true, "amount-1Eplus2": true, "amount--0": true, "unknown-then-broken": true,
	}
	checked := 0
	for _, m := range recordings(t, "intent/refused") {
		view := stdlibView(m.data)
		_, broken := view.(error)
		var want struct {
			Field     string
			Malformed bool
		}
		if err := json.Unmarshal(m.want, &want); err != nil {
			t.Fatal(err)
		}
		object, _ := view.(map[string]any)
		text, isText := object["expires_at"].(string)
		if broken || want.Malformed || unseen[m.name] || (isText && text != "") {
			continue
		}
		checked++
		// Only faults of the member itself count: each of these lacks others.
		found := false
		for _, fault := range s.faults("", view) {
			found = found || !regexp.MustCompile(`: required `).MatchString(fault)
		}
		if !found {
			t.Errorf("%s: the schema has nothing against it", m.name)
		}
	}
	if checked < 20 {
		t.Errorf("only %d messages were checked", checked)
	}
}
