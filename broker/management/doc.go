// Package management is the HTTP API that RabbitMQ's tools know: rabbitmqadmin, KEDA, Terraform, NServiceBus, Telegraf and everything else that
// uses /api (RabbitMQ: Management HTTP API).
//
//	rest: authenticate, permit, read ─► handler ─► broker/operate, or the state of broker and server
//	                                       │
//	       rest: columns, sort, pages ◄── objects
//
// The table in routes.go is the API. Each row has a path, a method, a handler, and the operation (broker/operate) or the role that it requires. A
// test calls every route with every lower role.
//
// # What is promised
//
// A list is read in many short steps, each under one lock, so it is not a snapshot. Every object has every field that it can have, with numbers 0
// and rates 0.0 while nothing has happened: strict clients refuse anything less. The texts of errors are RabbitMQ's.
//
// Changes go through the calls that AMQP channels use, with the same checks and permissions, and are durable when they are answered. Nothing is
// kept here across a restart.
//
// # Beyond RabbitMQ's
//
// Below /api/curfew: delayed messages, policies that apply to messages queued already, dead letters and their replays (broker/deadletters), and
// the deadlines of queued messages, which can be listed, moved and fired. Requests that read a whole queue may take long. Guard puts the
// handlers of other packages there behind the same credentials and headers.
//
// # Parts
//
// rest speaks HTTP. Here, letters.go answers the requests about dead letters that have files as bodies or answers, rates has the counts over time, and the files
// metrics* show all of it by the names that RabbitMQ's dashboards and alerts use.
//
// # Left to others
//
// Who may do what (broker/operate), counting and listing (broker, broker/server), alerts, forecasts and the audit (the command mounts them),
// sockets, and pages for people.
package management
