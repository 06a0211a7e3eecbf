// Package outbox gathers the frames that go to one client, and writes them to its socket. It also has what a connection
// takes of the process: Memory counts what the client makes the broker hold (usage.go), and pooled buffers hold frames while
// they are sent or parsed (buffers.go), so that an idle connection holds next to nothing.
package outbox
