// Package queues is the commands about queues and the messages in them: curfew queue, curfew deadlines, curfew history and curfew dlq, for dead
// letters.
// They ask the API of a running Curfew.
package queues
