package changes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/monitor/alert"
	"curfew/monitor/changes"
	"curfew/monitor/rabbitmq"
)

// fakeRabbitMQ answers as a test says.
type fakeRabbitMQ struct{ err error }

func (f *fakeRabbitMQ) Allow(context.Context, string) error { return f.err }
func (f *fakeRabbitMQ) Pause(context.Context) error         { return f.err }
func (f *fakeRabbitMQ) Resume(context.Context) error        { return f.err }

// site is what a test changes, with what was recorded.
type site struct {
	*changes.Changes
	alerts   *alert.Alerts
	rabbitmq fakeRabbitMQ
	metrics  *prometheus.Registry
	records  []operate.Change
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{metrics: prometheus.NewRegistry()}
	var err error
	s.alerts, err = alert.New(alert.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	recorder := operate.NewRecorder(operate.RecorderOptions{Registerer: s.metrics, Changed: func(c operate.Change) { s.records = append(s.records, c) }})
	s.Changes = changes.New(changes.Options{Alerts: s.alerts, RabbitMQ: &s.rabbitmq, Recorder: recorder})
	return s
}

// last is the last record.
func (s *site) last() operate.Change { return s.records[len(s.records)-1] }

// calls are the changes, by what they are recorded as.
var calls = []struct {
	operation operate.Operation
	call      func(s *site, by operate.Actor) error
}{
	{operate.ChangeAlerts, func(s *site, by operate.Actor) error {
		_, err := s.AddSilence(by, alert.Silence{Queue: "orders", ExpiresAt: time.Now().Add(time.Hour)})
		return err
	}},
	{operate.ChangeAlerts, func(s *site, by operate.Actor) error { return s.EndSilence(by, s.alerts.Silences()[0].ID) }},
	{operate.ChangeAlerts, func(s *site, by operate.Actor) error {
		_, err := s.TestSinks(context.Background(), by, "log")
		return err
	}},
	{operate.PauseRabbitMQ, func(s *site, by operate.Actor) error { return s.PauseRabbitMQ(context.Background(), by) }},
	{operate.ResumeRabbitMQ, func(s *site, by operate.Actor) error { return s.ResumeRabbitMQ(context.Background(), by) }},
	{operate.AllowQueue, func(s *site, by operate.Actor) error { return s.AllowQueue(context.Background(), by, "orders") }},
}

// TestWhoMayChangeWhat: each change takes an administrator by each face, and is recorded once.
func TestWhoMayChangeWhat(t *testing.T) {
	for _, face := range []operate.Face{operate.API, operate.Dashboard} {
		for _, tag := range []string{access.Administrator, access.Monitoring, access.Policymaker, access.Management, ""} {
			s := newSite(t)
			_, err := s.alerts.AddSilence(alert.Silence{ExpiresAt: time.Now().Add(time.Minute)})
			require.NoError(t, err)
			for i, c := range calls {
				by := operate.Actor{Name: "u", Tags: []string{tag}, Face: face}
				err := c.call(s, by)
				want := "done"
				if tag == access.Administrator {
					require.NoError(t, err)
				} else {
					want = "refused"
					_, missing := errors.AsType[*operate.MissingRole](err)
					require.True(t, missing, "%v", err)
				}
				require.Len(t, s.records, i+1)
				require.Equal(t, []any{c.operation, by, want}, []any{s.last().Operation, s.last().By, s.last().Result})
			}
			require.Len(t, s.alerts.Silences(), 1)
			require.Equal(t, 4, testutil.CollectAndCount(s.metrics, "curfew_operations_total"))
		}
	}
}

// TestRecords: what was changed is in the record, and what failed is recorded as that.
func TestRecords(t *testing.T) {
	s, by := newSite(t), operate.Actor{Name: "ann", Tags: []string{access.Administrator}, Face: operate.API}
	made, err := s.AddSilence(by, alert.Silence{Queue: "orders", ExpiresAt: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, "ann", made.Author)
	require.Contains(t, s.last().Detail, "silence "+made.ID)
	require.NoError(t, s.EndSilence(by, made.ID))
	require.Equal(t, "silence_ended "+made.ID, s.last().Detail)
	require.NoError(t, s.AllowQueue(t.Context(), by, "orders"))
	require.Equal(t, operate.QueueName{Name: "orders"}, s.last().At)

	failed := func(err error, kind any) {
		t.Helper()
		require.ErrorAs(t, err, kind)
		require.Equal(t, "failed", s.last().Result)
		require.Contains(t, s.last().Detail, err.Error())
	}
	_, err = s.AddSilence(by, alert.Silence{Event: "late", ExpiresAt: time.Now().Add(time.Hour)})
	failed(err, new(*operate.Invalid))
	_, err = s.TestSinks(t.Context(), by, "none")
	failed(err, new(*operate.Invalid))
	failed(s.EndSilence(by, made.ID), new(*changes.NotFound))
	s.rabbitmq.err = rabbitmq.ErrNotLetGo
	failed(s.AllowQueue(t.Context(), by, "orders"), new(*changes.NotFound))
	s.rabbitmq.err = errors.New("no Redis")
	failed(s.AllowQueue(t.Context(), by, "orders"), new(*changes.Unavailable))
	require.ErrorIs(t, s.EndSilence(by, made.ID), operate.ErrNotFound)
}

// TestNothingToChange: without a monitor, and without a RabbitMQ, there is nothing to change.
func TestNothingToChange(t *testing.T) {
	c := changes.New(changes.Options{Recorder: operate.NewRecorder(operate.RecorderOptions{})})
	by := operate.Actor{Name: "ann", Tags: []string{access.Administrator}}
	require.ErrorIs(t, c.EndSilence(by, "x"), operate.ErrNotFound)
	require.ErrorIs(t, c.AllowQueue(t.Context(), by, "q"), operate.ErrNotFound)
}
