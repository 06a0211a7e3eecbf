package queues

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"curfew/broker/deadline"
	"curfew/cmd/internal/cli"
)

// publisher has the flags of publish.
type publisher struct {
	*cli.API
	exchange, key, file, deadline string
	headers                       []string
	ttl, delay                    time.Duration
	priority                      uint8
	transient                     bool
	text                          map[string]*string // properties that are texts, by their names in the API
}

const publishHelp = `Publish one message and wait until it is as safe as a confirm says. It goes to a queue, or with --exchange to an exchange.

The body is an argument, or the contents of --file, or else standard input. Bodies may be binary. The message is persistent unless
--transient is given.

If no queue took the message, that is an error (exit code 1), and the message is gone.`

// Publish is the command that publishes a message.
func Publish() *cobra.Command {
	c := &cobra.Command{
		Use:   "publish [queue] [body]",
		Short: "Publish a message, and print whether a queue took it",
		Long:  publishHelp,
		Example: `  curfew publish orders '{"customer": 7}' --ttl 30s
  curfew publish orders --file order.json --header tenant=globex --header attempt=2
  curfew publish --exchange events --key order.created --deadline 2030-01-01T08:00:00Z 'hello'`,
	}
	p := &publisher{API: cli.WithVHost(c), text: map[string]*string{}}
	f := c.Flags()
	f.StringVar(&p.exchange, "exchange", "", "publish to this exchange, instead of to a queue")
	f.StringVar(&p.key, "key", "", "routing key for the exchange")
	f.StringVarP(&p.file, "file", "f", "", "file with the body; - is standard input")
	f.StringArrayVar(&p.headers, "header", nil, "a header as "+cli.PairsHelp)
	f.DurationVar(&p.ttl, "ttl", 0, "time to live, such as 30s")
	f.StringVar(&p.deadline, "deadline", "", "the instant at which it expires (RFC 3339, such as 2006-01-02T15:04:05Z)")
	f.DurationVar(&p.delay, "delay", 0, "deliver it later by this time, such as 10m; its time to live counts from then")
	f.Uint8Var(&p.priority, "priority", 0, "priority, for queues with x-max-priority")
	f.BoolVar(&p.transient, "transient", false, "do not keep it over a restart")
	for flag, help := range map[string]string{
		"message-id": "", "correlation-id": "", "type": "", "reply-to": "", "app-id": "", "user-id": "; it has to be the user's own name",
		"content-type": ", such as application/json", "content-encoding": ", such as gzip",
	} {
		p.text[flag] = f.String(flag, "", "the property "+flag+help)
	}
	cli.OffersBy(c, "exchange", p.Completing("exchange"))
	c.ValidArgsFunction = cli.Arguments(p.Completing("queue"))
	c.Args = func(cmd *cobra.Command, args []string) error {
		if p.exchange != "" {
			return cli.Between(0, 1, "a body")(cmd, args)
		}
		return cli.Between(1, 2, "a queue and a body, or --exchange and a body")(cmd, args)
	}
	c.RunE = p.run
	return c
}

func (p *publisher) run(cmd *cobra.Command, args []string) error {
	exchange, key := p.exchange, p.key
	if exchange == "" {
		if key != "" {
			return cli.Usagef("--key needs --exchange: a queue is reached by its name")
		}
		exchange, key, args = "amq.default", args[0], args[1:]
	}
	body, err := p.body(cmd, args)
	if err != nil {
		return err
	}
	properties, err := p.properties()
	if err != nil {
		return err
	}
	send := map[string]any{"routing_key": key, "properties": properties, "payload": string(body), "payload_encoding": "string"}
	if !utf8.Valid(body) {
		send["payload"], send["payload_encoding"] = base64.StdEncoding.EncodeToString(body), "base64"
	}
	var answer struct {
		Routed bool `json:"routed"`
	}
	if err := p.Call(cmd.Context(), http.MethodPost, cli.Path("exchanges", p.VHost, exchange, "publish"), send, &answer); err != nil {
		return err
	}
	if p.JSON() || answer.Routed {
		if err := p.Say(cmd, answer, "confirmed"); err != nil || answer.Routed {
			return err
		}
	}
	if p.exchange == "" {
		return fmt.Errorf("no queue took it: queue %q does not exist (curfew queue list shows the queues; curfew declare queue declares one)", key)
	}
	return fmt.Errorf("no queue took it: exchange %q has no binding for the routing key %q", p.exchange, key)
}

// body is the body from the argument, the file or standard input.
func (p *publisher) body(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) > 0 {
		if p.file != "" {
			return nil, cli.Usagef("the body is an argument, or in --file, not both")
		}
		return []byte(args[0]), nil
	}
	if p.file == "" {
		if cli.OnTerminal(cmd.InOrStdin()) {
			return nil, cli.Usagef("there is no body: pass it as an argument, in --file, or on standard input (--file - reads it from the terminal)")
		}
		p.file = "-"
	}
	return cli.ReadFile(cmd, p.file)
}

// properties are those that the flags set, as the API takes them.
func (p *publisher) properties() (map[string]any, error) {
	headers, err := cli.Pairs("--header", p.headers)
	if err != nil {
		return nil, err
	}
	all := map[string]any{"delivery_mode": 2, "headers": headers}
	if p.transient {
		all["delivery_mode"] = 1
	}
	if p.priority > 0 {
		all["priority"] = p.priority
	}
	for flag, value := range p.text {
		if *value != "" {
			all[strings.ReplaceAll(flag, "-", "_")] = *value
		}
	}
	switch {
	case p.ttl < 0 || p.delay < 0:
		return nil, cli.Usagef("--ttl and --delay: want a duration such as 30s")
	case p.ttl > 0 && p.deadline != "":
		return nil, cli.Usagef("use either --ttl (how long it lives) or --deadline (until when), not both")
	case p.ttl > 0:
		all["expiration"] = strconv.FormatInt(int64(deadline.RoundUp(p.ttl)), 10)
	case p.deadline != "":
		at, err := deadline.ParseMillis(p.deadline)
		if err != nil {
			return nil, cli.Usagef("--deadline: %w", err)
		}
		headers["x-expires-at"] = at
	}
	if p.delay > 0 {
		headers["x-delay"] = deadline.RoundUp(p.delay)
	}
	return all, nil
}
