package keeper

// action is what the core asks its driver to do. The input that is named after the colon answers it.
type action uint8

const (
	consume     action = iota // consume with prefetch, on the stretch's channel or a new one: opened, later ended
	cancel                    // cancel the stretch's consumer: ended, after its last delivery
	giveBack                  // nack(tag, requeue)
	giveBackTo                // nack(tag, multiple, requeue)
	giveBackAll               // nack(multiple, requeue) of the channel and a round trip: returned
	settle                    // a round trip on the channel, after messages were given back one by one: settled
	replace                   // cancel the stretch's consumer, and stay: ended
	stay                      // consume again under the tag of a cancelled consumer, to take nothing: no answer, or a stray
	leave                     // cancel such a consumer: no answer
	drop                      // the stretch no longer holds anything: no answer
	look                      // ask for ready messages and consumers: looked
	learn                     // read the facts of the queue: setFacts
	shut                      // close the channel: no answer
)

type command struct {
	do          action
	stretch     uint32
	tag         uint64
	prefetch    int
	consumption int // of the stretch
	epoch       uint32
}

// failure is why a channel was closed by RabbitMQ, or a look went wrong.
type failure uint8

const (
	other       failure = iota
	queueGone           // 404: there is no such queue
	unavailable         // 404: it has no leader, or its node is down
	forbidden           // 403: no permission
	locked              // another consumer has it exclusively
	noChannel           // the connection has no more of them
	timedOut            // consumer_timeout
)
