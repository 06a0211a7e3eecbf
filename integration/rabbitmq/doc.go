// Package rabbitmq tests what Curfew does beside RabbitMQ against real nodes, which the
// tests start themselves on free ports of this machine.
//
// One node, with the management, event exchange, federation and shovel plugins, serves
// the whole run. A test works in a virtual host of its own (node.vhost). Tests that need
// several nodes, or kill one, take turns with a cluster of three (threeNodes); one that
// needs another configuration starts its own (startNodes).
//
// The RabbitMQ is the installed one, or that of the tree which TEST_RABBITMQ names.
package rabbitmq
