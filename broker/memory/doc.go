// Package memory bounds what clients make the broker use: a Budget of memory that they share, and an Alarm by which
// publishers wait while memory or disk run low.
//
// # Budget
//
// A Budget accounts for what clients make the broker hold besides messages in queues:
// unfinished publishes, channels, consumers and their arguments, unsent frames, bodies of
// HTTP requests. Each connection and each request has an Account and draws from one Budget
// before it reads or keeps anything.
//
// When the Budget is used up one account must give way: the largest one of the user who
// holds most. So whoever floods the broker pays for it, and others go on. The account that
// asks may be the one that gives way.
//
// Messages in queues are not counted there. They are covered by the memory limit, which is
// measured (Alarm.Reason); a Budget is a small part of that limit.
//
// # Alarm
//
// An Alarm measures the memory of the process and the free disk space several times a second while somebody publishes, and
// otherwise once a second (RabbitMQ: Memory and Disk Alarms). The memory alarm is raised at the limit and cleared some way
// below it, so that it does not flutter. What the store reports, a full disk or no free file descriptors, takes effect at
// once. The alarm's lock is a leaf.
//
// # Shrinker
//
// A Shrinker lets queues that have become empty release memory. It has a timer only while something is empty.
//
// Left to others: blocking publishers (package broker and its servers), and what clients may declare while memory is low
// (topology).
package memory
