// Package pattern matches names against the regular expressions that policies
// and permissions are written with. A pattern matches anywhere in a name unless
// it is anchored.
//
// RabbitMQ takes them as PCRE. Here an expression that Go's regexp understands is
// matched by it, in linear time, as long as that is sure to be cheap. All others
// are matched by backtracking: those with look-around, back references, possessive
// or atomic groups, and those that are large for the name (a{1,1000}).
//
// # Steps
//
// Backtracking can take longer than the universe has lasted, so it is counted, in
// steps of some 20 ns, and given up beyond a limit, as by PCRE's match limit. Steps
// and not time: how many a name takes depends on nothing but the expression and the
// name. So what was decided once is decided again, after a restart, on a slower
// machine and on one that stood still for a second.
//
// Why not the library's own matcher (regexp2, whose parser is used): it knows only a
// limit of time, by a clock that ticks every 100 ms.
//
// Pure and safe for concurrent use.
package pattern
