// Package transport is how sinks send. A Poster posts to a webhook or an Alertmanager. For the services of shoutrrr it has what that library
// leaves out: the status of an answer, and errors without the parts of a URL, any of which may be a token.
package transport
