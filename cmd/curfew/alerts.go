package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/monitor/alert"
)

// alertOptions is what the settings say of alerts. Errors that follow from them are named after
// the settings.
func alertOptions(c *config, log *zap.Logger) alert.Options {
	return alert.Options{
		WebhookURL: string(c.AlertWebhookURL), WebhookSecret: c.AlertWebhookSecret, AlertmanagerURLs: c.AlertAlertmanagerURL.list(),
		SlackURL: string(c.AlertSlackURL), PagerDutyKey: c.AlertPagerdutyRoutingKey, PagerDutyURL: string(c.AlertPagerdutyURL),
		CloudEventsURL: string(c.AlertCloudeventsURL), CloudEventsBinary: c.AlertCloudeventsMode == "binary", EventFormat: string(c.AlertAMQP),
		Allow: c.AlertAllow.list(), RulesFile: c.AlertRules, Dir: c.DataDir, GroupBy: c.AlertGroupBy, GroupWait: c.AlertGroupWait,
		GroupInterval: c.AlertGroupInterval, RepeatInterval: c.AlertRepeatInterval, RatePerMinute: c.AlertRateLimit,
		Instance: string(c.Instance), ExternalURL: string(c.AlertExternalURL), RunbookBase: string(c.AlertRunbookBase), Log: log,
	}
}

// openAlerts makes the alerts of the node.
func (n *node) openAlerts(c *config, metrics prometheus.Registerer, log *zap.Logger) (err error) {
	o := alertOptions(c, log)
	o.Registerer, o.Stalled = metrics, n.stalled
	if c.AlertAMQP != "" {
		o.Exchange = &eventExchange{broker: n.broker}
	}
	if n.alerts, err = alert.New(o); err != nil {
		return usageError{err}
	}
	return nil
}

// openHeartbeat makes the heartbeat of the node, if there is to be one.
func (n *node) openHeartbeat(c *config, metrics prometheus.Registerer, log *zap.Logger) (err error) {
	if c.HeartbeatURL == "" {
		return nil
	}
	n.heartbeat, err = alert.NewHeartbeat(alert.HeartbeatOptions{
		URL: string(c.HeartbeatURL), Every: c.HeartbeatInterval, Stalled: n.stalled, Allow: c.AlertAllow.list(), Log: log, Registerer: metrics,
	})
	return err
}

// runHeartbeat beats until ctx ends.
func (n *node) runHeartbeat(ctx context.Context) error {
	if n.heartbeat == nil {
		<-ctx.Done()
		return nil
	}
	return n.heartbeat.Run(ctx)
}

// alertVitals is what alerting says of itself.
func (n *node) alertVitals() vitals { return vitals{Reasons: n.alerts.Health()} }

// stalled names what in this process gives no sign of life: the monitor's loops, the store (nothing
// is committed), the server (no connection could be made or ended). It takes as long as they take
// to answer, answerLimit at most.
func (n *node) stalled() (hangs []string) {
	if n.monitor != nil {
		for _, loop := range n.monitor.Health().Stalled {
			hangs = append(hangs, "loop "+loop)
		}
	}
	var asked sync.WaitGroup
	answers := make([]bool, len(n.probes))
	for i := range n.probes {
		asked.Go(func() { answers[i] = n.probes[i].answers() })
	}
	asked.Wait()
	for i, ok := range answers {
		if !ok {
			hangs = append(hangs, n.probes[i].name)
		}
	}
	return hangs
}

// answerLimit is how long a part may take to answer before it counts as stalled.
const answerLimit = 5 * time.Second

// probe asks one part for a sign of life, one question at a time.
type probe struct {
	name string
	ask  func(answer func()) // may block; calls answer once

	mu      sync.Mutex
	pending chan struct{} // closed by the answer; nil: nothing has been asked
}

// newProbes are those of a broker and its server.
func (n *node) newProbes() []*probe {
	return []*probe{
		{name: "store", ask: func(answer func()) { n.broker.Commit(func(error) { answer() }) }},
		{name: "server", ask: func(answer func()) { n.server.Connections(); answer() }},
	}
}

// answers asks, unless an answer is still owed, and waits for it.
func (p *probe) answers() bool {
	p.mu.Lock()
	if p.pending == nil {
		pending := make(chan struct{})
		p.pending = pending
		go p.ask(func() { close(pending) })
	}
	pending := p.pending
	p.mu.Unlock()
	limit := time.NewTimer(answerLimit)
	defer limit.Stop()
	select {
	case <-pending:
	case <-limit.C:
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == pending {
		p.pending = nil
	}
	return true
}

// eventsExchange is where alerts are published, in the default virtual host.
const eventsExchange = "curfew.events"

// eventExchange publishes alerts in the bundled broker. For one goroutine.
type eventExchange struct {
	broker    *broker.Broker
	vhost     *broker.VHost // of publisher
	publisher *broker.Publisher
}

// Publish implements alert.Exchange. Messages are persistent: durable queues bound there keep them.
func (x *eventExchange) Publish(_ context.Context, e alert.Publication) error {
	if err := x.open(); err != nil {
		return err
	}
	p := amqp.Properties{
		ContentType: e.ContentType, DeliveryMode: 2, MessageID: e.MessageID, Timestamp: amqp.Timestamp(time.Now().Unix()), AppID: "curfew",
	}
	_, err := x.publisher.Add(&broker.Publication{
		Exchange: []byte(eventsExchange), RoutingKey: []byte(e.RoutingKey), Properties: p.Append(nil), Body: e.Body,
	})
	if err == nil {
		x.publisher.Flush(nil)
	}
	return err
}

// open declares the exchange, which somebody may have deleted.
func (x *eventExchange) open() error {
	vh, ok := x.broker.VHost("/")
	if !ok {
		return fmt.Errorf("there is no virtual host \"/\" for the exchange %s", eventsExchange)
	}
	if vh != x.vhost {
		x.vhost, x.publisher = vh, vh.OwnPublisher()
	}
	return vh.DeclareExchange(eventsExchange, broker.ExchangeDeclare{Kind: "topic", Durable: true})
}
