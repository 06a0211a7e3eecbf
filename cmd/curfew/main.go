package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
)

// version is set by the linker for a release.
var version = ""

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitUnhealthy   = 4
	exitUnconfirmed = 5
	exitAborted     = 6
)

// unhealthyError is the answer of a Curfew that does not do all it should.
type unhealthyError struct{ error }

// confirmationError is what has to be asked for with more words.
type confirmationError struct{ error }

// usageError is a wrong command line or environment.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "curfew:", visible(err.Error(), "\n\t"))
	return exitCode(err)
}

func exitCode(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok && r.status == http.StatusNotFound {
		return exitNotFound
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[unhealthyError](err); ok {
		return exitUnhealthy
	}
	if _, ok := errors.AsType[confirmationError](err); ok {
		return exitUnconfirmed
	}
	return exitFailed
}

const introduction = `AMQP 0-9-1 broker whose message deadlines fire on time, with nobody consuming. Without a command it serves.

Exit codes: 0 done; 1 failed, or the answer is no; 2 the command line or a variable is wrong; 3 what was asked for
does not exist; 4 (status) the running one is degraded or dead; 5 a purge wants --confirm with the number of messages;
6 (serve) ended by SIGABRT, as systemd's watchdog does, or SIGQUIT, with the stacks of all goroutines on stderr.`

func rootCommand() *cobra.Command {
	serve := serveCommand()
	root := &cobra.Command{
		Use:           "curfew",
		Short:         "AMQP 0-9-1 broker whose message deadlines fire on time, with nobody consuming",
		Long:          introduction,
		Args:          unknownCommand,
		RunE:          serve.RunE,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(serve, demoCommand(), configCommand(), healthcheckCommand(), versionCommand())
	for _, cmd := range root.Commands() {
		cmd.Args = noArguments
	}
	root.AddCommand(alertCommand(), storeCommand(), benchCommand(), policyCommand(), definitionsCommand(), userCommand(), injectCommand(),
		statusCommand(), deadlinesCommand(), queueCommand(), dlqCommand(), auditCommand())
	addExamples(root)
	return root
}
