// Package pattern matches names against the regular expressions in policies and
// permissions. A pattern matches anywhere in a name, unless it is anchored.
//
// RabbitMQ uses PCRE. Here, an expression that Go's regexp understands is matched by Go's
// regexp, in linear time, as long as that is certain to be cheap. All other expressions are
// matched by backtracking: those with look-around, back references, possessive or atomic
// groups, and those that are too large (a{1,1000}).
//
// # Steps
//
// Backtracking can take longer than anybody can wait. So it is counted, in steps of about
// 20 ns, and given up beyond a limit, like PCRE's match limit. The limit is a number of
// steps, not a time: the number depends only on the expression and the name. So a decision
// made once comes out the same again, after a restart, on a slower machine, or on a machine
// that stood still for a second.
//
// The matcher of regexp2, the library whose parser is used, would not do: it has only a
// time limit, measured by a clock that ticks every 100 ms.
//
// The package is pure and safe for concurrent use.
package pattern
