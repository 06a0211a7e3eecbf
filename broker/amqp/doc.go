// Package amqp turns AMQP 0-9-1 octets into values and back.
package amqp
