// Package exchange decides which destinations a message goes to. It is pure: it has no
// lock, clock, goroutine or I/O.
//
// A Router holds the bindings of one exchange. It is generic over the destination, so that the
// broker binds its own queue and exchange pointers and gets them back without a lookup:
//
//	            Bind / Unbind / UnbindSome
//	                      │
//	          ┌───────────▼───────────┐
//	          │   table of bindings   │   identity of a binding = destination, key, arguments
//	          └───────────┬───────────┘
//	   first / last binding of a destination under a key
//	          ┌───────────▼───────────┐
//	Route ───►│ index of the kind      │───► destinations, each once
//	          └───────────────────────┘
//	   direct: key → destinations       fanout: one list
//	   topic:  trie over words          headers: compiled rules under one of their fields
//
// # Guarantees
//
//   - One Route appends a destination at most once, however many of its bindings match.
//   - Bind and Unbind are symmetric: every binding must be removed separately. After that
//     nothing is left of them, not even an empty trie node.
//   - Route of a direct, fanout or topic exchange does not allocate if out has room. One
//     exception: a topic exchange on which more than 16384 destinations have several patterns
//     each allocates a small bitmap.
//   - Bind, and Unbind of one binding, take the same time however many bindings there are.
//   - The time of topic matching is proportional to the number of trie nodes that can match,
//     once for each word of the key at which they can, even for patterns with many '#'.
//   - A headers exchange compares a message with those bindings alone that have one of its headers, and
//     of their headers the one that the fewest have.
//   - A Route that takes long pauses as often as its caller wants (Pace).
//
// # Left to others
//
// Exchange-to-exchange bindings, alternate exchanges, the default exchange, permissions,
// locking and persistence belong to the broker. Route may run concurrently with Route;
// whoever changes bindings must prevent routing during the change, but for its pauses.
package exchange
