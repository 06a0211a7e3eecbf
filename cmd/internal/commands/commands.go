package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"

	"github.com/spf13/cobra"

	"curfew/broker/operate"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/node"
	"curfew/cmd/internal/queues"
	"curfew/cmd/internal/settings"
	"curfew/monitor/printable"
)

const (
	exitFailed      = 1
	exitUsage       = cli.ExitUsage
	exitNotFound    = 3
	exitUnhealthy   = cli.ExitUnhealthy
	exitUnconfirmed = cli.ExitUnconfirmed
	exitAborted     = 6
)

// Run executes one command line and returns the exit code. set is what the linker has set, or empty.
func Run(ctx context.Context, set node.Build, args []string, stdout, stderr io.Writer) int {
	root := Tree(node.BuildOf(set))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "curfew:", printable.Text(err.Error(), "\n\t"))
	return exitCode(err)
}

func exitCode(err error) int {
	if r, ok := errors.AsType[*cli.Error](err); ok && r.Status == http.StatusNotFound {
		return exitNotFound
	}
	if e, ok := errors.AsType[cli.Exit](err); ok {
		return e.Code
	}
	if _, ok := errors.AsType[settings.Error](err); ok {
		return exitUsage
	}
	return exitFailed
}

const introduction = `AMQP 0-9-1 broker whose message deadlines fire on time, with nobody consuming.
"curfew serve" runs it; the other commands are for a running Curfew.

Exit codes: 0 done; 1 failed, or the answer is no; 2 the command line or a variable is wrong; 3 what was asked for
does not exist; 4 (status) the running one is degraded or dead; 5 a deletion wants --confirm with the number of messages;
6 (serve) ended by SIGABRT, as systemd's watchdog does, or SIGQUIT, with the stacks of all goroutines on stderr.`

// Tree is all commands.
func Tree(b node.Build) *cobra.Command {
	root := &cobra.Command{
		Use:           "curfew",
		Short:         "AMQP 0-9-1 broker whose message deadlines fire on time, with nobody consuming",
		Long:          introduction,
		Version:       fmt.Sprint(b.Version, " ", runtime.Version(), " ", b.Revision), // for --version
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("curfew {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.Usage(err) })
	root.AddCommand(serveCommand(b), demoCommand(), configCommand(), healthcheckCommand(), versionCommand(b))
	for _, cmd := range root.Commands() {
		cmd.Args = cli.NoArguments
	}
	root.AddCommand(storeCommand(), definitionsCommand(), injectCommand(b.Version),
		statusCommand(), queues.History(), auditCommand(), rabbitmqCommand(), queues.Publish(), queues.Get(), queues.Declare(), queues.Bind(), queues.Unbind())
	root.AddCommand(topCommand(func(ctx context.Context, out io.Writer, args []string) error {
		again := Tree(b)
		again.SetArgs(args)
		again.SetOut(out)
		again.SetErr(out)
		return again.ExecuteContext(ctx)
	}))
	families := cli.AddOperations(root, operate.All)
	addIncidents(families)
	queues.AddQueues(families)
	queues.AddDelete(families)
	queues.AddDeadLetters(families)
	addExamples(root)
	return root
}

func unknownCommand(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Usagef("unknown command %q; curfew help lists them", args[0])
	}
	return nil
}
