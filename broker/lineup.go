package broker

import "slices"

// lineup is the consumers of a queue in the order they are served: those of a
// higher priority first while they can take, those of one priority in turn
// (RabbitMQ: Consumer Priorities).
type lineup struct {
	ranks []rank // highest priority first; none is empty
	count int
}

// rank is the consumers of one priority, in the order they came.
type rank struct {
	priority  int64
	consumers []*Consumer
	turn      int // index of who is offered the next message
}

func (l *lineup) add(c *Consumer) {
	i, found := l.find(c.Priority)
	if !found {
		l.ranks = slices.Insert(l.ranks, i, rank{priority: c.Priority})
	}
	l.ranks[i].consumers = append(l.ranks[i].consumers, c)
	l.count++
}

// remove returns false if c is not there.
func (l *lineup) remove(c *Consumer) bool {
	i, _ := l.find(c.Priority)
	if i == len(l.ranks) || !l.ranks[i].remove(c) {
		return false
	}
	if len(l.ranks[i].consumers) == 0 {
		l.ranks = slices.Delete(l.ranks, i, i+1)
	}
	l.count--
	return true
}

func (l *lineup) find(priority int64) (at int, found bool) {
	return slices.BinarySearchFunc(l.ranks, priority, func(r rank, p int64) int {
		switch {
		case r.priority > p:
			return -1
		case r.priority < p:
			return 1
		}
		return 0
	})
}

func (r *rank) remove(c *Consumer) bool {
	i := slices.Index(r.consumers, c)
	if i < 0 {
		return false
	}
	r.consumers = slices.Delete(r.consumers, i, i+1)
	if r.turn > i {
		r.turn--
	}
	if r.turn == len(r.consumers) {
		r.turn = 0
	}
	return true
}

// first is the one that came first of those with the highest priority; nil if
// there is none.
func (l *lineup) first() *Consumer {
	if l.count == 0 {
		return nil
	}
	return l.ranks[0].consumers[0]
}

// exclusive says whether the queue has an exclusive consumer, who is alone then.
func (l *lineup) exclusive() bool { return l.count == 1 && l.first().Exclusive }

// all is every consumer, in the order of priority and arrival.
func (l *lineup) all() []*Consumer {
	all := make([]*Consumer, 0, l.count)
	for i := range l.ranks {
		all = append(all, l.ranks[i].consumers...)
	}
	return all
}
