// Package rest is how the management API speaks HTTP, in the manner that RabbitMQ's clients expect (RabbitMQ: Management HTTP API).
//
//	router (chi) ─► authenticate ─► what the route takes ─► pay for the body ─► handler
//	                                                                              │
//	                  columns, sort, pagination ◄── objects made one by one ◄─────┘
//
// It reads requests (Fields: every number and boolean may be sent as a string), answers them (Object, lists that are sorted, cut into
// pages and written piece by piece), and turns errors into RabbitMQ's texts (Problem). It does not access queues or exchanges.
//
// # Bounds
//
// The memory for a body is drawn from the budget of all clients before it is read. A body that takes more than half of the budget draws half, and
// only one such body is read at a time. Two long answers are made at a time; a client that does not read its answer keeps nobody else waiting.
//
// # Left to others
//
// What the routes are and do (broker/management), and who may do it (broker/operate).
package rest
