package broker

// Pending is how many publishes wait for Flush.
func (p *Publisher) Pending() int { return p.count }
