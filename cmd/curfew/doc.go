// Command curfew runs the broker and its deadline monitor in one process.
//
//	curfew [serve]      run until SIGTERM or SIGINT
//	curfew demo         the story in ten seconds: deadlines that fire with nobody consuming
//	curfew config       every variable, its default, its value and what it means
//	curfew healthcheck  ask a running one whether it is ready
//	curfew status       one screen of a running one: deadlines, lateness, schedule, store, what is at risk
//	curfew deadlines    list the next deadlines; extend, shorten, cancel or fire one
//	curfew queue        list, show, peek into and purge queues
//	curfew dlq          list, search, replay, purge, export and import dead letters
//	curfew audit        search and export what expired, of a running one or of a data folder
//	curfew completion   completion for bash, zsh, fish or PowerShell
//	curfew store        inspect or verify a message store that is not in use
//	curfew policy       set, clear and list policies of a running one
//	curfew user         add, change, delete and list its users and their permissions
//	curfew alert        test sinks, check rules, list what fires, silence it
//	curfew definitions  export, import and compare its definitions, in RabbitMQ's format
//	curfew inject       add the sidecar to manifests of Kubernetes
//	curfew bench        put a broker under load: throughput, latency, lateness of deadlines
//	curfew version
//
// It is wiring only: what it starts is broker/store, broker, broker/server, monitor, the ops
// endpoints (/metrics, /healthz, /readyz) and, on the web's sockets, broker/management, /api/curfew and
// monitor/dashboard, in that order, and it stops them in the opposite one.
//
//	starting ──recovered, listening──► ready ──signal, or a part failed──► stopping ──► ended
//	 /readyz 503                        200          503
//
// # Configuration
//
// The environment alone, prefix CURFEW_: see type config. A value that is not allowed and a variable
// that does not exist are both refused at the start. Beside it OpenTelemetry's own variables
// (otelVariables), which count for nothing while none of them says that something is to be sent: they
// may be there for the application beside. Then those with a value that cannot be obeyed are refused,
// and those that Curfew does not know are named in the log.
//
// # Exit codes
//
//	0  it ended as asked
//	1  it could not start, or a part failed, or (healthcheck, demo) the answer is no
//	2  the command line or a variable is wrong
//	3  what was asked for does not exist
//	4  (status) the running one is degraded or dead
//	5  a purge has to be confirmed with the number of messages it is about
//	6  (serve) SIGABRT, which systemd's watchdog sends, or SIGQUIT, after the stacks of all goroutines;
//	   a panic ends with 2, which is the runtime's
//
// A first SIGTERM or SIGINT stops gracefully within ten seconds; a second one at once. SIGHUP reads the
// alert rules anew; rules with a mistake end nothing, at a start neither (monitor/alert).
//
// # Left to others
//
// Everything that is not a process's own business: the packages take Options structs and know
// nothing of the environment, of signals or of flags.
package main
