package history

import "fmt"

// steadyFor is how many seconds a queue must have had consumers for a mark when they leave, and fewerFor how many they must be gone: clients that
// come for a moment, and clients that connect again, are no marks.
const steadyFor, fewerFor = 20, 10

// consumers are a queue's consumers, as far as marks are about them. The zero value has none.
type consumers struct {
	most  int   // since they last became fewer
	since int64 // when the first of them came, Unix s
	fewer int64 // since when they are half or less; 0: they are not
	none  bool  // a mark says that they are gone
}

// see takes the number of consumers in a second. It returns a mark if it is time for one.
func (c *consumers) see(n int, second int64) *Mark {
	if c.most == 0 {
		c.since = second
	}
	switch {
	case 2*n > c.most:
		back := c.none
		c.most, c.fewer, c.none = max(c.most, n), 0, false
		if back {
			return &Mark{At: second * 1000, Kind: ConsumersBack, Text: fmt.Sprintf("has consumers again (%d)", n)}
		}
	case c.most == 0:
	case c.fewer == 0:
		c.fewer = second
	case second-c.fewer >= fewerFor:
		gone, since, steady := c.most-n, c.fewer, c.fewer-c.since >= steadyFor
		*c = consumers{most: n, since: c.since, none: n == 0 && steady}
		if !steady {
			return nil
		}
		text := fmt.Sprintf("has lost %d of its %d consumers", gone, gone+n)
		if n == 0 {
			text = fmt.Sprintf("has lost all its consumers (%d)", gone)
		}
		return &Mark{At: since * 1000, Kind: ConsumersGone, Text: text}
	}
	return nil
}

// watchConsumersLocked keeps a mark about the consumers of a queue until the sample is over.
func (h *History) watchConsumersLocked(s *series, n int, second int64) {
	if m := s.consumers.see(n, second); m != nil {
		m.VHost, m.Queue, m.Text = s.vhost, s.name, s.name+" "+m.Text
		if m.Kind == ConsumersBack {
			h.back = append(h.back, *m)
		} else {
			h.gone = append(h.gone, *m)
		}
	}
}

// markConsumersLocked adds what watchConsumersLocked has kept.
func (h *History) markConsumersLocked() {
	h.marks.addTogether(h.gone, "%d more queues have lost consumers")
	h.marks.addTogether(h.back, "%d more queues have consumers again")
	h.gone, h.back = h.gone[:0], h.back[:0]
}
