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
	"time"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
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
	root     *cobra.Command
	config   string
	json     bool

	// Tests stand in for these: operators is nil for the store of the settings, every 0 for followEvery.
	operators operators
	copied    markCopy // nil: the one of the settings
	every     time.Duration
	asks      func(io.Reader) bool // whether somebody can be asked
	width     func(io.Writer) int  // of a terminal; nil: everything is as wide as it is
}

// Main runs the program oncepay and returns its exit code.
func Main(args []string, in io.Reader, out, err io.Writer) int {
	s := &shared{out: out, err: err, asks: console.Terminal, width: console.Width}
	return s.run(args, in)
}

func (s *shared) run(args []string, in io.Reader) int {
	root := Group("oncepay", "Charge each payment intent once, and prove it", serveCommand(s), migrateCommand(s), publishCommand(s), paymentsCommand(s),
		batchCommand(s), dlqCommand(s), replaysCommand(s), pauseCommand(s), resumeCommand(s), rewindCommand(s), auditCommand(s), tenantsCommand(s), keysCommand(s),
		doctorCommand(s), configCommand(s), versionCommand(s))
	root.SetIn(in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetArgs(args)
	s.bind(root)
	return Execute(root, s.err)
}

// bind adds the flags that every command has: one for each setting, --config and --json.
func (s *shared) bind(root *cobra.Command) {
	s.root = root
	flags := root.PersistentFlags()
	flags.StringVar(&s.config, "config", os.Getenv("ONCEPAY_CONFIG"), "settings file of KEY=VALUE lines")
	flags.BoolVar(&s.json, "json", false, "print one JSON document on standard output")
	for _, name := range app.Names() {
		flags.String(app.FlagOf(name), "", app.Usage(name))
		if err := flags.MarkHidden(app.FlagOf(name)); err != nil {
			panic(err) // the flag was added on the line above
		}
	}
}

// Execute runs a command tree until it ends or the process is told to stop, prints its error as one line and returns the exit code. It stays
// told to stop: a second signal cuts nothing short.
func Execute(root *cobra.Command, stderr io.Writer) int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP) // the terminal was closed
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(flagError)
	strictDefaults(root)
	unknown := strictHelp(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = *unknown
	}
	var usage *app.UsageError
	var coded *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		if coded.text != "" {
			fmt.Fprintln(stderr, errorLine(coded.text))
		}
		return coded.code
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, root.Name()+": interrupted")
		return exitFailed
	}
	fmt.Fprintln(stderr, errorLine(root.Name()+": "+strings.TrimPrefix(err.Error(), root.Name()+": ")))
	// What cobra itself says of arguments begins so.
	if errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "accepts ") {
		return exitUsage
	}
	return exitFailed
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

// sources are where settings come from, the strongest first. A name that is no setting is told, whether it stands in the environment or the file.
func (s *shared) sources() ([]app.Source, error) {
	file, names, err := app.File(s.config)
	if err != nil {
		return nil, err
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	for _, name := range app.Unknown(names) {
		fmt.Fprintln(s.err, errorLine("oncepay: "+name+" is no setting of this version and means nothing; `oncepay config` lists them"))
	}
	flags := func(name string) (string, bool) {
		f := s.root.PersistentFlags().Lookup(app.FlagOf(name))
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
