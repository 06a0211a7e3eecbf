package management

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"curfew/broker"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// counts returns totals, each with its rate.
func (a *API) counts(c operate.Counts, keys ...any) object {
	rates, o := a.rates.Of(c, keys...), object{}
	for name, n := range c {
		o[name], o[name+"_details"] = n, object{"rate": rest.Rate(rates[name].PerSecond)}
	}
	return o
}

// messages adds the numbers of messages, each with its change per second.
func (a *API) messages(o object, all, ready, unacked int, keys ...any) {
	for name, n := range map[string]int{"messages": all, "messages_ready": ready, "messages_unacknowledged": unacked} {
		o[name], o[name+"_details"] = n, object{"rate": rest.Rate(a.rates.Change(keys, name, n).PerSecond)}
	}
}

// depthOf counts messages. Those that wait for another try are neither ready nor unacked.
func depthOf(vh *broker.VHost) (all, ready, unacked int) {
	for _, q := range vh.Queues.List() {
		r, u, _ := q.Messages.Counts()
		n, _, _ := q.Messages.Load()
		all, ready, unacked = all+n, ready+r, unacked+u
	}
	return all, ready, unacked
}

// maxSamples is the most steps in an answer, as in RabbitMQ.
const maxSamples = 500

// span is how far back samples are requested, and at which distance.
type span struct{ age, step time.Duration }

// spans has the spans that a query requests, by their prefixes: lengths, msg_rates, data_rates.
type spans map[string]span

// readSpans reads a query. A value that is not a number counts as missing, as in RabbitMQ.
func readSpans(v url.Values) (spans, error) {
	asked := spans{}
	for _, prefix := range []string{"lengths", "msg_rates", "data_rates", "node_stats"} {
		age, err := strconv.ParseInt(v.Get(prefix+"_age"), 10, 32)
		if err != nil {
			continue
		}
		step, err := strconv.ParseInt(v.Get(prefix+"_incr"), 10, 32)
		if err != nil {
			continue
		}
		if age <= 0 || step <= 0 || age/step > maxSamples {
			return nil, rest.Bad(fmt.Sprintf("Invalid range parameters: age %d, incr %d", age, step))
		}
		asked[prefix] = span{time.Duration(age) * time.Second, time.Duration(step) * time.Second}
	}
	return asked, nil
}

// addSamples adds the samples that the query requests under a prefix to the details in o, which has
// the counts of a thing. The newest sample, which is o's own, is the first.
func (r *request) addSamples(o object, key any, prefix string, names ...string) {
	s, wanted := r.asked[prefix]
	if !wanted {
		return
	}
	for _, name := range names {
		details, there := o[name+"_details"].(object)
		current, counted := rest.Number(o[name])
		if !there || !counted {
			continue
		}
		list := r.api.rates.Samples(key, name, uint64(current), s.age, s.step)
		details["samples"] = list
		details["avg"], details["avg_rate"] = averages(list)
	}
}

// averages returns the mean of the samples and their change per second.
func averages(list []operate.Sample) (avg, perSecond rest.Rate) {
	var sum float64
	for _, one := range list {
		sum += float64(one.Sample)
	}
	newest, oldest := list[0], list[len(list)-1]
	if took := newest.Timestamp - oldest.Timestamp; took > 0 {
		perSecond = rest.Rate((float64(newest.Sample) - float64(oldest.Sample)) * 1000 / float64(took))
	}
	return rest.Rate(sum / float64(len(list))), perSecond
}

// messageCounts are the counts under the prefix lengths.
var messageCounts = []string{"messages", "messages_ready", "messages_unacknowledged"}

// addStatSamples adds samples of everything in message_stats.
func (r *request) addStatSamples(o object, key any) {
	if _, wanted := r.asked["msg_rates"]; !wanted {
		return
	}
	stats, _ := o["message_stats"].(object)
	var names []string
	for name, v := range stats {
		if _, counted := rest.Number(v); counted {
			names = append(names, name)
		}
	}
	r.addSamples(stats, key, "msg_rates", names...)
}
