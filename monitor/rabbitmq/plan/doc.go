// Package plan says how the deadlines of each queue of a RabbitMQ can be kept, what that
// costs, and what an operator has to set up for it. It applies nothing: it computes from an
// inventory and prints.
//
//	Inventory, exchanges, bindings ──► New ──► Plan: a row for each queue
//	                                     │
//	                                     └──► Setup ──► rabbitmqctl, rabbitmqadmin, definitions, kubernetes
//
// # Rights
//
// Setup gives Curfew's user the least it needs: its own queues curfew.tap.*, to read the
// exchanges that are tapped and the queues that are kept, and the tag monitoring. It is
// neither administrator nor policymaker. No password is printed: the scripts read it from
// CURFEW_PASSWORD, and a user from a definitions file has none until it is given one.
//
// # The gateway
//
// With the gateway, messages wait in Curfew, where each expires on time, and move to
// RabbitMQ when a consumer there has room. RabbitMQ moves them itself, with its plugins
// for federation and shovels; applications keep their exchange and their queue:
//
//	              RabbitMQ                       Curfew                 RabbitMQ
//	exchange ──► orders.in ──shovel──► orders ◄──federation── orders ──► consumers
//	                │                    │ expired               │
//	                │                    ▼                       │
//	                │              orders.dlx                    │
//	                │                    ▼                       │
//	                ▼           orders.dead-letters              ▼
//	            dead-letter exchange ◄──shovel──┘     dead-letter exchange
//
// The last step is the operator's: to unbind orders from its exchanges, when orders.in is
// bound. While both are bound, each message is there twice.
//
// Consumers receive from the default exchange, under the name of the queue, as federation
// publishes. The routing key that a message had is in its header x-original-routing-key.
//
// A message lives longer by the time it has waited in orders.in, since its time to live
// starts again in Curfew; that queue is empty unless Curfew cannot be reached. From Curfew
// it is handed on with what is left (x-remaining-expiration). While a message waits in
// Curfew, Curfew's disk alone has it.
//
// # Sources
//
// RabbitMQ: Federated Queues; Dynamic Shovels; Access Control; Definitions. RabbitMQ
// Messaging Topology Operator: v1beta1.
package plan
