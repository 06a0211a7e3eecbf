// Package rabbitmq tests Curfew beside RabbitMQ against real nodes, which the tests start
// themselves on free ports of this machine.
//
// One node, with the management, event exchange, federation and shovel plugins, and on 4.3
// that of deploy/rabbitmq/delayed, serves the whole run. A test works in a virtual host of its own (node.vhost). Tests that need
// several nodes, or kill one, take turns with a cluster of three (threeNodes) or with a node
// by itself (loneNode).
//
// The RabbitMQ is the installed one, or the one in the folder that TEST_RABBITMQ names.
package rabbitmq
