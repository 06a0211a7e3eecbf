// Package commands is the command line of Curfew. Run executes one.
//
//	curfew serve        run until SIGTERM or SIGINT
//	curfew demo         ten seconds of deadlines that fire with nobody consuming; or fill a running Curfew with examples
//	curfew config       every variable, its default, its value and what it means
//	curfew healthcheck  ask a running Curfew whether it is ready
//	curfew status       a running Curfew on one screen: deadlines, lateness, schedule, store, what is at risk
//	curfew deadlines    list the next deadlines; extend, shorten, cancel or fire one
//	curfew publish      publish a message, and print whether a queue took it
//	curfew get          show the first messages of a queue, or take them
//	curfew declare      declare a queue or an exchange; see also bind, unbind and delete
//	curfew consumers    who consumes, and who holds messages past their deadlines
//	curfew connections  the connections of clients; close one
//	curfew channels     the channels of clients
//	curfew queue        list, show, peek into and purge queues
//	curfew dlq          list, search, replay, purge, export and import dead letters
//	curfew audit        search and export what expired, from a running Curfew or a data folder
//	curfew completion   completion for bash, zsh, fish or PowerShell
//	curfew store        inspect, verify or repair a message store that is not in use
//	curfew policy       set, clear and list policies
//	curfew user         add, change, delete and list users and their permissions
//	curfew incident     list what is wrong, acknowledge, maintenance; rules, and a test of sinks
//	curfew definitions  export, import and compare definitions, in RabbitMQ's format
//	curfew inject       add the sidecar to Kubernetes manifests
//	curfew rabbitmq     show how deadlines are or can be kept in RabbitMQ
//	curfew version
//
// A command that is about a running Curfew calls its management API (package cli), with the address and the user from flags or the
// environment (package settings). serve and demo run Curfew (package node). The demo has its own broker, which ends with it, or fills a running
// Curfew, so that every page and command has something to show. Package queues has commands about queues and messages; package
// cli makes many others of the operations of broker/operate (AddOperations).
//
// curfew top is a full screen with the verdict pinned above what is wrong and all queues, from which one goes down to consumers, messages, dead
// letters and their replay. Each place shows the tables of commands that exist (status, incident ls, queue list, ...), run in this process again and
// again: so no number is computed here, and what a row is about leads to the next commands. Bubble Tea reads keys and draws.
//
//	places: incidents and queues ─► a queue ─► a message
//	                                   ├► its dead letters
//	                                   └► what a replay would do ─► replays
//
// # Exit codes
//
//	0  done
//	1  it could not start, or a part failed, or the answer is no (healthcheck, demo)
//	2  the command line or a variable is wrong
//	3  what was asked for does not exist
//	4  the running Curfew is degraded or dead (status)
//	5  a deletion has to be confirmed, with the number of its messages
//	6  SIGABRT, which systemd's watchdog sends, or SIGQUIT ended it, after the stacks of all goroutines (serve);
//	   a panic ends with 2, the runtime's code
//
// A first SIGTERM or SIGINT stops serve gracefully within ten seconds; a second one at once.
//
// # Injection
//
// curfew inject adds Curfew as a native sidecar to Kubernetes manifests.
//
// It changes the pod of a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or
// CronJob, also inside a List, and copies everything else byte by byte. In objects that it
// changes, unknown fields, the order of fields and comments stay as they are. It replaces what
// it added before, so injecting again changes only what the options and annotations have
// changed.
//
// The application then reaches Curfew at 127.0.0.1:5672 as guest. Annotations of the pod,
// or of the object that makes the pods, override the defaults:
//
//	curfew.dev/inject           "false": do not change this object
//	curfew.dev/image            image of the sidecar
//	curfew.dev/env              YAML mapping of CURFEW_ and OTEL_ variables to values
//	curfew.dev/env-from-secret  name of a Secret with such variables
//	curfew.dev/volume           volume of the pod in which messages are stored
//	curfew.dev/claim            PersistentVolumeClaim in which they are stored, for a workload with a single pod
//	curfew.dev/cpu-request, cpu-limit, memory-request, memory-limit
//
// Without volume and claim, a StatefulSet gets a claim template, and so each of its pods
// gets a claim. Other pods get an emptyDir, which is deleted with the pod; Injector.Notes
// point that out.
//
// The pod gets the label curfew.dev/injected, which PodMonitors select. A pod without a
// termination grace period gets one minute, for the application and for Curfew, which is
// stopped after it.
package commands
