// Package changes has the operations on a node that are not about its broker: acknowledgements of incidents and maintenance windows, and which queues
// of RabbitMQ are kept again. A test of a sink, which sends, belongs here too.
//
// They are operations as those of broker/operate: the API, the commands, the check of the role and the record are derived from them. Package node serves
// them, also beside RabbitMQ. Looking is left to the faces.
package changes
