// Package incident judges what is wrong with Curfew and its queues, and tells people and programs.
//
// One table, Conditions, has all that can be wrong. Once a second each condition is looked for in a State, which whoever has the parts fills in
// (Options.Look). What is found is an Incident for as long as it lasts, with the queues that it is about folded in. Health, the status, the
// dashboard, the metric curfew_incident and the notifications all show these incidents, and judge nothing themselves.
//
//	Record ─► tallies ─┐
//	                   ├─► State ─► Evaluate: findings ─► tracker: incidents ─┬─► View, Verdict: every face
//	Options.Look ──────┘                                      acknowledged? ─┴─► rule ─► delivery ─┬─► log
//	                                                                                               └─► outbox ─► webhook, Alertmanager, AMQP, shoutrrr
//
// A notification is sent when an incident begins, when it has grown tenfold or become critical, which it stays, and when it is over. So a storm of a million
// expiries is a few readable messages. Incidents with the level Info are shown, and nobody is notified. Whoever was sent the beginning is sent
// the end. Alertmanager is sent what is open again and again.
//
// An expiry is a loss only in a queue for work: see Purpose. What becomes of the messages of a queue is one incident, with one number: they are
// parked, or a client held them, or nobody consumed them. When that changes the incident goes on under the other name, or ends and names the one that goes on.
// If the queue loses messages again soon after the end, the incident is back.
//
// # The alerts file
//
// One YAML file has the sinks, the rules, links and the dead man's switch; see
// deploy/alerts.yaml. An incident goes by the first rule that matches it. The rule has its
// sinks and severity, and the number of messages and the lateness from which it
// notifies. An incident that no rule matches goes to every sink. The log gets every notification.
//
// When the file or a file that it names changes, it is put in force: sinks begin, change
// and end with it. A file with mistakes is not put in force, and that is an incident; the
// previous one stays in force. If there is none, at a start, every incident goes to every sink
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
// Record never waits for I/O and does not allocate for a known queue. There are at most 1,000 tallies of queues; further ones are added up under
// the queue "_other". Of a condition there are at most 100 incidents. At most 1,000 notifications wait for a sink, only the newest of each
// incident; further ones are counted. A notification is tried for half an hour, with pauses that grow to a minute and vary by half at random; a
// webhook's Retry-After is obeyed. An answer 4xx other than 408 and 429 ends the attempts, if the library reports the status; Slack's webhook
// reports a refusal differently, so it is retried. A receiver may get a notification twice.
//
// Incidents, acknowledgements and maintenance windows survive a restart, if there is a directory. An incident of an earlier run that is not found
// again within some seconds (Condition.Returns) is over. What was not sent is logged at the end of Run. A sink that fails for a minute is an incident.
//
// # Left to others
//
// Other packages find out what happens. Alertmanager groups and inhibits: the labels that it routes by are on every alert.
package incident
