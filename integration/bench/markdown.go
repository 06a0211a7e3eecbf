package main

import (
	"fmt"
	"regexp"
	"strings"
)

// options matches the options of a load process, as its errors print them.
var options = regexp.MustCompile(` ?\{[^}]*\}`)

// goalsMarkdown returns the goals and what was measured, without the other figures.
func (r *report) goalsMarkdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s` at %s on %s, took %s: %s. Broker, load client and what else is measured share the processors, of which the machine's host took %s.\n\n",
		r.Command, r.Commit, r.Began.UTC().Format("2006-01-02 15:04 UTC"), r.Took, r.Machine, r.Stolen)
	if len(r.Goals) > 0 {
		b.WriteString("| Goal | Work | Wanted | Measured | Ratio | |\n|---|---|---|---|---|---|\n")
		for _, g := range r.Goals {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", g.Goal, g.What, g.Want, g.Got, g.Ratio, verdict(g.Met))
		}
		b.WriteString("\n")
	}
	for _, failed := range r.Failed {
		fmt.Fprintf(&b, "Not measured: %s\n\n", strings.ReplaceAll(options.ReplaceAllString(failed, ""), "\n", " "))
	}
	return b.String()
}

// markdown returns the whole report.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString(r.goalsMarkdown())
	if len(r.Rows) > 0 {
		b.WriteString("| | Work | Side | Rate, median (least-most) | Broker CPU a message | Client CPU | p50 / p99 | |\n|---|---|---|---|---|---|---|---|\n")
		for _, row := range r.Rows {
			b.WriteString(row.markdown())
		}
	}
	if len(r.Curves) > 0 {
		b.WriteString("\n![growth curves](curves.svg)\n")
	}
	return b.String()
}

func (r *row) markdown() string {
	rate, cpu, client, times := "", "", "", ""
	if len(r.Rate.Values) > 0 {
		least, most := r.Rate.spread()
		rate = fmt.Sprintf("%s/s (%s-%s)", short(r.Rate.median()), short(least), short(most))
	}
	if len(r.CPU.Values) > 0 {
		cpu = fmt.Sprintf("%.2f us", r.CPU.median())
	}
	if len(r.Client.Values) > 0 {
		client = fmt.Sprintf("%.2f us", r.Client.median())
	}
	if len(r.P50.Values) > 0 {
		times = fmt.Sprintf("%s / %s", micros(r.P50.median()), micros(r.P99.median()))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Item, r.Work, r.Side, rate, cpu, client, times, r.Note)
}
