package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/monitor/history"
)

// TestWhatUsersDoIsMarked: a connection that was closed, with whose it was, and a replay.
func TestWhatUsersDoIsMarked(t *testing.T) {
	n := &Node{history: history.New(history.Options{Log: zap.NewNop()})}
	n.changed(operate.Change{Operation: admin.CloseConnection.Name, By: operate.Actor{Name: "guest"}, Result: "done", Values: map[string]any{"client": "worker (user ann, h)"}})
	n.changed(operate.Change{Operation: admin.CloseConnection.Name, By: operate.Actor{Name: "guest"}, Result: "refused", Values: map[string]any{"client": "other"}})
	n.changed(operate.Change{Operation: operate.StartReplay.Name, By: operate.Actor{Name: "guest"}, Result: "done", At: operate.QueueName{VHost: "/", Name: "dead"}})
	var texts []string
	for _, m := range n.history.Changes(time.Hour, 5, nil) {
		if m.Kind == history.Changed {
			texts = append(texts, m.Text)
		}
	}
	require.ElementsMatch(t, []string{"connection closed by guest: worker (user ann, h)", "replay of dead letters started by guest: dead (vhost /)"}, texts)
	require.Equal(t, "guest", n.looker.closed["worker (user ann, h)"].by)
	require.NotContains(t, n.looker.closed, "other")
}
