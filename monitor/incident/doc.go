// Package alert notifies people and programs of what becomes of deadlines.
//
// What happens per message is added up per incident: what happened, to which queue. There is one
// notification when an incident begins and one when it is over, each with the count, the first and
// the last deadline and the worst lateness. So a storm of a million expiries in a queue is two
// readable messages.
//
//	Record ─► tracker: incident ─► rule ─► delivery ─┬─► log
//	                      silences ┘                 ├─► outbox ─► webhook, AMQP, a service of shoutrrr
//	                                                 └─► manager ─► Alertmanager
//
// An incident begins with its first event, and is notified of a second later, if the rule's count
// and lateness are reached. It is over when nothing has happened for a minute. A state
// (ScheduleDegraded, AtRisk) is over when its end is recorded. At most 20 incidents are notified of
// at once, and 20 a minute, the worst first; one notification says how many more there are
// (ManyAlerts). Whoever was sent the beginning is sent the end. Alertmanager is sent everything,
// again and again. Counts begin with the incident; those of HeldPastDeadline are of what is held
// now, if that is known (Options.Holders).
//
// # The alerts file
//
// One YAML file has the sinks, the rules, links and the dead man's switch; see
// deploy/alerts.yaml. An event goes to the first rule that matches it. The rule has its
// sinks and severity, and the number of messages and the lateness from which it
// notifies. An event that no rule matches goes to every sink. The log gets every notification.
//
// When the file or a file that it names changes, it is put in force: sinks begin, change
// and end with it. A file with mistakes is not put in force, and Health reports that; the
// previous one stays in force. If there is none, at a start, every event goes to every sink
// that has no mistake. Deadlines are kept either way, and too many notifications are better
// than none.
//
// # Sinks
//
// A sink is a URL, and its scheme is its kind (sink.go). The URL of a sink is never logged
// or shown, and its parts are removed from errors: in most URLs one part is the token.
// There is no restriction on where a sink may be: whoever writes the settings could run any
// program anyway.
//
// The library behind the services takes no context, so each service has at most one
// goroutine. A notification without an answer after 30 s counts as failed. The request may
// still arrive, and then the notification arrives twice.
//
// # Guarantees
//
// Recording never waits for I/O and does not allocate for a known incident. There are at
// most 1,000 incidents; further events are added up under the queue "_other", and further
// states are left out. At most 1,000 notifications wait for a sink, only the newest of
// each alert; further ones are counted. A notification
// is tried for half an hour, with pauses that grow to a minute and vary by half at random; a
// webhook's Retry-After is obeyed. An answer 4xx other than 408 and 429 ends the attempts,
// if the library reports the status; Slack's webhook reports a refusal differently, so it is
// retried. A receiver may get a notification twice. Silences survive a restart, if there is a
// directory. Nothing else does, and what was not sent is logged at the end of Run. A sink
// that fails for a minute shows in Health.
//
// # Left to others
//
// The monitor finds out what happens. Alertmanager inhibits: the labels it routes by are on
// every alert.
package incident
