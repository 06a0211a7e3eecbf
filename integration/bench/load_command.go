package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"curfew/integration/bench/load"
)

// loadCommand is this program as `bench load`: it puts any broker under load.
func loadCommand() *cobra.Command {
	s := load.Spec{Warmup: time.Second}
	asJSON := false
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Put any AMQP broker under load and measure throughput, latency or lateness of deadlines",
		Long: `Publishes and consumes as fast as the broker can, or at --rate, and prints throughput, latency and the client's own CPU time.
It declares its own queues, named curfew.bench.*, and deletes them. Two runs at the same time share only the load.`,
		Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := load.Throughput(cmd.Context(), s)
			if err != nil && result.TotalPublished == 0 {
				return err
			}
			return cmp.Or(err, printResult(cmd.OutOrStdout(), asJSON, &result, func(w io.Writer) { printThroughput(w, &s, &result) }))
		},
	}
	f := cmd.Flags()
	cmd.PersistentFlags().StringVar(&s.URL, "url", "amqp://guest:guest@127.0.0.1:5672/", "broker, amqp:// or amqps://")
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	f.StringVar(&s.Client, "client", "raw", "raw (frames written and counted in place), raw10 (the same over AMQP 1.0) or amqp091 (the library amqp091-go)")
	f.IntVar(&s.Size, "size", 100, "octets of a body")
	f.IntVar(&s.Producers, "producers", 1, "connections that publish")
	f.IntVar(&s.Consumers, "consumers", 1, "connections that consume; 0: publish only")
	f.IntVar(&s.Queues, "queues", 0, "queues; 0: one for each producer")
	f.StringVar(&s.QueueType, "queue-type", "", "classic, classic-v2 or quorum; empty: the broker's default")
	f.StringVar(&s.Exchange, "exchange", "", "direct, topic or fanout; empty: the default exchange")
	f.BoolVar(&s.Persist, "persistent", false, "persistent messages in durable queues")
	f.IntVar(&s.Window, "confirm-window", 0, "most unconfirmed publishes of a producer; 0: no confirms")
	f.StringVar(&s.Ack, "ack", "each", "auto, each or multiple")
	f.IntVar(&s.Prefetch, "prefetch", 1000, "most unacked deliveries of a consumer; 0: no limit")
	f.IntVar(&s.Rate, "rate", 0, "messages a second of all producers; 0: as fast as possible")
	f.IntVar(&s.Backlog, "backlog", 50_000, "most messages sent and not yet consumed, including those that expired; 0: no limit")
	f.DurationVar(&s.TTL, "ttl", 0, "expiration of each message")
	f.DurationVar(&s.Warmup, "warmup", s.Warmup, "time before measuring begins; not used with --count")
	f.DurationVar(&s.Duration, "duration", 10*time.Second, "time to measure")
	f.IntVar(&s.Count, "count", 0, "end once this many messages are published and consumed, with an error if that takes longer than --duration; 0: end after --duration")
	cmd.AddCommand(loadDeadlinesCommand(&s, &asJSON))
	return cmd
}

func loadDeadlinesCommand(s *load.Spec, asJSON *bool) *cobra.Command {
	d := load.Deadlines{}
	cmd := &cobra.Command{
		Use:   "deadlines",
		Short: "Measure how late messages are dead-lettered from a queue that nobody consumes",
		Long: `Publishes one message with a long time to live and behind it many with short ones, in random order, to a queue without a
consumer, and consumes its dead letters. Lateness is measured twice: from the instant before a message was written plus its time to
live, which includes the way to the broker, and from the instant of its confirm plus its time to live.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.URL = s.URL
			result, err := d.Run(cmd.Context())
			if err != nil {
				return err
			}
			return printResult(cmd.OutOrStdout(), *asJSON, &result, func(w io.Writer) { printDeadlines(w, &result) })
		},
	}
	f := cmd.Flags()
	f.IntVar(&d.Rate, "rate", 1000, "deadlines a second")
	f.DurationVar(&d.Duration, "duration", 10*time.Second, "time to publish")
	f.DurationVar(&d.MinTTL, "min-ttl", 500*time.Millisecond, "shortest time to live")
	f.DurationVar(&d.MaxTTL, "max-ttl", 2500*time.Millisecond, "longest time to live")
	f.DurationVar(&d.Head, "head", time.Hour, "time to live of a message at the head of the queue; 0: no such message")
	f.IntVar(&d.Size, "size", 100, "octets of a body, at least 16")
	f.BoolVar(&d.Persist, "persistent", false, "persistent messages in durable queues")
	f.StringVar(&d.QueueType, "queue-type", "", "classic, classic-v2 or quorum; empty: the broker's default")
	f.DurationVar(&d.MaxWait, "wait", 10*time.Second, "how long after the last deadline to wait for missing messages; 0: 10s")
	return cmd
}

func printResult(w io.Writer, asJSON bool, result any, table func(io.Writer)) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	table(t)
	return t.Flush()
}

func printThroughput(w io.Writer, s *load.Spec, r *load.Result) {
	fmt.Fprintf(w, "published\t%.0f msg/s\t%.1f MB/s\n", r.Published, r.Published*float64(s.Size)/1e6)
	if s.Consumers > 0 {
		fmt.Fprintf(w, "consumed\t%.0f msg/s\t%.1f MB/s\n", r.Consumed, r.Consumed*float64(s.Size)/1e6)
	}
	if r.Nacked > 0 {
		fmt.Fprintf(w, "refused\t%d\t\n", r.Nacked)
	}
	printSummary(w, "latency", r.Latency)
	printSummary(w, "confirm after", r.ConfirmLatency)
	fmt.Fprintf(w, "client CPU\t%.2f us/msg\t\n", r.ClientCPU)
}

func printDeadlines(w io.Writer, r *load.DeadlinesResult) {
	fmt.Fprintf(w, "published\t%d, %.0f a second\n", r.Published, r.Rate)
	if r.Refused > 0 {
		fmt.Fprintf(w, "refused\t%d\n", r.Refused)
	}
	fmt.Fprintf(w, "dead-lettered\t%d, missing %d, early %d\n", r.Arrived, r.Missing(), r.Early)
	printSummary(w, "lateness, from the write", r.FromWrite)
	printSummary(w, "lateness, from the confirm", r.FromConfirm)
}

func printSummary(w io.Writer, what string, s *load.Summary) {
	if s != nil {
		fmt.Fprintf(w, "%s\tp50 %.2f ms\tp99 %.2f ms\tp99.9 %.2f ms\tmax %.2f ms\n", what, s.P50/1e3, s.P99/1e3, s.P999/1e3, s.Max/1e3)
	}
}
