package node

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/server"
	"curfew/monitor/incident"
	"curfew/monitor/printable"
)

const (
	// errorsFor is for how long a client must fail again and again: the instances of an application may all fail once as they start.
	errorsFor = 15 * time.Second
	// unroutedFor is for how long messages must reach no queue, with no pause of unroutedPause: a publisher may stop just after its queue is deleted.
	unroutedFor, unroutedPause = time.Minute, 30 * time.Second
)

// clientErrors are about the clients whose channels or connections are closed again and again: one for each application and reason.
func clientErrors(all map[server.ClientError]deadline.Repeat, now time.Time) (list []incident.Finding) {
	for e, r := range all {
		if !r.GoesOn(now, errorsFor) {
			continue
		}
		_, reason, _ := strings.Cut(e.Text, " - ")
		client, _, _ := strings.Cut(e.Client, " (user ")
		f := incident.Finding{
			Count: 1, Cause: printable.Text(cmp.Or(incident.Application(client), client)+" of the user "+e.User+", "+reason, ""), Left: incident.Application(e.Client), Do: advice(&e),
			Text: printable.Text(fmt.Sprintf("%s, %s in %s: %s", e.Client, printable.Plural(r.Count, "time"), printable.Span(now.Sub(r.Since).Truncate(time.Second)), reason), ""),
		}
		if i := slices.IndexFunc(list, func(o incident.Finding) bool { return o.Cause == f.Cause }); i >= 0 { // another client of the application
			f.Count, f.Text = f.Count+list[i].Count, min(f.Text, list[i].Text)
			list = slices.Delete(list, i, i+1)
		}
		list = append(list, f)
	}
	return list
}

// missing is the text of a 404.
var missing = regexp.MustCompile(`^NOT_FOUND - no (queue|exchange) '(.+)' in vhost '`)

// advice is what to do about an error of a client; "": what it says.
func advice(e *server.ClientError) string {
	switch found := missing.FindStringSubmatch(e.Text); {
	case found != nil:
		return fmt.Sprintf("Declare the %s, or correct the name that the client uses: `%s`", found[1], deadline.Command("curfew declare "+found[1], []string{found[2]}, "--vhost", e.VHost))
	case e.Code == amqp.AccessRefused:
		return "Give the user the right to it, or correct the name that the client uses. What the user may do: `" + deadline.Command("curfew user permissions list", nil, "--vhost", e.VHost) + "`"
	}
	return ""
}

// unrouted are about queues that were deleted, and to which somebody goes on publishing.
func unrouted(vh *broker.VHost, now time.Time) (list []incident.Finding) {
	all := vh.Former.List()
	slices.SortFunc(all, func(a, b broker.FormerRoute) int { return cmp.Compare(a.Count, b.Count) }) // of those of a queue, the last is told
	for _, r := range all {
		if !r.GoesOn(now, unroutedFor) || now.Sub(r.Last) > unroutedPause {
			continue
		}
		again := deadline.Command("curfew declare queue", []string{r.Queue}, "--vhost", vh.Name())
		from := "the default exchange"
		if r.Exchange != "" {
			from = "the exchange " + printable.Text(r.Exchange, "")
			again += " && " + deadline.Command("curfew bind", []string{r.Exchange, r.Queue}, "--key", r.Key, "--vhost", vh.Name())
		}
		list = append(list, incident.Finding{
			QueueName: incident.QueueName{VHost: vh.Name(), Name: r.Queue}, Cause: vh.Name() + " " + r.Queue, Count: r.Count, Toll: r.Count,
			Text: fmt.Sprintf("it was deleted %s ago, and %s to it by %s and the key %s since then reached no queue",
				printable.Span(now.Sub(r.Deleted).Truncate(time.Second)), printable.Plural(r.Count, "message"), from, printable.Text(r.Key, "")),
			Do: "Declare the queue as it was, or stop the publisher: `" + again + "`. `curfew history` says who deleted it.",
		})
	}
	return list
}
