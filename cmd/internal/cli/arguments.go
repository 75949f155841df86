package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
)

// Group is a command that does nothing but hold others. Without any of them it shows its help, and that is a usage error unless it is the
// program itself and nothing else was asked for.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	names := make([]string, len(commands))
	for i, sub := range commands {
		names[i] = sub.Name()
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return &app.UsageError{Text: fmt.Sprintf("%sunknown command %q; there are %s", path(c), args[0], strings.Join(names, ", "))}
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if c.HasParent() || c.Flags().NFlag() > 0 {
			return &app.UsageError{Text: path(c) + "needs a command: " + strings.Join(names, ", ")}
		}
		return c.Help()
	}
	c.AddCommand(commands...)
	return c
}

// path is the command's own part of an error, without the program's name.
func path(c *cobra.Command) string {
	if !c.HasParent() {
		return ""
	}
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") + ": "
}

// strictDefaults makes the commands that cobra adds refuse what they do not know, instead of showing some help with exit code 0.
func strictDefaults(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.RunE = func(*cobra.Command, []string) error {
				return &app.UsageError{Text: "completion: needs a shell: bash, zsh, fish, powershell"}
			}
		case "help":
			c.Run = nil
			c.RunE = func(_ *cobra.Command, args []string) error {
				asked, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return &app.UsageError{Text: "help: there is no such command"}
				}
				return asked.Help()
			}
		}
	}
}

// helpWidth is how wide help is at most.
const helpWidth = 100

// strictHelp makes --help after a command that is not there the usage error that it would be without. The error is known once the tree was executed.
func strictHelp(root *cobra.Command) *error {
	var unknown error
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 && c.Args != nil {
			unknown = c.Args(c, words)
			return
		}
		help(c, args)
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages |", fmt.Sprintf("FlagUsagesWrapped %d |", helpWidth)))
	return &unknown
}

// Arguments checks how many arguments a command is given; its usage line names them. The arguments themselves are not repeated.
func Arguments(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return &app.UsageError{Text: fmt.Sprintf("%swrong number of arguments (%d); usage: %s", path(c), len(args), strings.TrimSuffix(c.UseLine(), " [flags]"))}
	}
}

// invalidValue is the error of a flag's value, as far as it is needed here.
type invalidValue interface{ GetValue() string }

// flagError says which flag is wrong, and never its value: people paste anything into a command line.
func flagError(c *cobra.Command, err error) error {
	var invalid invalidValue
	if !errors.As(err, &invalid) {
		return &app.UsageError{Text: err.Error()}
	}
	_, name, _ := strings.Cut(err.Error(), fmt.Sprintf("invalid argument %q for ", invalid.GetValue()))
	name, _, _ = strings.Cut(strings.TrimPrefix(name, `"`), `"`)
	_, name, _ = strings.Cut(name, "--")
	f := c.Flags().Lookup(name)
	if f == nil {
		return &app.UsageError{Text: "a flag has an impossible value"}
	}
	wanted := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, not negative", "float64": "a number",
		"bool": "true or false", "duration": "a duration such as 30s or 5m",
	}[f.Value.Type()]
	if wanted == "" {
		wanted = "a " + f.Value.Type()
	}
	return &app.UsageError{Text: "--" + f.Name + ": must be " + wanted}
}

// errorLine is an error as one line that is fit for a terminal and a log. Should a card number have found its way into it, all digits are
// covered.
func errorLine(text string) string {
	text = app.OneLine(text)
	if payments.ContainsCardNumberString(text) {
		text = strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '*'
			}
			return r
		}, text)
	}
	return console.Safe(text)
}
