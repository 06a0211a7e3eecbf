package queue

// Reason says why a message left its queue.
type Reason uint8

const (
	// Acked by its consumer.
	Acked Reason = iota
	// Expired: its deadline passed while it was not held by a consumer.
	Expired
	// Rejected by its consumer and not requeued.
	Rejected
	// MaxLength: dropped from the head of a queue above its limits.
	MaxLength
	// Purged by an operator, or deleted together with its queue.
	Purged
	// DeliveryLimit: its deliveries failed more often than the queue allows.
	DeliveryLimit

	// Reasons is the number of reasons.
	Reasons = int(DeliveryLimit) + 1
)

var reasonNames = [Reasons]string{"acked", "expired", "rejected", "maxlen", "purged", "delivery_limit"}

// String is the reason as x-death writes it (RabbitMQ: Dead Letter Exchanges),
// or a word of its own for those that are never dead-lettered.
func (r Reason) String() string { return reasonNames[r] }

// Settled is a message that left its queue for good. Each message is settled once.
type Settled struct {
	Seq Seq
	Message
	Reason     Reason
	Tracked    bool   // Queue.Track marked it
	Deliveries uint16 // that failed, including the last one
}

// Effects collect what an operation did beyond its answer. Operations append;
// the caller owns the buffer and resets it once it has acted on it.
type Effects struct {
	Settled []Settled
}

// Full reports whether as many messages have left as are settled in one step: the caller acts on them
// first.
func (fx *Effects) Full() bool { return len(fx.Settled) >= AtOnce }

// maxKeptEffects bounds the memory that an idle Effects holds (to 160 KiB). A mass expiry may need
// more for a moment; the next Reset releases it.
const maxKeptEffects = 4096

// Reset empties the buffer for reuse.
func (fx *Effects) Reset() {
	if cap(fx.Settled) > maxKeptEffects {
		fx.Settled = nil
	}
	fx.Settled = fx.Settled[:0]
}
