// Package outbox gathers the frames that go to one client, and writes them to its socket.
package outbox
