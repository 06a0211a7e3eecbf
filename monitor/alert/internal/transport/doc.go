// Package transport is what shoutrrr, the library behind most sinks, leaves out: an end for a request, and the status of an answer.
package transport
