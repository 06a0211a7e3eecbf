// Package memory accounts for what clients make the broker hold besides messages in queues:
// unfinished publishes, channels, consumers and their arguments, unsent frames, bodies of
// HTTP requests. Each connection and each request has an Account and draws from one Budget
// before it reads or keeps anything.
//
// When the Budget is used up one account must give way: the largest one of the user who
// holds most. So whoever floods the broker pays for it, and others go on. The account that
// asks may be the one that gives way.
//
// Messages in queues are not counted here. They are covered by the memory limit, which is
// measured (broker.BlockedReason); a Budget is a small part of that limit.
package memory
