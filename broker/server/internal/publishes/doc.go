// Package publishes has the two ends of a publish of AMQP 0-9-1: how it is put together from its frames
// (Assembly), and how it is confirmed (Confirms). What is in between is the channel's.
package publishes
