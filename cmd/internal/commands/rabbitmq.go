package commands

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/settings"
	"curfew/monitor/rabbitmq"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/plan"
)

// seenTimeout is how long a running Curfew may take to answer what it has seen.
const seenTimeout = 5 * time.Second

func rabbitmqCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rabbitmq",
		Short: "Show how deadlines are or can be kept in RabbitMQ beside Curfew",
		RunE:  cli.Group,
	}
	c.AddCommand(rabbitmqPlanCommand(), rabbitmqStatusCommand(),
		rabbitmqTurnCommand("pause", "Give back all that is held in RabbitMQ, and keep no queue until resume", "paused: all that was held goes back"),
		rabbitmqTurnCommand("resume", "Keep queues again after a pause", "resumed: queues are kept again"))
	return c
}

const rabbitmqPlanHelp = `Print how the deadlines of each queue of RabbitMQ can be kept, what that costs and what needs no keeping. It changes nothing.

CURFEW_PRIMARY_URL names the RabbitMQ and the virtual host, CURFEW_PRIMARY_API_URL its management API, and CURFEW_WATCH the
queues to keep.

DEADLINES is exact (RabbitMQ keeps them by itself), kept (Curfew can), not_worth or refused. OBSERVED is single if Curfew can
tell for each message whether it missed its deadline, or totals. TTL is the time to live that the queue sets, and those of
messages that a running Curfew has seen; unknown: messages were not watched. The running Curfew is named by --url
or the environment, as for other commands.

--emit prints what an operator has to set up instead of the table: Curfew's user and permissions, and with --gateway the
queues, policies, upstream and shovels that make messages of these queues wait in Curfew. The output for a gateway contains
the password in --curfew-url. With --retry there are the exchanges, queues and policies that mode retry needs for these work queues, or, where
RabbitMQ's own delayed retry waits just as long, its policy.

--from-definitions and --delay ask no RabbitMQ. They print definitions to import: in place of each exchange of the delayed-message
plugin (x-delayed-message) what mode delay needs. Notes are on standard error.`

func rabbitmqPlanCommand() *cobra.Command {
	var emit, from, version string
	var delayed []string
	var o plan.SetupOptions
	c := &cobra.Command{
		Use:   "plan",
		Short: "Print how the deadlines of each queue of RabbitMQ can be kept, and what to set up",
		Long:  rabbitmqPlanHelp,
		Example: `  curfew rabbitmq plan
  curfew rabbitmq plan --emit rabbitmqctl > setup.sh
  curfew rabbitmq plan --from-definitions old.json > new.json
  curfew rabbitmq plan --delay orders=topic --rabbitmq-version 4.3 > delays.json
  curfew rabbitmq plan --emit definitions --retry jobs,mail > retries.json
  curfew rabbitmq plan --emit definitions --gateway orders --curfew-url amqp://app:secret@curfew:5672`,
		Args: cli.NoArguments,
	}
	a := cli.WithAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if emit != "" && !slices.Contains(plan.Formats, emit) {
			return cli.Usagef("--emit: unknown format %q: want one of %s", emit, strings.Join(plan.Formats, ", "))
		}
		if from != "" || len(delayed) > 0 {
			return printDelayed(cmd, from, delayed, version)
		}
		if emit == "" && len(o.Gateway) > 0 {
			return cli.Usagef("--gateway needs --emit")
		}
		if emit == "" && len(o.Retry) > 0 {
			return cli.Usagef("--retry needs --emit")
		}
		p, err := makePlan(cmd, a)
		if err != nil {
			return err
		}
		if emit == "" {
			return printPlan(cmd, a, p)
		}
		setup, err := p.Setup(o)
		if err != nil {
			return err
		}
		if emit == "definitions" { // a file of these has no room for notes
			for _, note := range setup.Notes {
				fmt.Fprintln(cmd.ErrOrStderr(), note)
			}
		}
		return setup.Emit(cmd.OutOrStdout(), emit)
	}
	flags := c.Flags()
	flags.StringVar(&emit, "emit", "", "print what to set up, for "+strings.Join(plan.Formats, ", "))
	flags.StringVar(&o.User, "curfew-user", "curfew", "Curfew's user in RabbitMQ")
	flags.StringSliceVar(&o.Gateway, "gateway", nil, "queues whose messages are to wait in Curfew")
	flags.StringSliceVar(&o.Retry, "retry", nil, "work queues whose rejected messages are to wait and come back")
	flags.StringVar(&o.CurfewURL, "curfew-url", "", "where RabbitMQ reaches Curfew's own broker, with user and password")
	flags.StringVar(&from, "from-definitions", "", "file of definitions whose exchanges of the delayed-message plugin to rewrite")
	flags.StringSliceVar(&delayed, "delay", nil, "delayed exchanges to set up in the virtual host /, such as orders=topic")
	flags.StringVar(&version, "rabbitmq-version", "4.3", "version of the RabbitMQ that is to import the definitions")
	cli.Offers(c, "emit", plan.Formats...)
	return c
}

// printDelayed prints definitions with what mode delay needs.
func printDelayed(cmd *cobra.Command, from string, delayed []string, version string) error {
	var more []plan.DelayedExchange
	for _, one := range delayed {
		name, kind, ok := strings.Cut(one, "=")
		if !ok || name == "" || kind == "" {
			return cli.Usagef("--delay: %q is invalid: want the name and the type of an exchange, such as orders=topic", one)
		}
		more = append(more, plan.DelayedExchange{VHost: "/", Name: name, Type: kind})
	}
	var in io.Reader
	if from != "" {
		file, err := os.Open(from)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	notes, err := plan.Delayed(cmd.OutOrStdout(), in, more, cluster.Server{Product: "RabbitMQ", Version: version})
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
	return nil
}

// makePlan asks the RabbitMQ that the settings name, and a running Curfew what it has seen of messages.
func makePlan(cmd *cobra.Command, a *cli.API) (*plan.Plan, error) {
	s, err := settings.Load()
	if err != nil {
		return nil, err
	}
	if s.PrimaryURL == "" {
		return nil, cli.Usagef("CURFEW_PRIMARY_URL is not set: set it to the address of RabbitMQ, such as amqp://user:password@host:5672/vhost")
	}
	watch, err := s.WatchRules()
	if err != nil {
		return nil, err
	}
	primary := s.Primary()
	primary.Name = "curfew rabbitmq plan"
	c, err := cluster.Open(primary)
	if err != nil {
		return nil, err
	}
	names, patterns := watch.Names()
	inventory, err := c.Inventory(cmd.Context(), names, "")
	if err != nil {
		return nil, err
	}
	seen, unseen, err := whatWasSeen(cmd, a, inventory)
	if err != nil {
		return nil, err
	}
	inventory.Seen = seen
	exchanges, bindings, unknown := c.Topology(cmd.Context())
	p := plan.New(inventory, exchanges, bindings, unknown, watch)
	p.User = c.Address.User()
	if len(inventory.Queues) == 0 && len(patterns) > 0 && unknown != nil {
		p.Notes = append(p.Notes, "patterns such as "+patterns[0]+" match nothing without the management API")
	}
	if unseen != "" {
		p.Notes = append(p.Notes, "Which times to live messages have is not known: "+unseen)
	}
	return p, nil
}

// whatWasSeen asks a running Curfew what it has seen of messages, by queue. why is the reason if nothing is known. That is an error
// only if a flag named that Curfew.
func whatWasSeen(cmd *cobra.Command, a *cli.API, i *cluster.Inventory) (seen map[string]cluster.TTLStats, why string, err error) {
	e, err := a.Endpoint()
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), seenTimeout)
	defer cancel()
	var status rabbitmq.Status
	switch err := a.Call(ctx, http.MethodGet, cli.Path("curfew", "rabbitmq"), nil, &status); {
	case err != nil && cmd.Flags().Changed("url"):
		return nil, "", err
	case err != nil:
		return nil, "no Curfew answers at " + e.URL + " that runs beside this RabbitMQ and could have seen them. If one runs, give its address with --url.", nil
	case status.Cluster != i.Server.Cluster || status.VHost != i.VHost:
		return nil, fmt.Sprintf("the Curfew at %s is beside virtual host %s of cluster %s, and this is %s of %s.", e.URL,
			status.VHost, cli.OrDash(status.Cluster), i.VHost, i.Server.Cluster), nil
	}
	seen = map[string]cluster.TTLStats{}
	for _, q := range status.Queues {
		if q.Seen != nil {
			seen[q.Queue] = *q.Seen
		}
	}
	return seen, "", nil
}

func printPlan(cmd *cobra.Command, a *cli.API, p *plan.Plan) error {
	var rows [][]string
	for _, r := range p.Rows {
		observed := "single"
		if r.Untappable != "" {
			observed = "totals"
		}
		rows = append(rows, []string{r.Queue, cli.OrDash(r.Type), r.TTLs(), strconv.FormatInt(r.Ready+r.Unacked, 10), strconv.Itoa(r.Consumers), cli.OrDash(r.Rule),
			string(r.Deadlines), observed, cli.OrDash(r.Cost.String()), strings.TrimSpace(r.Reason + " " + r.Instead)})
	}
	if err := a.Print(cmd.OutOrStdout(), p, []string{"QUEUE", "TYPE", "TTL", "MESSAGES", "CONSUMERS", "RULE", "DEADLINES", "OBSERVED", "COST", "WHY"}, rows); err != nil || a.JSON() {
		return err
	}
	for _, note := range remarks(p) {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), note); err != nil {
			return err
		}
	}
	return nil
}

// remarks are the notes for which the table has no room: each once, with its queues.
func remarks(p *plan.Plan) (list []string) {
	about := map[string][]string{}
	var order []string
	add := func(text, queue string) {
		if text == "" {
			return
		}
		if about[text] == nil {
			order = append(order, text)
		}
		about[text] = append(about[text], queue)
	}
	for _, r := range p.Rows {
		for _, text := range r.Mind {
			add(text, r.Queue)
		}
		add(r.Topology, r.Queue)
		if r.Untappable != "" {
			add("Observed by totals: "+r.Untappable, r.Queue)
		}
	}
	for _, text := range order {
		list = append(list, strings.Join(about[text], ", ")+": "+text)
	}
	return append(list, p.Notes...)
}
