// Package crossing shows what becomes of a message that is published over one protocol and consumed over the other: each field and each
// type by itself, over AMQP 0-9-1 and 1.0. rabbitmq.txt is what RabbitMQ 4.3.6 does, recorded by TestCrossingRecorded of
// integration/rabbitmq; TestCrossing of integration holds Curfew against it.
package crossing
