package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"
)

const (
	// heartbeat is the heartbeat of connections, unless the address sets another one.
	heartbeat = 5 * time.Second
	// holdHeartbeat is the heartbeat of connections that hold messages. When a process hangs, RabbitMQ takes its messages
	// back after two or three of them.
	holdHeartbeat = 2 * time.Second
	// serverSilence is how much longer than the heartbeat allows a node may be silent on such a connection: a busy node must not cost
	// the connection, since everything held would go back.
	serverSilence = 5 * time.Second
	// dialLimit bounds reaching a node, TLS and the AMQP handshake together.
	dialLimit = 5 * time.Second
	// firstPause and longestPause bound the pause between rounds over all nodes when none can be reached.
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Options say how to reach a RabbitMQ cluster.
type Options struct {
	// URL is what ParseAddress takes.
	URL string
	// APIURL is where the management API is, http or https, on one node or several separated by commas, with user and password if they
	// are not those of URL; https may have the parameter cacertfile. Empty: Curfew does without the API, and cannot know much.
	APIURL string
	// Name is the name of the connections in RabbitMQ; "curfew" if empty.
	Name string
	// Log gets entries about nodes that cannot be reached; nil: no log.
	Log *zap.Logger
}

// Cluster is a RabbitMQ cluster outside of this process. It is safe for concurrent use.
type Cluster struct {
	Address Address // where the nodes are; nobody changes it

	api    *api // nil: there is none
	name   string
	log    *zap.Logger
	listed atomic.Bool // the management API has once said what queues there are

	mu     sync.Mutex
	next   int    // the node that the next connection tries first
	server Server // of the last connection
	down   bool   // the last round reached no node
	gets   map[string]read
}

// Open checks the options. It connects to nothing.
func Open(o Options) (*Cluster, error) {
	address, err := ParseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Address: address, name: cmp.Or(o.Name, "curfew"), log: cmp.Or(o.Log, zap.NewNop())}
	if o.APIURL != "" {
		if c.api, err = newAPI(o.APIURL, address); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Server returns what the node of the last connection says about itself; the zero value before
// the first connection.
func (c *Cluster) Server() Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// Connect opens a connection to one of the nodes, in the virtual host of the address. It
// begins with the node that was reached last. When no node can be reached, it tries them
// all again after a pause, which grows to five seconds, until ctx ends; the error is then
// that of ctx with the reasons of the last round. The caller owns the connection, and calls
// Connect again when it is lost. purpose is a part of its name in RabbitMQ. holds: it is to hold messages, and if this
// process hangs, RabbitMQ soon takes them back.
func (c *Cluster) Connect(ctx context.Context, purpose string, holds bool) (*amqp091.Connection, error) {
	beat := heartbeat
	if holds {
		beat = holdHeartbeat
	}
	return c.connect(ctx, c.Address.VHost, purpose, beat)
}

// ConnectOnce is Connect with one round over the nodes.
func (c *Cluster) ConnectOnce(ctx context.Context, purpose string) (*amqp091.Connection, error) {
	return c.round(ctx, c.Address.VHost, purpose, heartbeat)
}

func (c *Cluster) connect(ctx context.Context, vhost, purpose string, heartbeat time.Duration) (*amqp091.Connection, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, err := c.round(ctx, vhost, purpose, heartbeat)
		if err == nil {
			return conn, nil
		}
		if !deadline.Sleep(ctx, pause*4/5+rand.N(pause*2/5)) { // at random, or all that lost a node would come back at once
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// round tries each node once.
func (c *Cluster) round(ctx context.Context, vhost, purpose string, heartbeat time.Duration) (*amqp091.Connection, error) {
	conn, at, err := eachNode(ctx, c, func(node string) (*amqp091.Connection, error) { return c.dial(ctx, node, vhost, purpose, heartbeat) })
	if err == nil {
		c.reached(at, serverOf(conn.Properties))
		return conn, nil
	}
	if vhost == c.Address.VHost && c.noteDown() { // not if it is about events alone
		c.log.Warn("no node of RabbitMQ can be reached; trying again", zap.Stringer("address", c.Address), zap.Error(err))
	}
	return nil, err
}

// eachNode dials the nodes, beginning with the one that was reached last, and returns the first connection and the place of its node.
func eachNode[T any](ctx context.Context, c *Cluster, dial func(node string) (T, error)) (conn T, at int, err error) {
	c.mu.Lock()
	first := c.next
	c.mu.Unlock()
	var errs []error
	for i := range c.Address.nodes {
		at = (first + i) % len(c.Address.nodes)
		if conn, err = dial(c.Address.nodes[at]); err == nil {
			return conn, at, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", c.Address.Nodes()[at], withoutURL(err)))
		if ctx.Err() != nil {
			break
		}
	}
	return conn, at, fmt.Errorf("connect to RabbitMQ: %w", errors.Join(errs...))
}

func (c *Cluster) reached(at int, s Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next, c.server, c.down = at, s, false
}

// noteDown reports whether this is the first round in which no node answered.
func (c *Cluster) noteDown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.down
	c.down = true
	return !was
}

func (c *Cluster) dial(ctx context.Context, node, vhost, purpose string, heartbeat time.Duration) (*amqp091.Connection, error) {
	properties := amqp091.NewConnectionProperties()
	properties["product"] = "Curfew"
	properties.SetClientConnectionName(c.name + ": " + purpose)
	dialer := net.Dialer{Timeout: dialLimit}
	return amqp091.DialConfig(node, amqp091.Config{
		Vhost:      vhost,
		Heartbeat:  heartbeat,
		Properties: properties,
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err == nil {
				err = conn.SetDeadline(time.Now().Add(dialLimit)) // for the handshakes; the client removes it after them
			}
			if heartbeat == holdHeartbeat {
				return slowServerConn{conn}, err
			}
			return conn, err
		},
	})
}

// slowServerConn waits longer for the server than the client asks it to.
type slowServerConn struct{ net.Conn }

// SetReadDeadline implements net.Conn.
func (c slowServerConn) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		at = at.Add(serverSilence)
	}
	return c.Conn.SetReadDeadline(at)
}
