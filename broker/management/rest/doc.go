// Package rest is how the management API speaks HTTP, in the manner that RabbitMQ's clients expect (RabbitMQ: Management HTTP API).
//
//	router (chi) ─► authenticate ─► what the route takes ─► pay for the body ─► handler
//	                                                                              │
//	                  columns, sort, pagination ◄── objects made one by one ◄─────┘
//
// It reads requests (Fields: every number and boolean may come as a string), answers them (Object, Message, lists that are sorted, cut into
// pages and written piece by piece), and finds RabbitMQ's words for errors (Problem). It looks at no queue and no exchange.
//
// # Bounds
//
// The memory a body takes is drawn from the budget of all clients before it is read; one that takes more than half of the budget is let in for
// half, alone of its kind. Two long answers are made at a time; one whose client does not take it waits for itself alone.
//
// # Left to others
//
// What the routes are and do (broker/management), and who may do it (broker/operate).
package rest
