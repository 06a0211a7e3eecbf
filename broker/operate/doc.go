// Package operate has what people and tools can do to a running broker: look at messages and publish them, see who holds them, purge
// and replay dead letters, change deadlines, declare and delete queues, exchanges and bindings, set policies and users, close connections.
// The faces (the management API and the dashboard; the command line uses the API) parse a request, call one method of Operations and show the
// result. They have no permissions, bounds or error texts of their own.
//
//	face ─► Operations.X(ctx, Actor, request) ─► may the actor? ─► bounds ─► do it ─► wait for the commit ─► record it ─► result
//
// # Who may do what
//
// Only the rule of an operation (Op.Rule, or the table in rules.go) says who may do it: the role that the user's tags have to give, access to the virtual host, and the
// permissions on the queue (RabbitMQ: Access Control, Management Plugin Permissions). It is the same for all faces. A replay belongs
// to the user who started it.
//
// # What is safe, and when
//
// A change is answered when it is as durable as the store's mode promises. The end of a context ends what takes long, and the wait for the disk; it
// does not undo what is done.
//
// # What takes long
//
// An operation that may take long is a Run when a face starts it by Begin: it says how much is done, it can be cancelled, and it keeps its result. A
// face may wait for it or leave it. If the one who waits goes away, the face cancels the run, so nothing is done for a client that was told of a
// failure. A purge that is cancelled has deleted some messages; an import of definitions changes everything or nothing. Replays are runs, too.
//
// # Who did what
//
// Each change is recorded once, whether it was done, refused or failed: a line in the log named "operation", always with the keys operation,
// user, face, result, vhost and queue, and the counter curfew_operations_total{operation,result}. Reading is not recorded. Of the attempts of
// a user that are refused or fail, thirty a minute are recorded; one more record has the number of the others.
//
// # Left to others
//
// The form of answers (the faces), RabbitMQ's statistics (broker/management), what dead
// letters are (broker/deadletters), and which documents can be imported (broker/definitions).
package operate
