package broker

// Pace sets whether the caller will call AwaitConsumers after publishes with these rights; at
// first it does not. A caller that stops need not wait for earlier publishes, and makes no
// other publisher wait.
func (r *Rights) Pace(on bool) {
	if on {
		r.pacing.On = true
	} else {
		r.pacing.Stop()
	}
}

// Crowded reports whether AwaitConsumers would wait.
func (r *Rights) Crowded() bool { return len(r.pacing.Crowded) > 0 }

// AwaitConsumers makes the publisher wait while the consumers of the queues it has published
// to need the processor (flow): usually for some milliseconds, for flowLongest at most, or
// until done is closed. No lock may be held.
func (r *Rights) AwaitConsumers(done <-chan struct{}) {
	p := &r.pacing
	if len(p.Crowded) > 0 {
		r.await(done)
	}
	p.Crowded = nil
}

func (r *Rights) await(done <-chan struct{}) { r.pacing.Await(&r.b.env, done) }
