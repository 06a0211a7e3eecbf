// Package alert notifies people and programs of what becomes of deadlines.
//
// What happens per message is added up per incident (what happened, to which queue, with
// which action). Incidents are put into groups, and each notification is about a group. So
// a storm of a million expiries is a few readable messages with counts, the first and the
// last deadline, the worst lateness and the queues with the most of them.
//
//	Record ─► tracker: incident ─► rule ─► group ─► delivery ─┬─► log
//	                               silences ─────────┘        ├─► outbox ─► webhook, AMQP, a service of shoutrrr
//	                                                          └─► manager ─► Alertmanager
//
// An incident is over when nothing has happened for the group interval. A state
// (ScheduleDegraded, AtRisk) is over when its end is recorded. The first
// notification of a group is sent after the group's wait; the next ones no more often than
// the interval, and only with news: another incident, ten times as many messages as last
// time, or one that is over. Without news it is sent again after the repeat interval.
// Counts begin with the incident; those of HeldPastDeadline are of what is held now, if that is
// known (Options.Holders).
//
// # The alerts file
//
// One YAML file has the sinks, the rules, links and the dead man's switch; see
// deploy/alerts.yaml. An event goes to the first rule that matches it. The rule has its
// sinks, severity and grouping, and the number of messages and the lateness from which it
// notifies. An event that no rule matches goes to every sink. With group none every message
// is a notification, within the rate limit; messages beyond it go into a digest, and no
// notification says that such a message is "over". The log gets every notification.
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
// goroutine. A notification without an answer after 30 s counts as failed. Where the
// library takes an HTTP client (ntfy, PagerDuty, Discord, Rocket.Chat, Pushover), its
// request is cancelled then. Elsewhere the request may still arrive, and the notification
// arrives twice.
//
// # Guarantees
//
// Recording never waits for I/O and does not allocate for a known incident. There are at
// most 1,000 incidents; further events are added up under the queue "_other", and further
// states are left out. At most 1,000 notifications wait for a sink, only the newest of
// each group; further ones are counted, and the count is sent when there is room. A notification
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
package alert
