// Package commands is the command line of Curfew. Run executes one.
//
//	curfew [serve]      run until SIGTERM or SIGINT
//	curfew demo         ten seconds of deadlines that fire with nobody consuming; or fills a running one with examples
//	curfew config       every variable, its default, its value and what it means
//	curfew healthcheck  ask a running one whether it is ready
//	curfew status       one screen of a running one: deadlines, lateness, schedule, store, what is at risk
//	curfew deadlines    list the next deadlines; extend, shorten, cancel or fire one
//	curfew publish      publish a message, and say whether a queue took it
//	curfew get          show the first messages of a queue, or take them
//	curfew declare      declare a queue or an exchange; bind, unbind and delete are beside it
//	curfew consumers    who consumes, and who holds messages past their deadlines
//	curfew connections  the connections of clients; close one
//	curfew channels     the channels of clients
//	curfew queue        list, show, peek into and purge queues
//	curfew dlq          list, search, replay, purge, export and import dead letters
//	curfew audit        search and export what expired, of a running one or of a data folder
//	curfew context      name the Curfews to work with, and choose one
//	curfew completion   completion for bash, zsh, fish or PowerShell
//	curfew store        inspect or verify a message store that is not in use
//	curfew policy       set, clear and list policies of a running one
//	curfew user         add, change, delete and list its users and their permissions
//	curfew alert        test sinks, check rules, list what fires, silence it
//	curfew definitions  export, import and compare its definitions, in RabbitMQ's format
//	curfew inject       add the sidecar to Kubernetes manifests
//	curfew rabbitmq     see how deadlines can be kept in a RabbitMQ beside it
//	curfew bench        put a broker under load: throughput, latency, lateness of deadlines
//	curfew version
//
// A command that is about a running Curfew calls its management API (packages cli and client), with the address and the user from flags, the
// environment (package settings) or a context (package contexts). serve and demo run one (packages node and demo). Package messaging has the commands
// that do by hand what an AMQP client does.
//
// # Exit codes
//
//	0  done
//	1  it could not start, or a part failed, or the answer is no (healthcheck, demo)
//	2  the command line or a variable is wrong
//	3  what was asked for does not exist
//	4  the running one is degraded or dead (status)
//	5  a deletion has to be confirmed, with the number of messages it is about
//	6  SIGABRT, which systemd's watchdog sends, or SIGQUIT ended it, after the stacks of all goroutines (serve);
//	   a panic ends with 2, the runtime's code
//
// A first SIGTERM or SIGINT stops serve gracefully within ten seconds; a second one at once.
package commands
