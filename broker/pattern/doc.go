// Package pattern matches names against the regular expressions in policies and
// permissions. A pattern matches anywhere in a name, unless it is anchored.
//
// RabbitMQ uses PCRE, which tries one way after the other and can take years for an unlucky
// name. Here Go's regexp matches, in time proportional to the name and to the expression.
//
// # Look-ahead
//
// Go's regexp has no look-ahead, but policies that leave names out are written with it. Where
// a look-ahead stands at a fixed place in the name, it is matched by itself:
//
//	^orders\.(?!dead$).*    is    ^orders\..*    and not    ^orders\.(?:dead$)
//
// Everything else that PCRE has and Go's regexp has not is refused, with the reason and what
// to write instead.
//
// # Filters
//
// Most patterns require some text in the name. That is looked for first, since it takes a
// hundredth of the time of a match: a start matches all names with all policies.
//
// The package is pure and safe for concurrent use.
package pattern
