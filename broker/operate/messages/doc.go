// Package messages has the operations on the deadlines of queued messages, on messages that wait to be enqueued and on dead letters: values of package operate, from
// which their faces are derived. It also has the form that messages have in JSON.
package messages
