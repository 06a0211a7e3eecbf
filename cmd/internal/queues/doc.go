// Package queues is the commands about queues and their messages: curfew queue, curfew deadlines, curfew history, and curfew dlq for dead letters.
// They call the API of a running Curfew.
package queues
