package broker

// Pace sets whether the caller will call AwaitConsumers after publishes with these rights; at
// first it does not. A caller that stops need not wait for earlier publishes.
func (r *Rights) Pace(on bool) {
	if r.pacing.On = on; !on {
		r.pacing.Crowded, r.pacing.Behind = nil, false
	}
}

// Crowded reports whether AwaitConsumers would wait.
func (r *Rights) Crowded() bool { return len(r.pacing.Crowded) > 0 }

// AwaitConsumers makes the publisher wait until the consumers of the queues it has published
// to have given it credit (internal/delivery, flow): for half a second at most, or until done is
// closed. No lock may be held.
func (r *Rights) AwaitConsumers(done <-chan struct{}) {
	p := &r.pacing
	if len(p.Crowded) > 0 {
		p.Await(done)
	}
	p.Crowded = nil
}
