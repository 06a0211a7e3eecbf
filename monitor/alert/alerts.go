package alert

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

const (
	// maxIncidents bounds the incidents, and with them the groups; what finds no room is
	// added up per Kind and Action under the queue "_other".
	maxIncidents = 1000
	// maxSingles bounds the messages that wait to be told for themselves.
	maxSingles = 1000
	// reloadEvery is how often the file of rules is looked at.
	reloadEvery = 10 * time.Second
)

// Alerts adds events up and tells them. All methods are safe for concurrent use;
// on a nil Alerts the recording ones do nothing.
type Alerts struct {
	options  Options
	initial  rule // what a rule does not say
	sinks    []string
	zap      *zap.Logger
	metrics  *metrics
	log      *logSink
	channels []channel

	saving sync.Mutex // held while silences change; taken before mu

	mu         sync.Mutex
	rules      []*rule
	rest       *rule // takes what none of rules does
	singles    bool  // one of them tells every message for itself
	singleRate *rate.Limiter
	incidents  map[key]*incident
	groups     map[groupKey]*group
	silences   silences
	untold     []*notification // of messages told for themselves
	told       uint64          // messages told for themselves
	ruleFile   string          // content that was last looked at
	ruleErr    error           // why that is not in force
	ruled      bool            // a file of rules has been put in force

	signal chan struct{} // a group is due sooner than Run knows
	reload chan struct{} // the file of rules is to be read now
}

// New returns Alerts that tell through the log and what else o names. Its error
// says which of the options is none, or that a metric is registered already. It holds no
// secret. A file of rules that cannot be put in force is no error, but RulesError: until
// it is corrected every event goes to every sink.
func New(o Options) (*Alerts, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &Alerts{
		options:    o,
		initial:    rule{name: "default", everywhere: true, group: o.grouping, count: 1, wait: o.GroupWait, interval: o.GroupInterval, repeat: o.RepeatInterval},
		zap:        o.Log.Named("alert"),
		singleRate: rate.NewLimiter(o.limit(), burst),
		incidents:  make(map[key]*incident),
		groups:     make(map[groupKey]*group),
		silences:   silences{dir: o.Dir},
		signal:     make(chan struct{}, 1),
		reload:     make(chan struct{}, 1),
	}
	rest := a.initial
	a.rest = &rest
	if a.metrics, err = newMetrics(o.Registerer, a); err != nil {
		return nil, err
	}
	a.log = &logSink{log: a.zap, sent: a.metrics.of("log").sent}
	if err := a.open(); err != nil {
		return nil, err
	}
	if err := a.silences.load(a.zap); err != nil {
		return nil, err
	}
	a.useRules(nil)
	if err := a.loadRules(); err != nil {
		a.zap.Error("alert rules are not in force, every event goes to every sink: correct them", zap.String("file", o.RulesFile), zap.Error(err))
	}
	return a, nil
}

// RulesError says why the file of rules is not in force, every mistake by line and field;
// nil if it is or there is none.
func (a *Alerts) RulesError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ruleErr
}

// open makes the channels of the sinks that are configured.
func (a *Alerts) open() error {
	sinks, err := a.options.sinks()
	if err != nil {
		return err
	}
	for _, s := range sinks {
		a.channels = append(a.channels, newOutbox(s, a.options.limit(), a.metrics, a.zap))
	}
	managers, err := a.alertmanagers()
	if err != nil {
		return err
	}
	a.channels = append(a.channels, managers...)
	for _, c := range a.channels {
		a.sinks = append(a.sinks, c.name())
	}
	a.sinks = append(a.sinks, "log")
	return nil
}

func (a *Alerts) wake() {
	select {
	case a.signal <- struct{}{}:
	default:
	}
}

// Run tells what is recorded until ctx ends, and returns nil when all it started
// has ended.
func (a *Alerts) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, c := range a.channels {
		running.Go(func() { c.run(ctx) })
	}
	if a.options.RulesFile != "" {
		running.Go(func() { a.keepRules(ctx) })
	}
	a.tellUntil(ctx)
	return nil
}

func (a *Alerts) tellUntil(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.signal:
		case <-ctx.Done():
			for _, n := range a.remaining(time.Now()) {
				a.log.tell(n)
			}
			return
		}
		due, next := a.due(time.Now())
		for _, n := range due {
			a.tell(n)
		}
		timer.Reset(max(next, time.Millisecond))
	}
}

func (a *Alerts) tell(n *notification) {
	a.log.tell(n)
	for _, c := range a.channels {
		if n.rule.sends(c.name()) {
			c.put(n)
		}
	}
}

// Reload has Run read the file of rules now, whether it has changed or not, and log
// what came of it.
func (a *Alerts) Reload() {
	if a == nil {
		return
	}
	select {
	case a.reload <- struct{}{}:
	default:
	}
}

// keepRules puts the file of rules in force when it changes. One with mistakes is
// logged, shown in Health, and changes nothing.
func (a *Alerts) keepRules(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-a.reload:
			a.forgetRules()
		case <-ctx.Done():
			return
		}
		if err := a.loadRules(); err != nil {
			a.zap.Error("the new alert rules are not in force: correct them", zap.Error(err))
		}
	}
}

// forgetRules has the next loadRules take the file for a new one.
func (a *Alerts) forgetRules() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ruleFile = ""
}

// loadRules reads the file of rules and puts it in force, if it is not what was read
// before. It returns a mistake once.
func (a *Alerts) loadRules() error {
	path := a.options.RulesFile
	if path == "" {
		return nil
	}
	rules, content, err := readRules(path, a.initial, a.sinks)
	if err != nil {
		content += "\x00" + err.Error()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if content == a.ruleFile && content != "" {
		return nil
	}
	a.ruleFile, a.ruleErr = content, err
	if err == nil {
		a.ruled = true
		a.useRules(rules)
		a.zap.Info("alert rules are in force", zap.String("file", path), zap.Int("rules", len(rules)))
	}
	return err
}

// useRules puts rules in force, and every incident into the group in which it is told
// by them. Where it was told before, it is over. Callers hold mu.
func (a *Alerts) useRules(rules []*rule) {
	a.rules = rules
	a.singles = slices.ContainsFunc(append(slices.Clone(rules), a.rest), func(r *rule) bool { return r.group == single })
	now := time.Now()
	groups := a.groups
	a.groups = make(map[groupKey]*group)
	for _, i := range a.incidents {
		old := i.group
		a.join(i, a.ruleOf(i.key))
		if i.group.key == old.key && slices.Equal(i.group.rule.to, old.rule.to) && i.group.rule.everywhere == old.rule.everywhere {
			i.group.toldAt, i.group.tellAt = old.toldAt, old.tellAt
			continue
		}
		if i.told {
			a.untold = append(a.untold, a.ended(old, i, now))
		}
		i.told, i.toldCount = false, 0
	}
	if len(groups) > 0 {
		a.wake()
	}
}

// ended tells that i is over where g told it.
func (a *Alerts) ended(g *group, i *incident, now time.Time) *notification {
	n := newNotification(g.rule, g.key, now)
	over := i.alert(g.rule.severityOf(i.kind))
	over.endsAt, over.fresh = now, true
	n.add(over)
	return n
}

// Health says, in words for an operator, what keeps alerts from being told.
func (a *Alerts) Health() (reasons []string) {
	if a == nil {
		return nil
	}
	for _, c := range a.channels {
		if t := c.trouble(); t != nil && time.Since(t.Since) >= troubleAfter {
			reasons = append(reasons, fmt.Sprintf("%s has not taken an alert for %s: %s", c.name(), time.Since(t.Since).Round(time.Second), t.Error))
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ruleErr != nil {
		still := "no rules are in force and every event goes to every sink"
		if a.ruled {
			still = "the rules that were in force before still are"
		}
		reasons = append(reasons, still+", correct the file: "+strings.ReplaceAll(a.ruleErr.Error(), "\n", "; "))
	}
	slices.SortFunc(reasons, cmp.Compare[string])
	return reasons
}

// troubleAfter is how long a sink must fail for that to show in Health.
const troubleAfter = time.Minute
