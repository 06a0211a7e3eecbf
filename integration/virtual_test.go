package integration

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap/zaptest"

	"curfew/broker"
	"curfew/broker/server"
	"curfew/monitor/schedule"
)

// virtual is a whole Curfew, in memory, inside a synctest bubble: its clock is the bubble's and its connections are pipes, since a socket
// would keep the bubble's time from passing.
type virtual struct {
	t        *testing.T
	broker   *broker.Broker
	listener *pipeListener
	stop     func()
}

func startVirtual(t *testing.T) *virtual {
	t.Helper()
	return startVirtualBy(t, broker.Options{Clock: func() int64 { return time.Now().UnixNano() }})
}

// startVirtualBy is startVirtual with a clock, which may be a manual one.
func startVirtualBy(t *testing.T, o broker.Options) *virtual {
	t.Helper()
	log := zaptest.NewLogger(t)
	o.User, o.Password, o.Log = "virtual", "virtual", log
	b, err := broker.New(o)
	check(t, err)
	m, err := schedule.New(schedule.Options{Primary: b.Deadlines(), Stepped: o.Manual, Log: log})
	check(t, err)
	if o.Manual {
		b.Manual.Fire(m.Step)
	}
	s := server.New(server.Options{Broker: b, Log: log, ConsumerTimeout: -1})
	v := &virtual{t: t, broker: b, listener: newPipeListener()}

	serving, stopServing := context.WithCancel(t.Context())
	monitoring, stopMonitoring := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { report(t, "serve", s.Serve(serving, v.listener)) })
	ended.Go(func() { report(t, "monitor", m.Run(monitoring)) })
	v.stop = func() {
		stopServing()
		synctest.Wait()
		stopMonitoring()
		ended.Wait()
		report(t, "close", b.Close())
	}
	return v
}

func report(t *testing.T, what string, err error) {
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// now is what the broker's clock shows.
func (v *virtual) now() time.Time {
	if v.broker.Manual == nil {
		return time.Now() // with its monotonic reading, as what is compared with it
	}
	return v.broker.Now().Time()
}

// advance lets d pass. A manual clock goes in the steps that Advance would take, so that clients see what time it is at each.
func (v *virtual) advance(d time.Duration) error {
	clock := v.broker.Manual
	if clock == nil {
		time.Sleep(d) // of the bubble's clock: it returns at once, with everything due in between done
		return nil
	}
	for {
		at, err := clock.Advance(v.t.Context(), 0)
		if err != nil {
			return err
		}
		step := at.Next.Sub(at.At)
		if at.Next == 0 || step > d {
			_, err := clock.Advance(v.t.Context(), d)
			return err
		}
		if _, err := clock.Advance(v.t.Context(), step); err != nil {
			return err
		}
		synctest.Wait()
		d -= step
	}
}

// dial connects the real client through a pipe.
func (v *virtual) dial() *amqp091.Connection {
	v.t.Helper()
	conn, err := amqp091.DialConfig("amqp://virtual:virtual@virtual", amqp091.Config{
		Dial: func(string, string) (net.Conn, error) { return v.listener.connect() },
	})
	check(v.t, err)
	return conn
}

// pipeListener accepts what connect made.
type pipeListener struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    func()
}

func newPipeListener() *pipeListener {
	closed := make(chan struct{})
	return &pipeListener{accepted: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

func (l *pipeListener) connect() (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.accepted <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.close()
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
