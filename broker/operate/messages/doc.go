// Package messages has the operations on the deadlines of queued messages and on messages that wait to be enqueued: values of package operate, from
// which their faces are derived. It also has the form that messages have in JSON.
package messages
