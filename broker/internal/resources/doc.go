// Package resources measures the memory of the process and the free disk space, and decides when
// publishers are blocked because one of them runs low (RabbitMQ: Memory and Disk Alarms).
//
// An Alarm measures several times a second while somebody publishes, and otherwise once a second.
// The memory alarm is raised at the limit and cleared some way below it, so that it does not
// flutter. What the store reports, a full disk or no free file descriptors, takes effect at once.
// The alarm's lock is a leaf.
//
// Left to others: blocking publishers (package broker and its servers), and what clients may
// declare while memory is low (package broker).
package resources
