package cli

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
)

// actorName is the variable that says who operates.
const actorName = "ONCEPAY_ACTOR"

// What an operator writes is kept for ever, and read by others.
const (
	actorMax = 100
	wordsMax = 500
)

// bindActor adds the flag that says who does it.
func bindActor(c *cobra.Command) {
	c.Flags().String(app.FlagOf(actorName), "", "who does this, for the audit (default "+actorName+", else user@host)")
}

// operation is who does what a command does, and why. flag is the one that the words come from; without required it may be left out.
func (s *shared) operation(c *cobra.Command, flag, words string, required bool) (op payments.Operation, err error) {
	if required && strings.TrimSpace(words) == "" {
		return op, &app.UsageError{Text: flag + ": is required: say why, for whoever reads it later"}
	}
	if op.Reason, err = ownWords(flag, words, wordsMax); err != nil {
		return op, err
	}
	if c.Flags().Changed(strings.TrimPrefix(flag, "--")) && op.Reason == "" {
		return op, &app.UsageError{Text: flag + ": is empty"}
	}
	given, err := s.apiSetting(c, actorName)
	if err != nil {
		return op, err
	}
	name := "--" + app.FlagOf(actorName)
	if c.Flags().Changed(app.FlagOf(actorName)) {
		if given == "" {
			return op, &app.UsageError{Text: name + ": is empty: say who does this, or leave it out"}
		}
	} else if name = actorName; given == "" {
		given = systemActor()
	}
	op.Actor, err = ownWords(name, given, actorMax)
	return op, err
}

// ownWords checks what an operator says of himself or of what he does.
func ownWords(flag, text string, most int) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "", &app.UsageError{Text: flag + ": must be one line of plain text"}
	case utf8.RuneCountInString(text) > most:
		return "", &app.UsageError{Text: flag + ": must be at most " + strconv.Itoa(most) + " characters"}
	case payments.ContainsCardNumberString(text):
		return "", &app.UsageError{Text: flag + ": contains what looks like a card number, which is kept nowhere: leave it out"}
	}
	return text, nil
}

// systemActor is the user of the operating system on this machine.
func systemActor() string {
	name := "uid-" + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name+"@"+host)
}
