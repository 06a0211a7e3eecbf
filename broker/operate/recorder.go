package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// RecorderOptions are the options of a Recorder. The zero value records nothing.
type RecorderOptions struct {
	Log *zap.Logger // nil: none
	// Changed is called with every change that is recorded; nil: none. It is called from any goroutine, and must not block.
	Changed func(Change)
	// Registerer for curfew_operations_total; nil: it is not registered.
	Registerer prometheus.Registerer
}

// Recorder records what users change: in the log, in curfew_operations_total, and by Changed. Safe for concurrent use.
type Recorder struct {
	log     *zap.Logger
	changed func(Change)
	counter *prometheus.CounterVec
	attempts
}

// NewRecorder makes a recorder. It panics if the metric is registered already.
func NewRecorder(o RecorderOptions) *Recorder {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	r := &Recorder{log: o.Log.Named("operate"), changed: o.Changed, counter: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "curfew_operations_total",
		Help: "Changes that users made or tried to make by the management API, the dashboard or the command line, by operation and by result: done, refused or failed.",
	}, []string{"operation", "result"})}
	if o.Registerer != nil {
		o.Registerer.MustRegister(r.counter)
	}
	return r
}

// Change is what a user did, or tried to do.
type Change struct {
	Operation Operation
	By        Actor
	At        QueueName      // what it was about; empty if that was not a queue
	Result    string         // "done", "refused" or "failed"
	Detail    string         // in words
	Values    map[string]any // what Detail says, by name
}

// Record records a change that a user made, or tried to make. Of the attempts that were refused or failed, it writes a bounded number (attempts).
func (r *Recorder) Record(a Actor, op Operation, at QueueName, err error, more ...zap.Field) {
	result := "done"
	switch {
	case Refused(err):
		result = "refused"
	case err != nil:
		result = "failed"
	}
	r.counter.WithLabelValues(string(op), result).Inc()
	sum := func(n int) { r.write(a, ManyAttempts, QueueName{}, "refused", nil, zap.Int("attempts", n)) }
	if err == nil || r.admit(a.Name, sum) {
		r.write(a, op, at, result, err, more...)
	}
}

// write writes a record to the log and calls changed.
func (r *Recorder) write(a Actor, op Operation, at QueueName, result string, err error, more ...zap.Field) {
	fields := append([]zap.Field{
		zap.String("operation", string(op)), zap.String("user", a.Name), zap.String("face", string(a.Face)), zap.String("result", result),
		zap.String("vhost", at.VHost), zap.String("queue", at.Name),
	}, more...)
	if err != nil && !errors.Is(err, context.Canceled) {
		fields = append(fields, zap.Error(err))
	}
	r.log.Info("operation", fields...)
	if r.changed != nil {
		values := zapcore.NewMapObjectEncoder()
		for _, f := range more {
			f.AddTo(values)
		}
		r.changed(Change{Operation: op, By: a, At: at, Result: result, Detail: words(values.Fields, err), Values: values.Fields})
	}
}

// words returns values as text.
func words(values map[string]any, err error) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] == "" { // it says nothing
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %v", name, values[name]))
	}
	if err != nil {
		parts = append(parts, err.Error())
	}
	return strings.Join(parts, ", ")
}
