package app

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// settingsFileMax is more than anybody's settings.
const settingsFileMax = 1 << 20

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// File reads a settings file: KEY=VALUE lines and # comments, as `oncepay-dev up --env-file` writes them and a shell sources them. A value is
// bare, to the end of its line, or quoted as in a shell; nothing is expanded, so that a $ in a password is a $. names are all that stand in it.
func File(path string) (from Source, names []string, err error) {
	if path == "" {
		return func(string) (string, bool) { return "", false }, nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, &UsageError{"--config: " + err.Error()}
	}
	if len(data) > settingsFileMax {
		return nil, nil, &UsageError{fmt.Sprintf("--config: is larger than %d bytes", settingsFileMax)}
	}
	values, err := parseSettings(string(data))
	if err != nil {
		return nil, nil, &UsageError{"--config: " + err.Error()}
	}
	for name := range values {
		names = append(names, name)
	}
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }, names, nil
}

// parseSettings reads the lines; its errors name the line and never show it.
func parseSettings(text string) (map[string]string, error) {
	values := map[string]string{}
	n := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		n++
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if !ok || !variableName.MatchString(name) {
			return nil, fmt.Errorf("line %d is not KEY=VALUE", n)
		}
		value, err := settingValue(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("line %d, %s: %w", n, name, err)
		}
		values[name] = value
	}
	return values, nil
}

var errQuote = errors.New("a quote is not closed")

// settingValue is the value of a line. One that begins with a quote is a word of a shell: quoted parts that follow each other, and characters
// behind a backslash, belong together.
func settingValue(text string) (string, error) {
	if text == "" || text[0] != '\'' && text[0] != '"' && text[0] != '\\' {
		text, _, _ = strings.Cut(text, " #")
		return strings.TrimSpace(text), nil
	}
	var value strings.Builder
	for text != "" {
		switch text[0] {
		case '\'':
			part, rest, closed := strings.Cut(text[1:], "'")
			if !closed {
				return "", errQuote
			}
			value.WriteString(part)
			text = rest
		case '"':
			rest, err := doubleQuoted(&value, text[1:])
			if err != nil {
				return "", err
			}
			text = rest
		case '\\':
			if len(text) < 2 {
				return "", errors.New("ends with a backslash")
			}
			value.WriteByte(text[1])
			text = text[2:]
		case ' ', '\t':
			if rest := strings.TrimSpace(text); !strings.HasPrefix(rest, "#") {
				return "", errors.New("something follows the quoted value")
			}
			return value.String(), nil
		default:
			value.WriteByte(text[0])
			text = text[1:]
		}
	}
	return value.String(), nil
}

// doubleQuoted reads up to the closing quote, and returns what follows it. A backslash hides what a shell would let it hide.
func doubleQuoted(value *strings.Builder, text string) (rest string, err error) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return text[i+1:], nil
		case text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0:
			i++
		}
		value.WriteByte(text[i])
	}
	return "", errQuote
}
