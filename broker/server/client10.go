package server

import (
	"context"
	"strings"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
	"curfew/broker/server/internal/manage"
)

// client10 is what a connection has for a client of AMQP 1.0. It belongs to the reader; frameMax does
// not change once a session can exist.
type client10 struct {
	c        *connection
	frameMax int  // of frames to the client, in octets
	opened   bool // open was sent

	// What comes with every message, parsed in place:
	transfer    amqp10.Transfer
	disposition amqp10.Disposition
	state       amqp10.State

	bus *busClient // nil: the client speaks RabbitMQ's dialect
}

const (
	channelMax10 = 254
	// minIdle10 is the shortest idle time-out that a client may have.
	minIdle10 = 100 * time.Millisecond
	// inWindow is how many transfers a client may send on a session before it is given more.
	inWindow = 16384
	// linkCredit is how many messages a client may send on a link before it is given more.
	linkCredit = 4096
)

// begin10 answers the header of SASL. Without SASL nobody gets in.
func begin10(c *connection) *client10 {
	p := &client10{c: c, frameMax: amqp10.MinFrameSize}
	mechanisms := amqp10.Array{amqp10.Symbol("PLAIN")}
	if c.handshake.client.certificate() != nil {
		mechanisms = append(mechanisms, amqp10.Symbol("EXTERNAL"))
	}
	if c.srv.opts.ServiceBus.On() {
		mechanisms = append(mechanisms, amqp10.Symbol(busMechanism), amqp10.Symbol(busAnonymous))
	}
	c.out.SendRaw([]byte(amqp10.SASLHeader))
	p.send(0, &amqp10.SASLMechanisms{Mechanisms: mechanisms})
	return p
}

// send sends a frame without a payload.
func (p *client10) send(channel uint16, m amqp10.Performative) {
	p.c.out.SendRaw(amqp10.AppendFrame(nil, channel, m, nil))
}

// frames is connection.frames for a client of AMQP 1.0.
func (p *client10) frames(b []byte) (used int, err error) {
	return p.c.eachFrame(b, func(b []byte) (n int, id uint16, err error) {
		if p.c.phase == awaitTuneOk {
			n, err = p.header(b)
			return n, 0, err
		}
		f, n, err := amqp10.ParseFrame(b, p.c.frameMax)
		if err != nil {
			err = amqp.NewException(amqp.FrameError, 0, 0, "%s", err)
		} else if n > 0 {
			err = p.frame(f)
		}
		return n, f.Channel + 1, err
	})
}

// header reads the header that follows the login.
func (p *client10) header(b []byte) (n int, err error) {
	if len(b) < len(amqp10.ProtocolHeader) {
		return 0, nil
	}
	if string(b[:len(amqp10.ProtocolHeader)]) != amqp10.ProtocolHeader {
		return 0, errEnd
	}
	p.c.out.SendRaw([]byte(amqp10.ProtocolHeader))
	p.c.phase = awaitOpen
	return len(amqp10.ProtocolHeader), nil
}

func (p *client10) frame(f amqp10.Frame) error {
	c := p.c
	if len(f.Body) == 0 {
		return nil
	}
	if c.phase == running && f.Type == amqp10.FrameAMQP {
		if payload, is, err := amqp10.ParseTransfer(f.Body, &p.transfer); is && err == nil {
			return p.onSession(f.Channel, &p.transfer, payload)
		}
		if is, err := amqp10.ParseDisposition(f.Body, &p.disposition, &p.state); is && err == nil {
			return p.onSession(f.Channel, &p.disposition, nil)
		}
	}
	m, payload, err := amqp10.ParsePerformative(f.Body)
	if err != nil {
		return amqp.NewException(amqp.SyntaxError, 0, 0, "%s", err)
	}
	if (c.phase == awaitStartOk) != (f.Type == amqp10.FrameSASL) {
		return amqp.NewException(amqp.UnexpectedFrame, 0, 0, "a frame of this type is not expected now")
	}
	switch m := m.(type) {
	case *amqp10.SASLInit:
		return p.login(m)
	case *amqp10.Open:
		if c.phase == awaitOpen {
			return p.open(m)
		}
	case *amqp10.Close:
		if c.phase == closing {
			c.ended = true
			return nil
		}
		c.flush()
		c.startClosing()
		p.send(0, &amqp10.Close{})
		return nil
	default:
		if c.phase == closing {
			return nil
		}
		if c.phase == running {
			return p.onSession(f.Channel, m, payload)
		}
	}
	return amqp.NewException(amqp.UnexpectedFrame, 0, 0, "%T is not expected now", m)
}

func (p *client10) login(m *amqp10.SASLInit) error {
	c, h := p.c, p.c.handshake
	h.mechanism = m.Mechanism
	if c.srv.opts.ServiceBus.On() && (m.Mechanism == busMechanism || m.Mechanism == busAnonymous) {
		p.bus = &busClient{claims: map[string]busClaims{}, local: !h.client.Remote, idle: time.AfterFunc(busIdle, func() {
			c.forceClose(amqp.NewException(amqp.ConnectionForced, 0, 0, "no valid token within %s", busIdle))
		})}
		context.AfterFunc(c.ctx, func() { p.bus.idle.Stop() })
		c.userName, c.phase = c.srv.opts.ServiceBus.User, awaitTuneOk
		p.send(0, &amqp10.SASLOutcome{})
		return nil
	}
	user, err := c.srv.logins.Authenticate(c.ctx, &h.client, m.Mechanism, m.Response)
	c.srv.Logins.Note(err)
	if err != nil {
		p.send(0, &amqp10.SASLOutcome{Code: 1})
		h.tellRefusal = false
		return h.refuseLogin(err)
	}
	c.nc.SetDeadline(time.Now().Add(handshakeTimeout))
	c.userName, c.phase = user.Name, awaitTuneOk
	p.send(0, &amqp10.SASLOutcome{})
	return nil
}

func (p *client10) open(m *amqp10.Open) error {
	c, h := p.c, p.c.handshake
	if m.MaxFrameSize < amqp10.MinFrameSize {
		return amqp.NewException(amqp.NotAllowed, 0, 0, "max-frame-size %d is below %d", m.MaxFrameSize, amqp10.MinFrameSize)
	}
	idle := time.Duration(m.IdleTimeout.Value) * time.Millisecond
	if m.IdleTimeout.Value > 0 && idle < minIdle10 {
		return amqp.NewException(amqp.NotAllowed, 0, 0, "idle-time-out %s is below %s", idle, minIdle10)
	}
	vhost := "/"
	if name, given := strings.CutPrefix(m.Hostname, "vhost:"); given && p.bus == nil { // entities are in /
		vhost = name
	}
	h.properties = amqp.AppendTable(nil, convert.ClientProperties(m))
	h.heartbeat = offeredHeartbeat
	c.channelMax = channelMax10
	if m.ChannelMax < channelMax10 {
		c.channelMax = m.ChannelMax
	}
	c.frameMax = c.srv.opts.FrameMax
	p.frameMax = int(min(m.MaxFrameSize, c.srv.opts.FrameMax))
	p.opened = true
	p.send(0, &amqp10.Open{
		ContainerID: manage.ContainerID, MaxFrameSize: c.frameMax, ChannelMax: c.channelMax, IdleTimeout: amqp10.Uint(uint32(offeredHeartbeat.Milliseconds())),
		Properties: amqp10.Map{ // RabbitMQ's own clients look for its name and version, and for the node
			{Key: amqp10.Symbol("product"), Value: "RabbitMQ"}, {Key: amqp10.Symbol("version"), Value: RabbitMQVersion}, {Key: amqp10.Symbol("node"), Value: c.srv.opts.Node},
			{Key: amqp10.Symbol("information"), Value: "Curfew " + c.srv.opts.Version + ", which works as RabbitMQ does"},
		},
	})
	if err := h.enter(vhost); err != nil {
		return err
	}
	if idle > 0 {
		c.out.Heartbeats(idle, amqp10.Heartbeat)
	}
	return nil
}

// onSession passes a frame to its session.
func (p *client10) onSession(channel uint16, m amqp10.Performative, payload []byte) error {
	c := p.c
	ch := c.channels.open[channel+1]
	if begin, is := m.(*amqp10.Begin); is {
		if ch != nil || channel > c.channelMax {
			return amqp.NewException(amqp.ChannelError, 0, 0, "channel %d is in use, or above channel-max", channel)
		}
		ch, err := openChannel(c, channel+1)
		if err != nil {
			return err
		}
		ch.ten = newSession10(p, ch, begin)
		return nil
	}
	if ch == nil {
		return amqp.NewException(amqp.ChannelError, 0, 0, "no session on channel %d", channel)
	}
	if _, is := m.(*amqp10.End); is {
		if !ch.closing {
			ch.close()
			p.send(channel, &amqp10.End{})
		}
		c.removeChannel(ch)
		return nil
	}
	if ch.closing {
		return nil
	}
	return ch.ten.frame(m, payload)
}

func (p *client10) sendClose(e *amqp.Exception) {
	if p.c.phase < awaitOpen {
		return // there is no close before open
	}
	if !p.opened { // a close must follow an open
		p.opened = true
		p.send(0, &amqp10.Open{ContainerID: manage.ContainerID, MaxFrameSize: amqp10.Unlimited, ChannelMax: channelMax10})
	}
	p.send(0, &amqp10.Close{Ending: amqp10.Ending{Error: convert.ErrorOf(e)}})
}
