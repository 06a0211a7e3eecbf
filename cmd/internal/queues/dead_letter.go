package queues

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/cmd/internal/cli"
	"curfew/monitor/printable"
)

// wholeLetter is a single dead letter.
type wholeLetter struct{ deadletters.Whole }

func (d *deadLetters) show() *cobra.Command {
	raw := false
	c := &cobra.Command{
		Use:   "show <queue> <seq>",
		Short: "Show one dead letter: its properties, its deaths and its body",
		Long: "Show one dead letter: its properties, its deaths and its body, unpacked if its content-encoding is gzip, deflate or zstd, and JSON on\n" +
			"many lines. With --raw it writes only the body, byte for byte as it was sent.",
		Example: `  curfew dlq show orders.dead 17
  curfew dlq show orders.dead 17 --raw > body`,
		Args: cli.Exactly(2, "a queue and the number of a message (curfew dlq peek)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := messageNumber(args[1])
			if err != nil {
				return err
			}
			var l wholeLetter
			path := cli.Path("curfew", "deadletters", d.VHost, args[0], "messages", strconv.FormatUint(seq, 10))
			if err := d.Call(cmd.Context(), http.MethodGet, path, nil, &l); err != nil {
				return err
			}
			switch {
			case raw:
				return l.writeBody(cmd.OutOrStdout())
			case d.JSON():
				return d.Print(cmd.OutOrStdout(), l.Whole, nil, nil)
			}
			return l.write(cmd.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "write only the body, as it was sent")
	return c
}

// writeBody writes the body as it was sent.
func (l *wholeLetter) writeBody(out io.Writer) error {
	if l.Truncated {
		return errors.New("the body is larger than 16 MiB: use curfew dlq export --filter 'seq == NUMBER'")
	}
	body, err := bodyOf(l.Payload, l.Encoding)
	if err == nil {
		_, err = out.Write(body)
	}
	return err
}

func bodyOf(payload, encoding string) ([]byte, error) {
	if encoding == "base64" {
		return base64.StdEncoding.DecodeString(payload)
	}
	return []byte(payload), nil
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// write writes all of it for people.
func (l *wholeLetter) write(out io.Writer) error {
	lines := tabwriter.NewWriter(out, 18, 0, 2, ' ', 0)
	line := func(name string, value any) {
		fmt.Fprintf(lines, "%s\t%s\n", printable.Text(name, ""), printable.Text(fmt.Sprint(value), ""))
	}
	line("number", fmt.Sprintf("%d, %s", l.Seq, l.State))
	line("came here by", fmt.Sprintf("exchange %q, key %q", l.Exchange, l.RoutingKey))
	for _, name := range slices.Sorted(maps.Keys(l.Properties)) {
		if headers, ok := l.Properties[name].(map[string]any); ok {
			for _, header := range slices.Sorted(maps.Keys(headers)) {
				if header != "x-death" { // shown below
					line("header "+header, headers[header])
				}
			}
			continue
		}
		line(name, l.Properties[name])
	}
	for i := range l.Deaths { // the newest first
		death := &l.Deaths[i]
		line("died", fmt.Sprintf("%s of %q in %q, %s, published to %q with %q%s", when(death.Time), death.Reason, death.Queue,
			english.Plural(int(death.Count), "time", ""), death.Exchange, death.Keys, timeToLive(death)))
	}
	payload, encoding := l.Payload, l.Encoding
	if l.Unpacked != nil && l.Unpacked.Error == nil {
		payload, encoding = l.Unpacked.Payload, l.Unpacked.Encoding
		line("body", fmt.Sprintf("%d bytes, unpacked below", l.Bytes))
	} else {
		line("body", fmt.Sprintf("%d bytes", l.Bytes))
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	body, err := bodyOf(payload, encoding)
	if err != nil {
		return err
	}
	if encoding == "base64" {
		fmt.Fprintf(out, "\n(base64) %s\n", payload)
		return nil
	}
	if pretty, ok := deadletters.Indent(body); ok {
		body = pretty
	}
	_, err = fmt.Fprintf(out, "\n%s\n", printable.Text(string(body), "\n\t"))
	return err
}

// timeToLive is the message's own time to live, or deadline, before that death.
func timeToLive(death *deadletters.Death) string {
	if ms, err := strconv.ParseInt(death.Expiration, 10, 64); err == nil {
		return " and a time to live of " + cli.Span(time.Duration(ms)*time.Millisecond)
	}
	if death.ExpiresAt != 0 {
		return ", to expire at " + time.UnixMilli(death.ExpiresAt).UTC().Format(time.RFC3339)
	}
	return ""
}
