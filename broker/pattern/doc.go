// Package pattern matches names against the regular expressions that policies
// and permissions are written with. RabbitMQ takes them as PCRE; here one is
// matched in linear time where Go's regexp can, and by backtracking, within a
// time limit, only where it must: look-around, back references, possessive and
// atomic groups. A pattern matches anywhere in a name unless it is anchored.
//
// Pure and safe for concurrent use.
package pattern
