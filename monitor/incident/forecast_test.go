package incident

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestRisk never says of the past that it comes.
func TestRisk(t *testing.T) {
	f := &deadline.Forecast{Ready: 30, AtRisk: 30, FirstMiss: 10_000, LastMiss: 50_000}
	require.Equal(t, "30 messages at risk: nobody consumes, the first expires in 2 s", Risk(f, 8_000))
	require.Equal(t, "30 messages at risk: nobody consumes, the first expires now", Risk(f, 10_000))
	require.Equal(t, "30 messages at risk: nobody consumes, the first expires now", Risk(f, 49_990))
	f.Consumers, f.AtRisk = 1, 1
	require.Equal(t, "1 message at risk: 30 messages wait, nothing is consumed yet, the first expires in 2 s", Risk(f, 8_000))
	f.Stuck = true
	require.Equal(t, "1 message at risk: 30 messages wait, its consumer takes nothing, the first expires in 2 s", Risk(f, 8_000))
}

// TestForecastsAreOfOneMoment: whatever is shown of the forecasts is what the incidents were judged by, in the metrics, too.
func TestForecastsAreOfOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		gauge := func(name string) (values []float64) {
			families, err := s.registry.Gather()
			require.NoError(t, err)
			for _, f := range families {
				if f.GetName() == name {
					values = append(values, f.GetMetric()[0].GetGauge().GetValue())
				}
			}
			return values
		}
		pass(2 * time.Second)
		require.Empty(t, gauge("curfew_forecast_misses"), "nothing is known")
		soon, later := atRisk(orders, 5), deadline.Forecast{Queue: "mails", AtRisk: 2}
		s.set(func(now *State) {
			now.Forecasts = []deadline.Forecast{soon, later, {Queue: "readings", AsMeant: 3}}
		})
		pass(2 * time.Second)
		for name, want := range map[string]float64{"curfew_forecast_misses": 7, "curfew_forecast_expiries_meant": 3, "curfew_queues_at_risk": 1, "curfew_queue_forecast_misses": 5} {
			require.Equal(t, []float64{want}, gauge(name), name)
		}
		require.Len(t, s.View().Forecasts, 3)
		pass(3 * time.Second)
		require.Len(t, s.List(), 1, "what is nearly due")
		s.set(func(now *State) { now.Forecasts = []deadline.Forecast{later} })
		require.Len(t, s.View().Forecasts, 3, "as the incidents were found")
		pass(time.Second)
		require.Len(t, s.View().Forecasts, 1)
	})
}
