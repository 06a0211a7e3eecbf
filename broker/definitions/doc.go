// Package definitions reads and writes RabbitMQ's definitions: one JSON document with
// users, virtual hosts, permissions, parameters, policies, exchanges, queues and bindings,
// but no messages. Documents exported by RabbitMQ 3.x and 4.x can be imported, and RabbitMQ
// imports Curfew's, by management API or rabbitmqctl.
//
// An import adds and replaces; it deletes nothing (RabbitMQ: Schema Definition Export and
// Import). An existing queue or exchange that was declared with other properties stays as
// it is, and so do those named amq.*. A binding with a missing end is left out. The Report
// names all of these. An import first changes a copy of what exists, under the same limits;
// the result is saved as one change and then takes effect (broker.Broker.Change). So an
// import takes effect completely or not at all, even in a crash.
//
// In a document, operator policies and the limits of virtual hosts are parameters of the
// components operator_policy and vhost-limits.
package definitions
