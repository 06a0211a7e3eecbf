// Package queuefacts has what all packages beside a RabbitMQ know about its queues in the same way: their types, the
// ranges of versions that treat held messages differently, statistics of times to live, and the settings of a queue that
// forbid holding its messages.
//
// It computes from values. Package cluster reads the facts and decides by them, package keeper asks again when they change.
package queuefacts
