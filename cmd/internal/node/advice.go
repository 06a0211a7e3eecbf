package node

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/policy"
	"curfew/monitor/incident"
	"curfew/monitor/printable"
)

// parkedIn is what is parked in a virtual host, which queues that comes from, and how to give their dead letters an exchange that is missing.
func parkedIn(p *undeliverable) incident.Depth {
	d := incident.Depth{QueueName: incident.QueueName{VHost: p.VHost, Name: policy.UndeliverableQueue}, Count: p.Messages}
	var why, missing []string // missing are exchanges
	sources, newest := deadletters.Sources(p.in, p.queue)
	onward := deadletters.Filter("").Onward(p.VHost)
	d.Newest = newest
	for _, s := range sources {
		text := "from " + printable.Text(s.Queue, "") // of a header that any publisher may have written
		if s.Missing {
			text += ", whose dead-letter exchange " + printable.Text(s.Exchange, "") + " does not exist"
		}
		if s.Missing && !slices.Contains(missing, s.Exchange) {
			missing = append(missing, s.Exchange)
		}
		if s.Missing && d.Do == "" {
			dead := s.Queue + ".dead"
			d.Do = "Declare the dead-letter exchange with the type that its users expect, and bind a queue to it; then send on what is parked, or purge it. For example: `" +
				deadline.Command("curfew declare exchange", []string{s.Exchange}, "--type", "fanout", "--vhost", p.VHost) + " && " +
				deadline.Command("curfew queue declare", []string{dead}, "--vhost", p.VHost) + " && " + deadline.Command("curfew bind", []string{s.Exchange, dead}, "--vhost", p.VHost) + " && " + onward + "`"
		}
		why = append(why, text)
	}
	if more := len(missing) - 1; more > 0 {
		d.Do += ". Missing as well: " + printable.Plural(int64(more), "more dead-letter exchange") + "."
	}
	if d.Do == "" {
		d.Do = "Declare the queue that is missing, or bind one to the exchange. Then send on what is parked, or purge it: `" + onward + "`"
	}
	d.Why = strings.Join(why[:min(len(why), 3)], "; ")
	return d
}

// keeping is how a queue without a dead-letter exchange keeps what expires in it. A queue obeys one policy, so the one that is proposed repeats
// what another sets for the queue, and goes before it.
func keeping(vh *broker.VHost, q *broker.Queue) string {
	name, queue := q.Name, printable.Text(q.Name, "")
	if q.Declared().Exclusive { // it is gone with its client, and often has another name the next time
		return "What expires in " + queue + " is lost. It is an exclusive queue: to keep that, its client declares it with x-dead-letter-exchange."
	}
	dead := strings.TrimPrefix(name, "amq.") + ".dead" // nobody may declare amq. names
	first, definition, note := "", policy.Definition{}, ""
	if _, err := vh.Queues.Get(dead); err != nil {
		first = deadline.Command("curfew queue declare", []string{dead}, "--vhost", vh.Name()) + " && "
	}
	governing, _, _ := q.Policies()
	p, governed := vh.Policies.Get(policy.User, governing)
	if governed {
		maps.Copy(definition, p.Definition) // which may be nil
		p.Priority++
		note = ". It repeats what the policy " + printable.Text(governing, "") + " sets, which no longer applies to this queue then."
	}
	definition["dead-letter-exchange"], definition["dead-letter-routing-key"] = "", dead
	set := deadline.Command("curfew policy set", []string{"keep-expired-" + name, "^" + regexp.QuoteMeta(name) + "$", operate.Plain(definition)},
		"--apply-to", "queues", "--priority", strconv.FormatInt(p.Priority, 10), "--vhost", vh.Name())
	return "To keep what expires in " + queue + " from now on: `" + first + set + "`" + note
}
