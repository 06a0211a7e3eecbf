// Package plan computes how the deadlines of each queue of RabbitMQ can be kept, what that
// costs, and what an operator has to set up for it. It changes nothing: it computes from an
// inventory and prints.
//
//	Inventory, exchanges, bindings ──► New ──► Plan: a row for each queue
//	                                     │
//	                                     └──► Setup ──► definitions, a script that imports them, or resources for Kubernetes
//
// # Rights
//
// Setup gives Curfew's user no more than it needs: its own queues curfew.tap.*, permission to
// read the tapped exchanges and the kept queues, and the tag monitoring. The user is neither
// administrator nor policymaker. No password is printed: the scripts read it from
// CURFEW_PASSWORD, and a user from a definitions file has none until somebody sets one.
//
// # The gateway
//
// With the gateway, messages wait in Curfew, where each expires on time, and move to
// RabbitMQ when a consumer there has room. RabbitMQ itself moves them, with its plugins
// for federation and shovels; applications keep their exchange and their queue:
//
//	              RabbitMQ                       Curfew               .
//	exchange ──► orders.in ──shovel──► orders ◄──federation── orders ──► consumers
//	                │                    │ expired               │
//	                │                    ▼                       │
//	                │              orders.dlx                    │
//	                │                    ▼                       │
//	                ▼           orders.dead-letters              ▼
//	            dead-letter exchange ◄──shovel──┘     dead-letter exchange
//
// The last step is up to the operator: to unbind orders from its exchanges, once orders.in is
// bound. While both are bound, there are two copies of each message.
//
// Consumers see the default exchange and the name of the queue as routing key, since
// federation publishes that way. A message's own routing key is in its header
// x-original-routing-key.
//
// A message lives longer by the time it has waited in orders.in, since its time to live
// starts again in Curfew; that queue is empty unless Curfew cannot be reached. Curfew passes
// a message on with the rest of its time to live (x-remaining-expiration). While a message
// waits in Curfew, the only copy is on Curfew's disk.
//
// # Sources
//
// RabbitMQ: Federated Queues; Dynamic Shovels; Access Control; Definitions.
package plan
