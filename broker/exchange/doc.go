// Package exchange decides which destinations a message goes to. It is pure: it has no
// lock, clock, goroutine or I/O.
//
// A Router holds the bindings of one exchange. It is generic over the destination, so that the
// broker binds its own queue and exchange pointers and gets them back without a lookup:
//
//	            Bind / Unbind / UnbindAll
//	                      │
//	          ┌───────────▼───────────┐
//	          │   table of bindings   │   identity of a binding = destination, key, arguments
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
//   - One Route appends a destination at most once, however many of its bindings match.
//   - Bind and Unbind are symmetric: every binding must be removed separately. After that
//     nothing is left of them, not even an empty trie node.
//   - Route of a direct, fanout or topic exchange does not allocate if out has room. One
//     exception: a topic exchange on which more than 16384 destinations have several patterns
//     each allocates a small bitmap.
//   - The time of topic matching is proportional to the number of trie nodes that can match at
//     some word of the key, even for patterns with many '#'.
//
// # Left to others
//
// Exchange-to-exchange bindings, alternate exchanges, the default exchange, permissions,
// locking and persistence belong to the broker. Route may run concurrently with Route;
// whoever changes bindings must prevent routing during the change.
package exchange
