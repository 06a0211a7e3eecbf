package node

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/monitor/incident"
)

// looker looks at a node for what conditions are judged by, and remembers what one look cannot tell.
type looker struct {
	trends
	limits []*connLimit // of the HTTP servers
	held   pastDeadlines

	mu        sync.Mutex // of what follows: purposes are asked for by others, too
	leads     map[*broker.VHost]*leads
	looks     uint64
	consumers map[incident.QueueName]incident.Consumers // at the last look
	last      map[incident.QueueName]deadline.Purpose   // likewise
	closed    map[string]closing                        // by client: the last time that a user closed its connection
}

// look fills in what the conditions are judged by. It is called by one goroutine at a time.
func (l *looker) look(n *Node, s *incident.State) {
	n.lookAtMonitor(s)
	n.primary.look(s)
	s.Opened = n.openedAt
	if n.audit != nil {
		s.Lost["audit_incomplete"] = n.audit.Lost.Load()
	}
	s.OpenFiles = l.openFiles()
	for _, c := range l.limits {
		if most, is := c.refuses(); is {
			s.Refusals = append(s.Refusals, incident.Refusal{What: c.name, Most: most})
		}
	}
}

func (n *Node) lookAtMonitor(s *incident.State) {
	if n.monitor == nil {
		s.Unwatched = n.settings.TTL != "off"
		return
	}
	h := n.monitor.Health()
	s.Stalled, s.Lag, s.Orphans, s.Schedule, s.Redis = h.Stalled, h.Lag, h.Orphans, h.Down, h.Reasons[:len(h.Reasons)-len(h.Stalled)]
	late := n.monitor.LatenessWithin(incident.LateWithin)
	s.LateShare, s.ClockSkew = late.Share(), h.ClockSkew
	s.Pending, s.Silent = h.Pending, time.Since(h.LastTick)
	if h.LastTick.Before(n.openedAt) {
		s.Silent = time.Since(n.openedAt)
	}
	s.Lost["loop_restarted"] = h.Restarts
	for _, w := range n.monitor.Waits() {
		if w.Burns {
			s.Objectives = append(s.Objectives, incident.Missed{QueueName: incident.QueueName{VHost: w.VHost, Name: w.Queue}, Wait: w.Wait})
		}
	}
	s.Forecasts = n.monitor.Forecasts()
}

// look implements primary.
func (o *ownBroker) look(s *incident.State) {
	b, l := o.broker, &o.n.looker
	s.Clock = b.UnixMillis(b.Now()) // a manual clock stands
	s.Blocked = blocked(b, o.n.settings.DataDir)
	s.DiskSilent, s.Unsaved, s.Recovered, s.ClockAhead = b.DiskSilent(), b.Unsaved(), b.Adopted(), b.ClockOffset()
	signs := broker.SignsOf(b)
	s.Letters, s.IdlePolicies = signs.LettersWaiting, signs.PoliciesNotInForce
	s.Lost["dead_letters_dropped"] = signs.LettersDropped
	s.DiskFullIn = l.diskFullIn(time.Now(), signs.DiskFree, signs.DiskLimit)
	s.SlowSyncs = l.slowSyncs()
	s.ClientErrors = clientErrors(o.server.Errors.All(), time.Now())
	for _, vh := range b.VHosts() {
		s.Unrouted = append(s.Unrouted, unrouted(vh, time.Now())...)
	}
	s.Held = l.held.of(o, s.Forecasts)
	for _, p := range o.parked() {
		s.Parked = append(s.Parked, parkedIn(&p))
	}
	if most, last := o.server.Full(); !last.IsZero() && (time.Since(last) <= refusedRecently || o.server.Connections() >= most) {
		s.Refusals = append(s.Refusals, incident.Refusal{What: "AMQP", Most: most})
	}
	s.Purposes, s.Slow = l.purposes(b, s), o.slow
}

// slow says who consumes a queue, and how fast.
func (o *ownBroker) slow(name incident.QueueName) (s incident.Slow) {
	vh, ok := o.broker.VHost(name.VHost)
	if !ok {
		return s
	}
	if q, err := vh.Queues.Get(name.Name); err == nil {
		s.Who, _ = broker.ClientsOf(&q.Messages)
		_, s.Held, s.Others = q.Messages.Counts()
		s.Others--
		s.In, s.Out = o.n.history.Rates(name.VHost, name.Name)
	}
	return s
}

// blocked says why publishers wait: how much there is of what, where that is set, and which queue has most; "": they do not.
func blocked(b *broker.Broker, dir string) string {
	why := b.Alarm.Last()
	if why == "" {
		return ""
	}
	if memory, _ := b.Alarm.Low(); memory {
		why += fmt.Sprintf("; %s are in use, of %s (CURFEW_MEMORY_LIMIT)", humanize.IBytes(uint64(b.Alarm.MemoryInUse())), humanize.IBytes(uint64(b.Alarm.MemoryLimit)))
	}
	if free, limit := b.Alarm.Disk(); free >= 0 && free < limit {
		why += fmt.Sprintf("; %s are free in %s, and publishers wait below %s (CURFEW_DISK_FREE_LIMIT)", humanize.IBytes(uint64(free)), dir, humanize.IBytes(uint64(limit)))
	}
	fullest, most := incident.QueueName{}, int64(0)
	for _, vh := range b.VHosts() {
		for _, q := range vh.Queues.List() {
			if s := q.Messages.State(); s.ReadyBytes+s.UnackedBytes > most {
				fullest, most = incident.QueueName{VHost: vh.Name(), Name: q.Name}, s.ReadyBytes+s.UnackedBytes
			}
		}
	}
	if most > 0 {
		why += "; the queue " + fullest.String() + " has " + humanize.IBytes(uint64(most)) + ", more than any other"
	}
	return why
}

// holders are the clients whose consumers hold messages of a queue past their deadlines now, and those of the stuck queues that hold any.
func (o *ownBroker) holders(stuck map[incident.QueueName]bool) (list []incident.PastDeadline) {
	known := map[string]int{} // where the list has a queue's messages of a client
	for _, h := range o.server.UnackedHolders() {
		name, first, count := incident.QueueName{VHost: h.Queue.VHost().Name(), Name: h.Queue.Name}, h.Earliest, h.PastDeadline
		if count == 0 && stuck[name] {
			first, count = o.broker.Now(), h.Unacked
		}
		if count == 0 {
			continue
		}
		firstAt, address := time.Now().Add(-o.broker.Now().Sub(first)).UnixMilli(), net.JoinHostPort(h.PeerHost, strconv.Itoa(h.PeerPort))
		key := address + " " + h.Queue.Label()
		if i, is := known[key]; is { // another consumer of the same connection
			of := &list[i]
			of.Count, of.Past, of.FirstDeadlineAt = of.Count+count, of.Past+h.PastDeadline, min(of.FirstDeadlineAt, firstAt)
			continue
		}
		known[key] = len(list)
		list = append(list, incident.PastDeadline{
			QueueName: name, Connection: cmp.Or(operate.ClientOf(h.Properties).Name, h.Connection), User: h.User, Address: address,
			Count: count, Past: h.PastDeadline, FirstDeadlineAt: firstAt,
		})
	}
	return list
}

// heldShare: looking at what consumers hold takes at most one part in heldShare of the time, but heldMost at the longest lies between two looks.
const (
	heldShare = 50
	heldMost  = 5 * time.Second
)

// pastDeadlines are the consumers that held messages past their deadlines when that was last looked at. That takes a step for each message
// that any of them holds.
type pastDeadlines struct {
	list []incident.PastDeadline
	next time.Time
}

func (p *pastDeadlines) of(o *ownBroker, forecasts []deadline.Forecast) []incident.PastDeadline {
	began, stuck := time.Now(), map[incident.QueueName]bool{}
	for i := range forecasts {
		if f := &forecasts[i]; f.NearlyDue && f.Stuck {
			stuck[incident.QueueName{VHost: f.VHost, Name: f.Queue}] = true
		}
	}
	if m := o.n.monitor; len(stuck) == 0 && m != nil && m.PendingBefore([]int64{o.broker.UnixMillis(o.broker.Now())}, nil)[0] == 0 {
		p.list, p.next = nil, began // each deadline that has passed has been fired
	} else if !began.Before(p.next) {
		p.list = o.holders(stuck)
		p.next = time.Now().Add(min(heldShare*time.Since(began), heldMost))
	}
	return p.list
}
