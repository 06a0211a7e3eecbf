package operate_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
)

// TestAttemptsAreBounded: what a user tries and may not do fills neither the log nor the audit, and hides nobody else's attempts.
func TestAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		nobody, other := s.user("nobody", access.Management), s.user("other", access.Management)
		root := s.user("root", access.Administrator)
		for range 1000 {
			_, err := operate.PurgeQueue.Do(t.Context(), s.Operations, nobody, operate.PurgeRequest{VHost: "/", Queue: "dlq", All: true})
			require.True(t, operate.Refused(err))
		}
		require.Len(t, s.changed(), 30)
		_, err := operate.PurgeQueue.Do(t.Context(), s.Operations, other, operate.PurgeRequest{VHost: "/", Queue: "dlq", All: true})
		require.Error(t, err)
		_, err = admin.SetUser.Do(t.Context(), s.Operations, root, admin.UserSettings{User: "new", UserTags: admin.UserTags{Tags: []string{}}})
		require.NoError(t, err)
		require.Len(t, s.changed(), 32, "others are recorded, and what is done")

		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, s.changed(), 33)
		sum := s.changed()[32]
		require.Equal(t, operate.Change{Operation: operate.ManyAttempts, By: nobody, Result: "refused", Detail: "attempts 970", Values: map[string]any{"attempts": int64(970)}}, sum)
		require.Equal(t, 33, s.records.Len())
		_, err = operate.PurgeQueue.Do(t.Context(), s.Operations, nobody, operate.PurgeRequest{VHost: "/", Queue: "dlq", All: true})
		require.Error(t, err)
		require.Len(t, s.changed(), 34, "the next minute begins")

		for range 40 {
			_, err := operate.PurgeQueue.Do(t.Context(), s.Operations, nobody, operate.PurgeRequest{VHost: "/", Queue: "dlq", All: true})
			require.Error(t, err)
		}
		s.Recorder.Close()
		require.Equal(t, "attempts 11", s.changed()[len(s.changed())-1].Detail, "a stop does not wait for the minute to end")
		s.Recorder.Close()
		time.Sleep(time.Minute)
		require.Len(t, s.changed(), 34+29+1, "and is the end of it")
	})
}

// TestLongListsAreShared for a second by all who ask, and are new after an operation.
func TestLongListsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		root := s.user("root", access.Administrator, "/")
		ready := func() (n int) {
			list, err := s.ListQueues(t.Context(), root)
			require.NoError(t, err)
			for _, q := range list {
				n += q.Ready
			}
			return n
		}
		publish := func() {
			vh, _ := s.b.VHost("/")
			publisher := vh.OwnPublisher()
			_, err := publisher.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: new(amqp.Properties).Append(nil)})
			require.NoError(t, err)
			publisher.Flush(nil)
		}
		publish()
		require.Equal(t, 1, ready())
		publish()
		require.Equal(t, 2, ready(), "a short list is computed for each")
		for i := range 1000 {
			s.declare(fmt.Sprint("many", i), nil)
		}
		require.Equal(t, 2, ready())
		publish()
		require.Equal(t, 2, ready(), "as it was a moment ago")
		time.Sleep(time.Second)
		require.Equal(t, 3, ready())
		_, err := s.Publish(t.Context(), root, &operate.Publication{Exchange: operate.ExchangeName{VHost: "/"}, RoutingKey: "q"})
		require.NoError(t, err)
		require.Equal(t, 4, ready(), "what a user did shows at once")
		time.Sleep(time.Minute)
	})
}
