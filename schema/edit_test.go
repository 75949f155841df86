package schema

import (
	"errors"
	"testing"
)

func TestEditIntent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data string
		set  map[string]string
		want string
	}{
		{`{"amount":1,"description":"a"}`, map[string]string{"description": `b"\`}, `{"amount":1,"description":"b\"\\"}`},
		{` {"amount" : 1.5 , "x":[ 1, null ]} `, map[string]string{"amount": "15", "off_session": "false"}, `{"amount":15,"x":[ 1, null ],"off_session":false}`},
		{`{"description":"a","amount":1,"description":"b"}`, map[string]string{"description": "c"}, `{"description":"c","amount":1}`},
		{`{"description":null,"amount":1}`, map[string]string{"description": ""}, `{"amount":1}`},
		{`{"metadata":{"a":"1","b":2}}`, map[string]string{"metadata.b": "2", "metadata.c": "3", "metadata.a": ""}, `{"metadata":{"b":"2","c":"3"}}`},
		{`{}`, map[string]string{"metadata.a.b": "1", "currency": "usd"}, `{"currency":"usd","metadata":{"a.b":"1"}}`},
		{"{\"description\":\"\xff\",\"am\\u006funt\":\"x\"}", map[string]string{"amount": "3"}, "{\"description\":\"\xff\",\"am\\u006funt\":3}"},
	} {
		got, err := EditIntent([]byte(c.data), c.set)
		if err != nil || string(got) != c.want {
			t.Errorf("%q with %v: %q, %v, want %q", c.data, c.set, got, err, c.want)
		}
	}
}

func TestEditIntentRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data  string
		set   map[string]string
		field string
	}{
		{`{}`, map[string]string{"idempotency_key": "k"}, "idempotency_key"},
		{`{}`, map[string]string{"tenant_id": ""}, "tenant_id"},
		{`{}`, map[string]string{"metadata": "{}"}, "metadata"},
		{`{}`, map[string]string{"colour": "red"}, "colour"},
		{`{}`, map[string]string{"amount": "1e3"}, "amount"},
		{`{}`, map[string]string{"off_session": "no"}, "off_session"},
		{`[]`, map[string]string{"amount": "1"}, ""},
		{`{"a":1`, map[string]string{"amount": "1"}, ""},
		{`{"a":1}{}`, map[string]string{"amount": "1"}, ""},
		{`{"metadata":"x"}`, map[string]string{"metadata.a": "1"}, ""},
	} {
		var refused *DecodeError
		if got, err := EditIntent([]byte(c.data), c.set); !errors.As(err, &refused) || refused.Field != c.field {
			t.Errorf("%q with %v: %q, %v", c.data, c.set, got, err)
		}
	}
}
