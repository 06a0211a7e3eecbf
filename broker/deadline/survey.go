package deadline

// Sample is one ready message of a queue, and its place there.
type Sample struct {
	Ref   Ref // its Deadline is 0 if it has none
	Ahead int // ready messages that are delivered before it
	// Entered is when it entered the queue, or a little earlier, as the age of the oldest message is a little too high; 0: not known.
	Entered Instant
}

// Survey is the state of a queue and a sample of its ready messages: every Step-th, in
// the order of delivery.
type Survey struct {
	Queue            uint64 // the queue's number
	VHost, Name      string
	At               Instant // when it was made
	Ready, Consumers int
	Delivered        uint64 // messages delivered so far, each counted once however often it came back
	Polled           uint64 // of these deliveries, those by basic.get
	Step             int
	Samples          []Sample
	Objective        Objective
}
