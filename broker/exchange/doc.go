// Package exchange decides which destinations a message goes to. It is pure: memory and
// arithmetic, no lock, clock, goroutine or I/O.
//
// A Router holds the bindings of one exchange. It is generic over the destination, so that the
// broker binds its own queue and exchange pointers and gets them back without a lookup:
//
//	            Bind / Unbind / UnbindAll
//	                      │
//	          ┌───────────▼───────────┐
//	          │ book: who is bound how │   identity of a binding = destination, key, arguments
//	          └───────────┬───────────┘
//	   first / last binding of a destination under a key
//	          ┌───────────▼───────────┐
//	Route ───►│ index of the kind      │───► destinations, each once
//	          └───────────────────────┘
//	   direct: key → destinations       fanout: one list
//	   topic:  trie over words          headers: compiled rules per destination
//
// # Guarantees
//
//   - A destination is appended at most once by one Route, through however many bindings.
//   - Bind and Unbind are symmetric: as many bindings as were added have to be removed, and after
//     that nothing is left of them, not even an empty trie node.
//   - Route of direct, fanout and topic does not allocate when out has room. The one exception is a
//     topic exchange where more than 16384 destinations have several patterns each: a small bitmap.
//   - Topic matching takes time in proportion to the trie nodes that can match at some word of the
//     key, also for patterns with many '#'.
//
// # Left to others
//
// Exchange-to-exchange traversal, alternate exchanges, the default exchange, permissions, locking
// and persistence are the broker's. Routing may run concurrently with routing; whoever changes
// bindings has to keep routing out meanwhile.
package exchange
