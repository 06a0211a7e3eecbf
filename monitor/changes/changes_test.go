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
	"curfew/monitor/changes"
	"curfew/monitor/incident"
	"curfew/monitor/rabbitmq"
)

// fakeRabbitMQ answers as a test says.
type fakeRabbitMQ struct{ err error }

func (f *fakeRabbitMQ) Pause(context.Context) error  { return f.err }
func (f *fakeRabbitMQ) Resume(context.Context) error { return f.err }

// site is what a test changes, with what was recorded.
type site struct {
	*changes.Changes
	incidents *incident.Incidents
	rabbitmq  fakeRabbitMQ
	metrics   *prometheus.Registry
	records   []operate.Change
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{metrics: prometheus.NewRegistry()}
	var err error
	s.incidents, err = incident.New(incident.Options{Dir: t.TempDir(), Look: func(now *incident.State) { now.Blocked = "low on disk" }})
	require.NoError(t, err)
	recorder := operate.NewRecorder(operate.RecorderOptions{Registerer: s.metrics, Changed: func(c operate.Change) { s.records = append(s.records, c) }})
	s.Changes = changes.New(changes.Options{Incidents: s.incidents, RabbitMQ: &s.rabbitmq, Recorder: recorder})
	return s
}

// last is the last record.
func (s *site) last() operate.Change { return s.records[len(s.records)-1] }

// calls are the changes, by what they are recorded as.
var calls = []struct {
	operation operate.Operation
	call      func(s *site, by operate.Actor) error
}{
	{"add_maintenance", func(s *site, by operate.Actor) error {
		_, err := do(s, by, changes.AddWindow, window("orders"))
		return err
	}},
	{"end_maintenance", func(s *site, by operate.Actor) error { return s.endWindow(by, s.incidents.Windows()[0].ID) }},
	{"acknowledge_incident", func(s *site, by operate.Actor) error { return s.acknowledge(by, s.incidents.View().Open[0].ID, "1h") }},
	{"unacknowledge_incident", func(s *site, by operate.Actor) error {
		_, err := do(s, by, changes.Unacknowledge, changes.IncidentID{ID: s.incidents.View().Open[0].ID})
		return err
	}},
	{"test_sinks", func(s *site, by operate.Actor) error {
		_, err := do(s, by, changes.TestSinks, incident.TestRequest{Sink: "log"})
		return err
	}},
	{"pause_rabbitmq", func(s *site, by operate.Actor) error {
		_, err := do(s, by, changes.PauseRabbitMQ, operate.None{})
		return err
	}},
	{"resume_rabbitmq", func(s *site, by operate.Actor) error { return s.resume(by) }},
}

func do[Q, R any](s *site, by operate.Actor, op operate.Typed[Q, R], request Q) (R, error) {
	return changes.Do(context.Background(), s.Changes, by, op, request)
}

func window(queue string) incident.WindowRequest {
	return incident.WindowRequest{Window: incident.Window{Queue: queue}, Duration: "1h"}
}

func (s *site) endWindow(by operate.Actor, id string) error {
	_, err := do(s, by, changes.EndWindow, changes.WindowID{ID: id})
	return err
}

func (s *site) acknowledge(by operate.Actor, id, duration string) error {
	_, err := do(s, by, changes.Acknowledge, changes.Ack{ID: id, AckRequest: incident.AckRequest{Duration: duration}})
	return err
}

func (s *site) resume(by operate.Actor) error {
	_, err := do(s, by, changes.ResumeRabbitMQ, operate.None{})
	return err
}

// TestWhoMayChangeWhat: each change takes an administrator by each face, and is recorded once.
func TestWhoMayChangeWhat(t *testing.T) {
	for _, face := range []operate.Face{operate.API, operate.Dashboard} {
		for _, tag := range []string{access.Administrator, access.Monitoring, access.Policymaker, access.Management, ""} {
			s := newSite(t)
			_, err := s.incidents.AddWindow(incident.Window{Until: time.Now().Add(time.Minute)})
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
			require.Len(t, s.incidents.Windows(), 1)
			require.Nil(t, s.incidents.View().Open[0].Ack)
			require.Equal(t, len(calls), testutil.CollectAndCount(s.metrics, "curfew_operations_total"))
		}
	}
}

// TestRecords: what was changed is in the record, and what failed is recorded as that.
func TestRecords(t *testing.T) {
	s, by := newSite(t), operate.Actor{Name: "ann", Tags: []string{access.Administrator}, Face: operate.API}
	made, err := do(s, by, changes.AddWindow, window("orders"))
	require.NoError(t, err)
	require.Equal(t, "ann", made.Author)
	require.Contains(t, s.last().Detail, "maintenance "+made.ID)
	require.NoError(t, s.endWindow(by, made.ID))
	require.Equal(t, "maintenance_ended "+made.ID, s.last().Detail)

	failed := func(err error, kind any) {
		t.Helper()
		require.ErrorAs(t, err, kind)
		require.Equal(t, "failed", s.last().Result)
		require.Contains(t, s.last().Detail, err.Error())
	}
	_, err = do(s, by, changes.AddWindow, incident.WindowRequest{Window: incident.Window{Condition: "late"}, Duration: "1h"})
	failed(err, new(*operate.Invalid))
	_, err = do(s, by, changes.TestSinks, incident.TestRequest{Sink: "none"})
	failed(err, new(*operate.Invalid))
	failed(s.endWindow(by, made.ID), new(*operate.Missing))
	failed(s.acknowledge(by, "none", ""), new(*operate.Missing))
	failed(s.acknowledge(by, "none", "long"), new(*operate.Wrong))
	s.rabbitmq.err = rabbitmq.ErrNotPaused
	failed(s.resume(by), new(*operate.Missing))
	s.rabbitmq.err = errors.New("no Redis")
	failed(s.resume(by), new(*operate.Unavailable))
	require.ErrorIs(t, s.endWindow(by, made.ID), operate.ErrNotFound)
}

// TestNothingToChange: without RabbitMQ there is nothing to resume.
func TestNothingToChange(t *testing.T) {
	c := changes.New(changes.Options{Recorder: operate.NewRecorder(operate.RecorderOptions{})})
	by := operate.Actor{Name: "ann", Tags: []string{access.Administrator}}
	_, err := changes.Do(t.Context(), c, by, changes.ResumeRabbitMQ, operate.None{})
	require.ErrorIs(t, err, operate.ErrNotFound)
}
