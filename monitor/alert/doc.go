// Package alert tells people and programs of missed deadlines.
//
// What happens per message is added up per incident (what happened, to which queue,
// with which action), incidents are told in groups, and a group is one notification: a
// storm of a million expiries is a few readable messages with counts, first and last
// deadline, worst lateness and the queues with most of them.
//
//	Record ─► incident ─► rule ─► group ─┬─► log
//	                                     ├─► outbox ─► webhook, Slack, PagerDuty, CloudEvents, AMQP
//	                                     └─► manager ─► Alertmanager
//
// An incident is over when nothing happened for the group interval; a state
// (ScheduleDegraded; InstanceSilent, AtRisk) when that is said. A group is told when it
// has waited, then no more often than the interval and only when there is news: another
// incident, ten times as many messages as were told before, one over; and without news
// after the repeat interval. Counts are since the incident began.
//
// # Rules
//
// The first rule that matches an event takes it: its sinks, severity, grouping, the
// number of messages and the lateness from which it is told. What no rule takes goes to
// every sink there is. With group none, every message is told for itself within the
// rate limit, and what is beyond that as a digest; nothing tells that such a message is
// "over". The log is told whatever is told. A file of rules that changes is put in
// force; one with mistakes is not, and shows in Health: what was in force before still is,
// and at a start everything goes to every sink. Deadlines are kept either way, and to be
// told too much is better than to be told nothing.
//
// # Where sinks may connect to
//
// An address is judged when it is connected to, after the name was resolved, so a name
// that changes its address gains nothing. What the operator wrote decides what is meant:
//
//   - Public addresses: with https. With http only if the host is listed in Allow.
//   - Addresses inside (loopback, RFC 1918, RFC 6598, RFC 4193): with http or https,
//     if the host of the URL is an address, has no dot (alertmanager), or ends so that it
//     cannot be public (.local, .internal, .svc, .svc.cluster.local, .lan,
//     .home.arpa, .localhost). So an Alertmanager beside this process or in its cluster
//     needs no further setting, and hooks.example.com that resolves to 10.0.0.1 is
//     refused until it is listed.
//   - Link-local (a cloud's metadata), multicast and unspecified addresses: only if the
//     address is listed.
//
// No redirect is followed, an answer is read up to 64 KiB and waited for 5 s. A proxy of
// the environment (HTTPS_PROXY) is used, and is judged in place of what is behind it.
//
// # Guarantees
//
// Recording never waits for I/O and does not allocate for a known incident. There are
// at most 1,000 incidents, beyond which events are added up under the queue "_other"
// (and a state is not told). At most 1,000 notifications wait for a sink, of a group the
// newest only, beyond which they are counted and the count is sent when there is room. A
// notification is tried for half an hour, with pauses that grow to a minute, random by
// half; Retry-After is obeyed. Silences survive a restart, if there is a directory;
// nothing else does, and what was not told yet is logged at the end of Run. A sink that
// fails for a minute shows in Health.
//
// Finding out what happens is the monitor's; inhibition, and sinks of the same kind for
// several teams, are Alertmanager's: what it routes by are labels of every alert. Sinks
// that came and went with the file of rules would each need an outbox of their own life.
package alert
