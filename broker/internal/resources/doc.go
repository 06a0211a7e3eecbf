// Package resources measures the memory of the process and the room on the disk, and says when
// publishers have to wait because one of them runs out (RabbitMQ: Memory and Disk Alarms).
//
// An Alarm measures several times a second while somebody publishes, and once a second
// otherwise. It is raised at the limit and cleared with some room to spare, so that it does not
// flutter. What the store says of itself, a full disk or no file descriptors left, counts at
// once. Its lock is a leaf.
//
// Left to others: holding publishers back (package broker and its servers), and what clients may
// declare while memory is low (package broker).
package resources
