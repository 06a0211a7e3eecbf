// Package chunked has a Slice that grows without being copied. A slice of Go is copied as a whole each
// time that it outgrows its memory: hundreds of megabytes, where it has a part for each of millions of
// messages, in the middle of one operation and under its lock.
package chunked
