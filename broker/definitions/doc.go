// Package definitions reads and writes RabbitMQ's definitions: one JSON document
// with users, virtual hosts, permissions, parameters, policies, exchanges, queues
// and bindings, messages not included. What RabbitMQ 3.x and 4.x export can be
// imported, by management API or rabbitmqctl, and the other way round.
//
// An import adds and replaces; it deletes nothing (RabbitMQ: Schema Definition
// Export and Import). A queue or exchange that is there already and was declared
// otherwise stays as it is, as do those named amq.*; a binding one of whose ends
// is missing is left out: the Report names them. Everything is first imported
// into a copy of what is there, under the same limits; what came of it is saved as
// one, and then holds (broker.Broker.Change). So an import is all or nothing, over a
// crash too.
//
// Operator policies and the limits of virtual hosts are parameters there, of the
// components operator_policy and vhost-limits.
package definitions
