package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// Exit codes of all commands.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// shared is what every command has: where it writes, and how it reads settings.
type shared struct {
	out, err io.Writer
	flags    *pflag.FlagSet
	config   string
	json     bool
}

// Main runs the program oncepay and returns its exit code.
func Main(args []string, out, err io.Writer) int {
	s := &shared{out: out, err: err}
	root := &cobra.Command{
		Use:           "oncepay",
		Short:         "Charge each payment intent once, and prove it",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(out)
	root.SetErr(err)
	root.SetArgs(args)
	s.bind(root)
	root.AddCommand(serveCommand(s), migrateCommand(s), publishCommand(s), paymentsCommand(s), dlqCommand(s), tenantsCommand(s), keysCommand(s),
		configCommand(s), versionCommand(s))
	return Execute(root, err)
}

// bind adds the flags that every command has: one for each setting, --config and --json.
func (s *shared) bind(root *cobra.Command) {
	s.flags = root.PersistentFlags()
	s.flags.StringVar(&s.config, "config", os.Getenv("ONCEPAY_CONFIG"), "settings file of KEY=VALUE lines")
	s.flags.BoolVar(&s.json, "json", false, "print one JSON document on standard output")
	for _, name := range app.Names() {
		s.flags.String(app.FlagOf(name), "", app.Usage(name))
		if err := s.flags.MarkHidden(app.FlagOf(name)); err != nil {
			panic(err) // the flag was added on the line above
		}
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &app.UsageError{Text: err.Error()} })
}

// Execute runs a command tree until it ends or the process is told to stop, prints its error as one line and returns the exit code.
func Execute(root *cobra.Command, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root.ExecuteContext(ctx)
	var usage *app.UsageError
	var coded *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		if coded.text != "" {
			fmt.Fprintln(stderr, coded.text)
		}
		return coded.code
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "accepts "),
		strings.HasPrefix(err.Error(), "required flag"), strings.HasPrefix(err.Error(), "requires at least"):
		fmt.Fprintln(stderr, root.Name()+": "+err.Error())
		return exitUsage
	default:
		fmt.Fprintln(stderr, root.Name()+": "+err.Error())
		return exitFailed
	}
}

// exitError ends a command with a code; text is printed as it is.
type exitError struct {
	code int
	text string
}

// Error returns the text.
func (e *exitError) Error() string { return e.text }

// NewExit returns an error that ends the program with the code after printing the text.
func NewExit(code int, text string) error { return &exitError{code, text} }

// sources are where settings come from, the strongest first.
func (s *shared) sources() ([]app.Source, error) {
	file, err := app.File(s.config)
	if err != nil {
		return nil, err
	}
	flags := func(name string) (string, bool) {
		f := s.flags.Lookup(app.FlagOf(name))
		return f.Value.String(), f.Changed
	}
	return []app.Source{flags, app.Environment, file}, nil
}

// settings loads and checks all settings.
func (s *shared) settings() (app.Settings, error) {
	sources, err := s.sources()
	if err != nil {
		return app.Settings{}, err
	}
	return app.Load(sources...)
}
