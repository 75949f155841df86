package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// recorded is one message of testdata/v1.
type recorded struct {
	name       string
	data, want []byte
}

// recordings reads one folder and fails on a file that has no partner.
func recordings(t testing.TB, folder string) []recorded {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", "v1", folder))
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	for _, e := range entries {
		base := strings.TrimSuffix(filepath.Join("testdata", "v1", folder, e.Name()), filepath.Ext(e.Name()))
		data, err := os.ReadFile(base + ".json")
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(base + ".want")
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(e.Name()) == ".json" {
			all = append(all, recorded{filepath.Base(base), data, want})
		}
	}
	if len(all) < 3 {
		t.Fatalf("%s holds %d messages: files are missing", folder, len(all))
	}
	return all
}

// intentView is what was decoded, in the words of the wire, made without the
// encoder that is under test as well.
func intentView(in Intent) map[string]any {
	view := map[string]any{}
	v := reflect.ValueOf(in)
	for i, name := range structMembers(v.Type()) {
		switch field := v.Field(i).Interface().(type) {
		case Optional[string]:
			if field.Set {
				view[name] = field.Value
			}
		case Optional[int64]:
			if field.Set {
				view[name] = json.Number(string(mustJSON(field.Value)))
			}
		case Optional[bool]:
			if field.Set {
				view[name] = field.Value
			}
		case Optional[time.Time]:
			if field.Set {
				view[name] = field.Value.Format(time.RFC3339Nano)
			}
		case map[string]string:
			if field != nil {
				m := map[string]any{}
				for k, v := range field {
					m[k] = v
				}
				view[name] = m
			}
		default:
			panic("a field of an unknown type: " + v.Type().Field(i).Name)
		}
	}
	return view
}

// structMembers turns the names of a struct's fields into members' names.
func structMembers(typ reflect.Type) []string {
	var names []string
	for i := range typ.NumField() {
		var b strings.Builder
		name := typ.Field(i).Name
		for j := range len(name) {
			upper := func(k int) bool { return k < len(name) && name[k] >= 'A' && name[k] <= 'Z' }
			if upper(j) && j > 0 && (!upper(j-1) || (j+1 < len(name) && !upper(j+1))) {
				b.WriteByte('_')
			}
			b.WriteString(strings.ToLower(name[j : j+1]))
		}
		names = append(names, b.String())
	}
	return names
}

func batchView(b BatchMessage) map[string]any {
	view := map[string]any{}
	if b.IdempotencyKey.Set {
		view["idempotency_key"] = b.IdempotencyKey.Value
	}
	if b.Parent.Set {
		view["parent"] = b.Parent.Value
	}
	if b.Payments != nil {
		payments := []any{}
		for _, in := range b.Payments {
			payments = append(payments, intentView(in))
		}
		view["payments"] = payments
	}
	return view
}

func eventView(e Event) map[string]any {
	return map[string]any{
		"specversion": "1.0", "datacontenttype": "application/json",
		"id": e.ID, "source": e.Source, "type": e.Type, "subject": e.Subject, "tenantid": e.TenantID,
		"time": e.Time.Format(time.RFC3339Nano), "sequence": json.Number(string(mustJSON(e.Sequence))),
		"data": stdlibView(e.Data),
	}
}

func operationView(o OperationRequest) map[string]any {
	in := Intent{Amount: o.Amount, Metadata: o.Metadata}
	view := intentView(in)
	if o.Reason.Set {
		view["reason"] = o.Reason.Value
	}
	return view
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// stdlibView is what encoding/json sees, numbers as they were written.
func stdlibView(data []byte) any {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return v
}

func TestRecordedMessages(t *testing.T) {
	t.Parallel()
	decoders := map[string]func([]byte) (any, error){
		"intent": func(data []byte) (any, error) { in, err := DecodeIntent(data); return intentView(in), err },
		"batch":  func(data []byte) (any, error) { b, err := DecodeBatch(data); return batchView(b), err },
		"event":  func(data []byte) (any, error) { e, err := DecodeEvent(data); return eventView(e), err },
	}
	for _, kind := range OperationKinds() {
		decoders[kind] = func(data []byte) (any, error) { o, err := DecodeOperation(kind, data); return operationView(o), err }
	}
	for kind, decode := range decoders {
		for _, m := range recordings(t, kind+"/accepted") {
			t.Run(kind+"/accepted/"+m.name, func(t *testing.T) {
				t.Parallel()
				got, err := decode(m.data)
				if err != nil {
					t.Fatalf("no longer accepted: %v", err)
				}
				if want := stdlibView(m.want); !reflect.DeepEqual(got, want) {
					t.Errorf("decoded to\n%v, once to\n%v", got, want)
				}
			})
		}
		for _, m := range recordings(t, kind+"/refused") {
			t.Run(kind+"/refused/"+m.name, func(t *testing.T) {
				t.Parallel()
				var want struct {
					Field     string
					Malformed bool
				}
				if err := json.Unmarshal(m.want, &want); err != nil {
					t.Fatal(err)
				}
				_, err := decode(m.data)
				var refused *DecodeError
				if !errors.As(err, &refused) {
					t.Fatalf("no longer refused: %v", err)
				}
				if refused.Field != want.Field || refused.Malformed != want.Malformed {
					t.Errorf("got %q with malformed %v, once field %q with %v", err, refused.Malformed, want.Field, want.Malformed)
				}
				if strings.Contains(err.Error(), "4242") {
					t.Errorf("the error repeats a value: %q", err)
				}
			})
		}
	}
}

func TestRecordedKeyHeaders(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/v1/key_header.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Lines []string
		Key   *string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 30 {
		t.Fatalf("%d cases: some are missing", len(cases))
	}
	for _, c := range cases {
		key, present, err := ParseKeyHeader(c.Lines)
		if c.Key == nil {
			if !errors.Is(err, ErrKeyHeader) || present || key != "" {
				t.Errorf("%.40q: got %q, %v, %v, once refused", c.Lines, key, present, err)
			}
			continue
		}
		if err != nil || !present || key != *c.Key {
			t.Errorf("%.40q: got %q, %v, %v, once %q", c.Lines, key, present, err, *c.Key)
		}
	}
}
