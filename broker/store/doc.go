// Package store holds the bytes of all queued messages, outside the Go heap.
package store
