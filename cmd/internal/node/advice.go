package node

import (
	"fmt"
	"strings"

	"curfew/broker/deadletters"
	"curfew/broker/policy"
	"curfew/monitor/incident"
	"curfew/monitor/printable"
)

// parkedIn is what is parked in a virtual host, which queues that comes from, and how to give their dead letters an exchange that is missing.
func parkedIn(p *undeliverable) incident.Depth {
	d := incident.Depth{QueueName: incident.QueueName{VHost: p.VHost, Name: policy.UndeliverableQueue}, Count: p.Messages}
	var why []string
	for _, s := range deadletters.Sources(p.in, p.queue) {
		text := "from " + printable.Text(s.Queue, "") // of a header that any publisher may have written
		if s.Missing {
			text += ", whose dead-letter exchange " + printable.Text(s.Exchange, "") + " does not exist"
		}
		if s.Missing && d.Do == "" {
			dead := s.Queue + ".dead"
			d.Do = fmt.Sprintf("Declare the dead-letter exchange with the type that its users expect, and bind a queue to it; then replay or purge what is parked. For example: `curfew declare exchange %s --type fanout --vhost %s && "+
				"curfew queue declare %s --vhost %[2]s && curfew bind %[1]s %[3]s --vhost %[2]s`", printable.Shell(s.Exchange), printable.Shell(p.VHost), printable.Shell(dead))
		}
		why = append(why, text)
	}
	d.Why = strings.Join(why[:min(len(why), 3)], "; ")
	return d
}
