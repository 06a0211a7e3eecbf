package incident

import (
	"context"
	"net/http"
	"time"
)

const (
	// resendEvery is how often firing alerts are sent again.
	resendEvery = time.Minute
	// expireAfter is when an Alertmanager resolves an alert that is not sent again: it was acknowledged or
	// has another severity now, or this process is gone, or cannot reach it.
	expireAfter = 4 * resendEvery
	// resolveFor is how long an alert that is over is still sent, as resolved.
	resolveFor = 5 * time.Minute
)

// manager keeps one Alertmanager up to date (Alertmanager: API v2, postAlerts): whatever the notification, it posts all
// firing alerts, and those that are over for a while. An Alertmanager groups, silences and repeats by itself.
type manager struct {
	*poster
	firing func() []*notice
}

// alert is an incident as Alertmanager takes it, and sends it to webhooks.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // zero: it is not over
	GeneratorURL string            `json:"generatorURL"`
}

func (n *notice) alert() alert {
	a := alert{Labels: n.labels(), Annotations: n.annotations(), StartsAt: n.Since.UTC(), GeneratorURL: n.page()}
	if n.Ended != nil {
		a.EndsAt = n.Ended.UTC()
	}
	return a
}

func (m *manager) send(ctx context.Context, n *notice) error {
	firing := m.firing()
	if n.Condition == testCondition {
		firing = append(firing, n)
	}
	if len(firing) == 0 {
		return errNothing
	}
	list, known := []alert{}, map[string]bool{}
	for _, n := range firing { // an Alertmanager knows one alert with the same labels: the first of them is how it is now
		a := n.alert()
		if n.Ended == nil {
			a.EndsAt = time.Now().Add(expireAfter).UTC()
		}
		if labels := format(a.Labels); !known[labels] {
			known[labels], list = true, append(list, a)
		}
	}
	return m.do(ctx, http.MethodPost, encode(list), http.Header{})
}
