package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server"
	"curfew/monitor/dashboard"
)

// TestDashboardShowsAndTakesTheWallClocksTime, though Curfew's own clock is a day ahead.
func TestDashboardShowsAndTakesTheWallClocksTime(t *testing.T) {
	wall := func() int64 { return time.Now().UnixNano() }
	b, err := broker.New(broker.Options{Clock: func() int64 { return wall() + int64(24*time.Hour) }, Wall: wall})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	q, err := vh.DeclareQueue(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	p, hour := vh.OwnPublisher(), time.Now().Add(time.Hour).UnixMilli()
	properties := amqp.Properties{Headers: amqp.Table{"x-expires-at": hour}}
	_, err = p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)

	s, guest := &shownBroker{node: &node{broker: b, server: server.New(server.Options{Broker: b})}}, dashboard.User{Name: "guest", Admin: true}
	require.InDelta(t, time.Now().UnixMilli(), s.State().Now, 60_000)
	m, err := s.Look(guest, "/", "q", 1)
	require.NoError(t, err)
	require.Equal(t, hour, m.Deadline)
	letters, _, err := shownLetters{s}.Search(t.Context(), guest, "/", "q", dashboard.LetterFilter{}, 0, 10, 0)
	require.NoError(t, err)
	require.Equal(t, hour, letters[0].Deadline)
	outcome, err := s.ChangeDeadline(t.Context(), guest, "/", "q", 1, dashboard.DeadlineChange{Was: hour, To: hour + 60_000})
	require.NoError(t, err)
	require.Equal(t, "rescheduled", outcome)
	found, err := q.Browse(broker.Browse{Count: 1})
	require.NoError(t, err)
	require.Equal(t, b.Instant(hour+60_000), found[0].Deadline)
}
