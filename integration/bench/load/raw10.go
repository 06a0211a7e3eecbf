package load

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"sync"
	"time"

	"curfew/broker/amqp10"
)

// conn10 is a connection of AMQP 1.0 with session 0, without any client library.
type conn10 struct{ Conn }

func logIn10(rawURL string) (*conn10, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	nc, err := dial(u)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	c := &conn10{Conn{Conn: nc, buf: make([]byte, 4096)}}
	password, _ := u.User.Password()
	b := []byte(amqp10.SASLHeader)
	b = amqp10.AppendFrame(b, 0, &amqp10.SASLInit{Mechanism: "PLAIN", Response: []byte("\x00" + u.User.Username() + "\x00" + password)}, nil)
	b = append(b, amqp10.ProtocolHeader...)
	b = amqp10.AppendFrame(b, 0, &amqp10.Open{ContainerID: "curfew load", MaxFrameSize: frameMax, ChannelMax: 0}, nil)
	b = amqp10.AppendFrame(b, 0, &amqp10.Begin{IncomingWindow: math.MaxInt32, OutgoingWindow: math.MaxInt32, HandleMax: 255}, nil)
	if _, err := nc.Write(b); err != nil {
		return nil, err
	}
	for _, header := range []string{amqp10.SASLHeader, amqp10.ProtocolHeader} {
		if err := c.header(header); err != nil {
			return nil, err
		}
		if header == amqp10.ProtocolHeader {
			continue
		}
		outcome, err := await10[*amqp10.SASLOutcome](c)
		if err != nil || outcome.Code != 0 {
			return nil, cmp.Or(err, errors.New("load: login refused"))
		}
	}
	_, err = await10[*amqp10.Begin](c)
	return c, err
}

func (c *conn10) header(want string) error {
	for c.to-c.from < len(want) {
		if err := c.fill(); err != nil {
			return err
		}
	}
	if got := string(c.buf[c.from : c.from+len(want)]); got != want {
		return fmt.Errorf("load: the broker answered with the header %q", got)
	}
	c.from += len(want)
	return nil
}

// await10 reads until a frame of that kind arrives.
func await10[T amqp10.Performative](c *conn10) (found T, err error) {
	for {
		p, err := c.next()
		if err != nil {
			return found, err
		}
		if found, is := p.(T); is {
			return found, nil
		}
	}
}

// next reads a frame. An end is an error.
func (c *conn10) next() (amqp10.Performative, error) {
	for {
		f, n, err := amqp10.ParseFrame(c.buf[c.from:c.to], frameMax)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			if err := c.fill(); err != nil {
				return nil, err
			}
			continue
		}
		c.from += n
		if len(f.Body) == 0 {
			continue
		}
		p, _, err := amqp10.ParsePerformative(f.Body)
		if err != nil {
			return nil, err
		}
		return p, closing10(p)
	}
}

// closing10 returns the broker's reason for ending something.
func closing10(p amqp10.Performative) error {
	var e *amqp10.Error
	switch p := p.(type) {
	case *amqp10.Detach:
		e = p.Error
	case *amqp10.End:
		e = p.Error
	case *amqp10.Close:
		if e = p.Error; e == nil {
			return net.ErrClosed
		}
	}
	if e != nil {
		return fmt.Errorf("load: the broker said %s: %s", e.Condition, e.Description)
	}
	return nil
}

// producer10 publishes on one link. Without a window its transfers are settled.
type producer10 struct {
	number   int
	conn     *conn10
	frame    []byte // of one message
	id, body int    // where the delivery's id and the body are in it
	window   *window
	confirms *confirms

	mu      sync.Mutex
	granted sync.Cond
	sent    uint32
	limits  [2]uint32 // of the session and of the link: how much may have been sent
	ended   bool
}

func newProducer10(s *Spec, i int) (*producer10, error) {
	c, err := logIn10(s.URL)
	if err != nil {
		return nil, err
	}
	p := &producer10{number: i, conn: c, window: newWindow(s.Window)}
	p.granted.L = &p.mu
	if s.Window > 0 {
		p.confirms = newConfirms(s.Window)
	}
	message := amqp10.AppendPerformative(nil, &amqp10.Header{Durable: s.Persist, Priority: 4})
	message = amqp10.AppendSection(message, amqp10.SectionData, make([]byte, s.Size))
	const id = 0x01020304 // to be found and replaced
	p.frame = amqp10.AppendFrame(nil, 0, &amqp10.Transfer{DeliveryID: amqp10.Uint(id), DeliveryTag: make([]byte, 4), MessageFormat: amqp10.Uint(0), Settled: s.Window == 0}, message)
	for p.id = 0; binary.BigEndian.Uint32(p.frame[p.id:]) != id; p.id++ {
	}
	p.body = len(p.frame) - s.Size
	target := &amqp10.Target{Address: "/queues/" + url.PathEscape(s.QueueName(portion(i, s.Producers, s.Queues)[0]))}
	_, err = c.Write(amqp10.AppendFrame(nil, 0, &amqp10.Attach{Name: "producer", Target: target, InitialDeliveryCount: amqp10.Uint(0)}, nil))
	return p, err
}

func (p *producer10) work(r *run) {
	if p.confirms != nil {
		p.confirms.measuring = &r.measuring
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		r.clientEnded(p.read(r))
		p.end()
	})
	err := p.write(r)
	if r.clientEnded(err); err == nil {
		<-r.over
		p.conn.SetDeadline(time.Now().Add(closeTimeout))
		_, err = p.conn.Write(amqp10.AppendFrame(nil, 0, &amqp10.Close{}, nil))
	}
	if err != nil {
		p.conn.Close()
	}
	reading.Wait()
	if p.confirms != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.confirm.Merge(&p.confirms.delays)
		r.nacked += p.confirms.nacked
	}
}

func (p *producer10) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.granted.Broadcast()
}

func (p *producer10) stop() {
	p.window.close()
	p.end()
	p.conn.SetWriteDeadline(time.Now().Add(closeTimeout))
}

func (p *producer10) close() { p.conn.Close() }

// credit waits until at least one message may be sent, and returns how many; 0: it is the end.
func (p *producer10) credit(most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		free := min(int32(p.limits[0]-p.sent), int32(p.limits[1]-p.sent))
		switch {
		case p.ended:
			return 0
		case free > 0:
			return min(most, int(free))
		}
		p.granted.Wait()
	}
}

func (p *producer10) write(r *run) error {
	most := max(1, 32<<10/len(p.frame))
	var out []byte
	for !r.stopping.Load() {
		n := r.awaitAllowance(p.number, int(p.sent), most)
		if n = min(n, p.credit(n)); n == 0 {
			return nil
		}
		n = p.window.take(n)
		room := r.backlog.take(n)
		if room == 0 {
			return nil
		}
		p.window.give(n - room)
		now := r.now()
		if p.confirms != nil {
			p.confirms.add(room, now)
		}
		out = out[:0]
		for i := range room {
			if r.Size >= stampSize {
				binary.BigEndian.PutUint64(p.frame[p.body:], uint64(now))
			}
			binary.BigEndian.PutUint32(p.frame[p.id:], p.sent+uint32(i))
			out = append(out, p.frame...)
		}
		if _, err := p.conn.Write(out); err != nil {
			return err
		}
		p.mu.Lock()
		p.sent += uint32(room)
		p.mu.Unlock()
		r.published.Add(int64(room))
	}
	return nil
}

// read handles flows and dispositions.
func (p *producer10) read(r *run) error {
	for {
		m, err := p.conn.next()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *amqp10.Flow:
			p.mu.Lock()
			p.limits[0] = m.NextIncomingID.Value + m.IncomingWindow
			if m.Handle.Set {
				p.limits[1] = m.DeliveryCount.Value + m.LinkCredit.Value
			}
			p.granted.Broadcast()
			p.mu.Unlock()
		case *amqp10.Disposition:
			now := r.now()
			for id := m.First; id != m.Last.Value+1; id++ {
				n := p.confirms.confirm(uint64(id)+1, false, m.State.Kind != amqp10.StateAccepted, now)
				r.confirmed.Add(int64(n))
				p.window.give(n)
			}
		}
	}
}

// consumer10 consumes on one link for each queue.
type consumer10 struct {
	conn    *conn10
	links   uint32
	credit  uint32
	latency Histogram
}

func newConsumer10(s *Spec, i int) (*consumer10, error) {
	c, err := logIn10(s.URL)
	if err != nil {
		return nil, err
	}
	k := &consumer10{conn: c, credit: uint32(cmp.Or(s.Prefetch, 10_000))}
	var b []byte
	for _, q := range portion(i, s.Consumers, s.Queues) {
		a := &amqp10.Attach{Name: fmt.Sprint("consumer ", q), Handle: k.links, Role: amqp10.RoleReceiver, Source: &amqp10.Source{Address: "/queues/" + url.PathEscape(s.QueueName(q))}}
		if s.Ack == "auto" {
			a.SenderMode = amqp10.SendSettled
		}
		b = amqp10.AppendFrame(b, 0, a, nil)
		b = amqp10.AppendFrame(b, 0, k.flow(k.links, 0, 0), nil)
		k.links++
	}
	_, err = c.Write(b)
	return k, err
}

func (c *consumer10) flow(handle, received, delivered uint32) *amqp10.Flow {
	return &amqp10.Flow{
		NextIncomingID: amqp10.Uint(received), IncomingWindow: math.MaxInt32, OutgoingWindow: math.MaxInt32,
		Handle: amqp10.Uint(handle), DeliveryCount: amqp10.Uint(delivered), LinkCredit: amqp10.Uint(c.credit),
	}
}

func (c *consumer10) work(r *run) {
	r.clientEnded(c.read(r))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latency.Merge(&c.latency)
}

func (c *consumer10) stop()  { c.conn.Close() }
func (c *consumer10) close() { c.conn.Close() }

// read counts deliveries that fit one frame each.
func (c *consumer10) read(r *run) error {
	var out []byte
	var received uint32
	delivered, told := make([]uint32, c.links), make([]uint32, c.links) // of each link
	settled := amqp10.AppendFrame(nil, 0, &amqp10.Disposition{Role: amqp10.RoleReceiver, First: 0x01020304, Settled: true, State: &amqp10.State{Kind: amqp10.StateAccepted}}, nil)
	at := 0
	for ; binary.BigEndian.Uint32(settled[at:]) != 0x01020304; at++ {
	}
	return c.conn.readEach(func(b []byte) (used int, err error) {
		now, measuring := r.now(), r.Size >= stampSize && r.measuring.Load()
		out = out[:0]
		var some int
		var first, last uint32
		for {
			f, n, err := amqp10.ParseFrame(b[used:], frameMax)
			if err != nil {
				return used, err
			}
			if n == 0 {
				break
			}
			used += n
			handle, id, is := transferOf(f.Body)
			if !is {
				if len(f.Body) == 0 {
					continue
				}
				p, _, err := amqp10.ParsePerformative(f.Body)
				if err = cmp.Or(err, closing10(p)); err != nil {
					return used, err
				}
				continue
			}
			if measuring {
				c.latency.Record(time.Duration(now - int64(binary.BigEndian.Uint64(f.Body[len(f.Body)-r.Size:]))))
			}
			if some++; some == 1 {
				first = id
			}
			last = id
			received++
			delivered[handle]++
			if r.Ack == "each" {
				binary.BigEndian.PutUint32(settled[at:], id)
				out = append(out, settled...)
			}
		}
		if some == 0 {
			return used, nil
		}
		r.consumed.Add(int64(some))
		r.backlog.give(some)
		if r.Ack == "multiple" {
			out = amqp10.AppendFrame(out, 0, &amqp10.Disposition{Role: amqp10.RoleReceiver, First: first, Last: amqp10.Uint(last), Settled: true, State: &amqp10.State{Kind: amqp10.StateAccepted}}, nil)
		}
		for handle, n := range delivered {
			if n-told[handle] >= max(1, c.credit/8) {
				told[handle] = n
				out = amqp10.AppendFrame(out, 0, c.flow(uint32(handle), received, n), nil)
			}
		}
		if len(out) > 0 {
			_, err = c.conn.Write(out)
		}
		return used, err
	})
}

// transferOf reads the handle and the id of a transfer without parsing the rest.
func transferOf(b []byte) (handle, id uint32, is bool) {
	const transfer, list8 = 0x14, 0xc0
	if len(b) < 24 || b[2] != transfer {
		return 0, 0, false
	}
	if b[3] == list8 {
		b = b[6:]
	} else {
		b = b[12:]
	}
	handle, b = uintOf(b)
	id, _ = uintOf(b)
	return handle, id, true
}

// uintOf reads a uint in any of its encodings.
func uintOf(b []byte) (n uint32, rest []byte) {
	switch b[0] {
	case 0x52:
		return uint32(b[1]), b[2:]
	case 0x70:
		return binary.BigEndian.Uint32(b[1:]), b[5:]
	}
	return 0, b[1:]
}
