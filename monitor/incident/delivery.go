package incident

import (
	"slices"
	"sync"

	"go.uber.org/zap"
)

// delivery hands notifications to the log and to the sinks in force. Safe for concurrent use.
type delivery struct {
	log      *logSink
	zap      *zap.Logger
	metrics  *metrics
	exchange Exchange
	stalled  func() []string             // nil: an Alertmanager is sent no watchdog
	firing   func(sink string) []*notice // what an Alertmanager is sent

	mu       sync.Mutex
	channels []*channelOf                // replaced, never changed
	start    func(channel) (stop func()) // starts a new channel; nil while Run does not run
}

// channelOf is a channel and the settings that it was made from.
type channelOf struct {
	channel
	settings sinkSettings
	stop     func() // nil while it does not run
}

// run starts the channels with start, now and when settings bring new ones.
func (d *delivery) run(start func(channel) (stop func())) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start = start
	for _, c := range d.channels {
		c.stop = start(c.channel)
	}
}

// notify hands a to the log and to the sinks of its rule.
func (d *delivery) notify(a *notice) {
	d.log.notify(a)
	for _, c := range d.sinks() {
		if a.rule.sends(c.name()) {
			c.put(a)
		}
	}
}

// sinks returns all sinks except the log.
func (d *delivery) sinks() []*channelOf {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channels
}

// names returns the names of all sinks.
func (d *delivery) names() []string {
	names := []string{logName}
	for _, c := range d.sinks() {
		names = append(names, c.name())
	}
	return names
}

// use makes channels for the sinks in list and ends all others. A sink that keeps its name
// keeps what waits for it, unless it becomes or was an Alertmanager.
func (d *delivery) use(list []sinkSettings) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ended := slices.Clone(d.channels)
	channels := make([]*channelOf, 0, len(list))
	for _, s := range list {
		n := slices.IndexFunc(ended, func(c *channelOf) bool {
			return c.settings.name == s.name && (c.settings == s || !isAlertmanager(s) && !isAlertmanager(c.settings))
		})
		if n < 0 {
			channels = append(channels, d.openLocked(s))
			continue
		}
		c := ended[n]
		ended = slices.Delete(ended, n, n+1)
		if c.settings != s {
			c.channel.(*outbox).use(s.newSink(d.exchange))
			c = &channelOf{c.channel, s, c.stop}
		}
		channels = append(channels, c)
	}
	for _, c := range ended {
		if c.stop != nil {
			c.stop()
		}
		if lost := c.queued(); lost > 0 {
			d.zap.Warn("a sink was removed; its queued notifications were dropped", zap.String("sink", c.name()), zap.Int("notifications", lost))
		}
		if !slices.ContainsFunc(list, func(s sinkSettings) bool { return s.name == c.name() }) {
			d.metrics.forget(c.name())
		}
	}
	d.channels = channels
}

func isAlertmanager(s sinkSettings) bool { return kindOfSink(s.url) == alertmanagerKind }

func (d *delivery) openLocked(s sinkSettings) *channelOf {
	c := &channelOf{settings: s}
	if isAlertmanager(s) {
		c.channel = d.newManagerLocked(s)
	} else {
		c.channel = newOutbox(s.newSink(d.exchange), d.metrics, d.zap)
	}
	if d.start != nil {
		c.stop = d.start(c.channel)
	}
	return c
}
