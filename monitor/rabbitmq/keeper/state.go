package keeper

// State is what the keeper does with its queue at the moment.
type State string

const (
	Observing     State = "observing"      // nothing is held: not connected, no lease, or the queue has not been looked at
	Keeping       State = "keeping"        // all messages are held, and each is given back at its deadline
	Releasing     State = "releasing"      // all is being given back, in order
	StandingAside State = "standing aside" // there are other consumers, or were a moment ago
	Refused       State = "refused"        // nothing is held, for the reason stated
	Stopped       State = "stopped"        // Run has returned
)

// Code names the reason for a state or a release in one word, for metrics.
type Code string

const (
	Connection    Code = "connection" // the keeper has none
	Looking       Code = "looking"    // at the queue, before anything is taken
	NoQueue       Code = "no_queue"
	LostLease     Code = "lost_lease" // another Curfew has it, or it is unknown who has it
	NoConsumer    Code = "no_consumer"
	Consumer      Code = "consumer"       // there is another consumer, or was a moment ago
	Settings      Code = "settings"       // the queue's type, arguments or policies
	Unknown       Code = "unknown"        // settings that could not be read
	Budget        Code = "budget"         // more messages or bytes than may be held
	FewDeadlines  Code = "few_deadlines"  // most messages have no TTL
	DeliveryLimit Code = "delivery_limit" // a quarter of it is spent
	Permission    Code = "permission"     // RabbitMQ denies what keeping needs
	Stop          Code = "stop"           // Run ends
)

// reason is why the keeper is in a state: in one word, and in a sentence for people.
type reason struct {
	code Code
	text string
}

var (
	looking = reason{Looking, "looking at the queue"}
	noQueue = reason{NoQueue, "there is no such queue"}
	leased  = reason{LostLease, "another Curfew keeps it"}
	stopped = reason{Stop, "stopped"}
)
