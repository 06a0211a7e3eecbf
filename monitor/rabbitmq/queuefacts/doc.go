// Package queuefacts has what all packages beside a RabbitMQ know about its queues in the same way: their types, the
// ranges of versions that treat held messages differently, and statistics of times to live.
//
// It computes from values. Package cluster reads the facts and decides by them, package keeper asks again when they change.
package queuefacts
