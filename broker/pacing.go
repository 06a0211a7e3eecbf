package broker

// Pace sets whether what is published with these rights is followed by AwaitConsumers from now
// on. It is not at first. One that stops owes no wait, and leaves nobody else in one.
func (r *Rights) Pace(on bool) {
	if on {
		r.pacing.On = true
	} else {
		r.pacing.Stop()
	}
}

// Crowded reports whether AwaitConsumers would wait.
func (r *Rights) Crowded() bool { return len(r.pacing.Crowded) > 0 }

// AwaitConsumers has the publisher wait while the consumers of what it has published to
// need the processor (flow): for some milliseconds as a rule, for flowLongest at most, or
// until done is closed. No lock may be held.
func (r *Rights) AwaitConsumers(done <-chan struct{}) {
	p := &r.pacing
	if len(p.Crowded) > 0 {
		r.await(done)
	}
	p.Crowded = nil
}

func (r *Rights) await(done <-chan struct{}) { r.pacing.Await(&r.b.env, done) }
