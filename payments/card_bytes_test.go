package payments

import "testing"

func TestUnescaped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`\u0034`: "4", `a\u00e9b`: "aéb", `\\u0034`: `\\u0034`, `\\\u0034`: `\\4`, `\u003`: `\u003`, `\u00g4`: `\u00g4`, `\`: `\`, `\n4`: `\n4`, `\ud800x`: "\uFFFDx", ``: ``,
	} {
		if got := string(unescaped([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCardInBytes(t *testing.T) {
	t.Parallel()
	utf16 := []byte{0xFF, 0xFE}
	for _, c := range []byte("4242424242424242") {
		utf16 = append(utf16, c, 0)
	}
	for text, want := range map[string]bool{
		`{"description":"4242424242424242"}`:           true,
		`{"description":"\u003424242424242424\u0032"}`: true,
		`{"description":"4242 4242 4242 4242"}`:        true,
		string(utf16):                                  true,
		`{"description":"4242424242424241"}`:           false,
		`{"description":"\\u00344242424242424242"}`:    false,
		`{"amount":9900}`:                              false,
		"":                                             false,
	} {
		if got := CardInBytes([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
