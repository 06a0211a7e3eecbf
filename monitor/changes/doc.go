// Package changes is what users may change besides the broker: acknowledgements of incidents and maintenance windows, and which queues
// of a RabbitMQ are kept again. A test of a sink, which sends, belongs here too.
//
// The faces (Curfew's own API and the dashboard; the command line uses the API) parse a request, call one method of Changes and show the result.
// As in broker/operate, whose table of roles applies, each method asks for the actor's role, makes the change and records it once, whether it was
// done, refused or failed. Looking is left to the faces.
package changes
