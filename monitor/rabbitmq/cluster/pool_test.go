package cluster

import (
	"context"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// TestUsersShareConnections: beyond the most there may be, each user gets the connection that fewest use; one that leaves makes room.
func TestUsersShareConnections(t *testing.T) {
	opened := 0
	p := &Pool{Most: 3, Open: func(context.Context, string) (*amqp091.Connection, error) {
		opened++
		return new(amqp091.Connection), nil
	}}
	users := map[*amqp091.Connection]int{}
	var all []*Conn
	for range 8 {
		c, err := p.Connect(t.Context(), "", nil)
		require.NoError(t, err)
		users[c.conn]++
		all = append(all, c)
	}
	require.Equal(t, 3, opened)
	require.ElementsMatch(t, []int{3, 3, 2}, []int{users[all[0].conn], users[all[1].conn], users[all[2].conn]})
	for _, c := range all[:2] { // the first of each of two connections
		c.Close()
	}
	c, err := p.Connect(t.Context(), "", all[0])
	require.NoError(t, err)
	require.Equal(t, 3, opened)
	require.Contains(t, users, c.conn)
	require.False(t, all[2].IsClosed(), "others use it")
}

// TestWhoMayHaveEndedAConnection gets one of its own; the end of a node is nobody's fault.
func TestWhoMayHaveEndedAConnection(t *testing.T) {
	for code, alone := range map[int]bool{amqp091.InternalError: true, amqp091.FrameError: false, amqp091.ConnectionForced: false} {
		p := &Pool{Most: 1, Open: func(context.Context, string) (*amqp091.Connection, error) { return new(amqp091.Connection), nil }}
		a, err := p.Connect(t.Context(), "", nil)
		require.NoError(t, err)
		b, err := p.Connect(t.Context(), "", nil)
		require.NoError(t, err)
		closed := make(chan *amqp091.Error, 1)
		closed <- &amqp091.Error{Code: code}
		p.watch(a.of, closed)
		for _, one := range []*Conn{a, b} {
			require.ErrorContains(t, <-one.Lost(), "connection closed")
			again, err := p.Connect(t.Context(), "", one)
			require.NoError(t, err)
			require.Equal(t, alone, again.isAlone(), code)
		}
	}
}

// TestWaitingForAConnection: one opens it, the others wait for that. If it gives up, another one opens it.
func TestWaitingForAConnection(t *testing.T) {
	opens := make(chan int, 2)
	p := &Pool{Most: 1, Open: func(ctx context.Context, _ string) (*amqp091.Connection, error) {
		if opens <- 0; len(opens) > 1 {
			return new(amqp091.Connection), nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() { _, err := p.Connect(ctx, "", nil); first <- err }()
	require.Eventually(t, func() bool { return len(opens) == 1 }, time.Minute, time.Millisecond)
	go func() { _, err := p.Connect(t.Context(), "", nil); second <- err }()
	require.Eventually(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.open[0].users) == 2 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	require.NoError(t, <-second)
}
