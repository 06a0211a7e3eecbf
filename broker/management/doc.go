// Package management is the HTTP API that RabbitMQ's tools know: rabbitmqadmin,
// KEDA, Terraform, NServiceBus, Telegraf and what else asks /api (RabbitMQ:
// Management HTTP API), and the metrics by RabbitMQ's names (RabbitMQ: Prometheus).
//
// # One request
//
//	router (chi) ─► authenticate ─► role of the route ─► virtual host ─► handler
//	                                                                       │
//	    columns, sort, pagination ◄── objects ◄── broker and server, as they are now
//
// The table in routes.go is the API: path, method, the role it takes and its
// handler. A test asks every changing route as every lower role.
//
// # What is promised
//
// A list is assembled of many short looks, each under one lock; it is no snapshot.
// Every object has every field it can have, numbers 0 and rates 0.0 where nothing
// happened yet: strict clients take no less. Texts of errors are RabbitMQ's.
//
// Changes go through the calls that AMQP channels use, with the same checks and
// permissions, and are durable when answered. Nothing is kept here across a restart.
//
// # Rates
//
// The broker counts; a rate is what was counted since the sample before the last,
// which is at least sampleEvery old. Samples are taken when somebody asks, at most
// that often: nobody asking costs nothing. Of what somebody asked how it went (samples.go)
// they are kept for a while.
//
// # Beyond RabbitMQ's
//
// Below /api/curfew: delayed messages, policies that count for what is queued, dead
// letters with their replays (broker/deadletters), and the deadlines of queued messages,
// to be listed, moved and fired. What asks for much there may take long. A queue's peek looks without taking. Guard puts what other packages answer there behind
// the same credentials and headers.
//
// # Left to others
//
// Counting and listing (broker, broker/server), who may do what (broker/access),
// alerts, forecasts and the audit (the command mounts them), sockets, pages for people.
package management
