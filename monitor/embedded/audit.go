package embedded

import (
	"sync"

	"curfew/broker"
	"curfew/monitor/audit"
	"curfew/scheduler"
)

// Audit is what has a broker's expiries recorded in l (broker.Options.OnExpired); nil if
// l is.
func Audit(l *audit.Log) func([]broker.Expiry) {
	if l == nil {
		return nil
	}
	scratch := sync.Pool{New: func() any { return new([]audit.Record) }}
	return func(expired []broker.Expiry) {
		records := scratch.Get().(*[]audit.Record)
		defer scratch.Put(records)
		*records = (*records)[:0]
		for i := range expired {
			*records = append(*records, auditRecord(&expired[i]))
		}
		l.Add(*records)
		clear(*records)
	}
}

func auditRecord(e *broker.Expiry) audit.Record {
	deadline, at := e.Wall()
	return audit.Record{
		At: scheduler.Millis(at), Deadline: scheduler.Millis(deadline), VHost: e.VHost, Queue: e.Queue, MessageID: e.MessageID,
		Path: path(e.Path).String(), Outcome: action(e.Action).String(), Exchange: e.Exchange, RoutingKey: e.RoutingKey, To: e.To,
	}
}
