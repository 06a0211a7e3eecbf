// Package management is the HTTP API that RabbitMQ's tools know: rabbitmqadmin, KEDA, Terraform, NServiceBus, Telegraf and everything else that
// asks /api (RabbitMQ: Management HTTP API).
//
//	rest: authenticate, permit, read ─► handler ─► broker/operate, or the broker and the server as they are now
//	                                       │
//	       rest: columns, sort, pages ◄── objects
//
// The table in routes.go is the API. Each row has a path, a method, a handler, and the operation (broker/operate) or the role that it takes. A test
// asks every route as every lower role.
//
// # What is promised
//
// A list is made of many short looks, each under one lock. It is no snapshot. Every object has every field it can have, with numbers 0 and rates
// 0.0 where nothing has happened yet: strict clients refuse less. The texts of errors are RabbitMQ's.
//
// Changes go through the calls that AMQP channels use, with the same checks and permissions, and are durable when they are answered. Nothing is
// kept here across a restart.
//
// # Beyond RabbitMQ's
//
// Below /api/curfew: delayed messages, policies that count for what is queued already, dead letters and their replays (broker/deadletters), and
// the deadlines of queued messages, which can be listed, moved and fired. What looks at a whole queue may take long. Guard puts what other packages
// answer there behind the same credentials and headers.
//
// # Parts
//
// rest is how it speaks HTTP, letters answers requests about dead letters and replays, rates has the counts over time, metrics what Prometheus
// scrapes by RabbitMQ's names.
//
// # Left to others
//
// Who may do what (broker/operate), counting and listing (broker, broker/server), alerts, forecasts and the audit (the command mounts them),
// sockets, and pages for people.
package management
