package dashboard

import (
	"net/http"
	"net/url"
	"strconv"

	"curfew/monitor"
)

const (
	// peekRows is how many messages one page shows, and peekBody how much of each body.
	peekRows  = 20
	peekBody  = 2048
	maxOffset = 1_000_000
)

// queuePage is what the page of one queue shows.
type queuePage struct {
	QueueDetail
	Forecast *monitor.Forecast // nil: no deadlines wait there
	Now      int64
	Peek     peek
	Changed  string // what came of a change just made; "" none was
}

// peek is some of a queue's messages.
type peek struct {
	FromTail      bool
	Bodies        bool
	Offset        int
	Messages      []shownMessage
	Refused       bool // the user may not read the queue
	Before, After string
	Start         string // URL of the end looked from
	Head, Tail    string // URLs of the ends; "" for the one looked from
	Toggle        string // URL with bodies, or without them
}

// shownMessage is a message with its body as text.
type shownMessage struct {
	Message
	Place int // in the queue, counted from 1 at the end looked from
	Text  string
	Hex   bool // Text is a dump, since the body is no text
	Cut   bool // there is more of it
	// Change is where its deadline can be changed; "": not by this user.
	Change string
}

func (d *Dashboard) queue(r *http.Request, v visitor) (view, error) {
	q := r.URL.Query()
	detail, ok := d.Broker.Queue(q.Get("vhost"), q.Get("name"))
	if !ok {
		return nil, ErrGone
	}
	p := &queuePage{QueueDetail: detail, Now: d.Broker.State().Now, Forecast: d.forecasts()[[2]string{detail.VHost, detail.Name}]}
	p.Changed = changed[q.Get("changed")]
	if v.live { // messages stay as they were when somebody began to read
		return p, nil
	}
	return p, p.Peek.look(d.Broker, v.User, q)
}

// look gathers the messages that a query names by queue, end and offset.
func (p *peek) look(b Broker, u User, q url.Values) error {
	p.FromTail, p.Bodies = q.Get("from") == "tail", q.Get("bodies") == "1"
	p.Offset, _ = strconv.Atoi(q.Get("offset"))
	p.Offset = min(max(p.Offset, 0), maxOffset)
	want := Peek{FromTail: p.FromTail, Offset: p.Offset, Count: peekRows + 1}
	if p.Bodies {
		want.BodyBytes = peekBody
	}
	list, err := b.Peek(u, q.Get("vhost"), q.Get("name"), want)
	if err == ErrForbidden {
		p.Refused = true
		return nil
	}
	if err != nil {
		return err
	}
	p.links(q, len(list) > peekRows)
	for i, m := range list[:min(len(list), peekRows)] {
		shown := showMessage(m, p.Offset+i+1)
		if u.Admin {
			shown.Change = deadlineURL(q.Get("vhost"), q.Get("name"), m.Seq)
		}
		p.Messages = append(p.Messages, shown)
	}
	return nil
}

func (p *peek) links(q url.Values, more bool) {
	p.Start = with("/queue", q, "offset", "")
	if p.FromTail {
		p.Head = with("/queue", q, "from", "", "offset", "")
	} else {
		p.Tail = with("/queue", q, "from", "tail", "offset", "")
	}
	p.Toggle = with("/queue", q, "bodies", "1")
	if p.Bodies {
		p.Toggle = with("/queue", q, "bodies", "")
	}
	if p.Offset > 0 {
		before := ""
		if p.Offset > peekRows {
			before = strconv.Itoa(p.Offset - peekRows)
		}
		p.Before = with("/queue", q, "offset", before)
	}
	if more {
		p.After = with("/queue", q, "offset", strconv.Itoa(p.Offset+peekRows))
	}
}

func showMessage(m Message, place int) shownMessage {
	s := shownMessage{Message: m, Place: place, Cut: len(m.Body) < m.BodyBytes}
	s.Text, s.Hex = bodyText(m.Body, s.Cut)
	return s
}
