// Package admin has the operations on virtual hosts, users and what they may do, queues, exchanges, bindings, connections, policies, parameters
// and the clock: values of package operate, from which their faces are derived.
package admin
