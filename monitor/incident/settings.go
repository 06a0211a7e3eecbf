package incident

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"curfew/monitor/incident/internal/fields"
)

// settings is what alerts.yaml says, with the sinks of Options.URLs.
type settings struct {
	sinks []sinkSettings
	rules []*rule
	rest  rule // for events that none of rules matches
	source
	deadManSwitch
	// text is all that was read: the file and those that it names.
	text string
}

// deadManSwitch is the address that is requested, and how often. Without a URL there is none.
type deadManSwitch struct {
	url   string
	every time.Duration
}

// settingsReader reads alerts.yaml.
type settingsReader struct {
	fields.Reader
	settings settings
	names    map[string]int // of rules, and the line of each
}

// readSettings reads o.File, YAML or JSON (which is YAML), and adds the sinks of o.URLs. Its error
// names every mistake by line and field, with what is allowed there. With an error it returns the
// sinks that have no mistake, and no rules.
func (o *Options) readSettings() (settings, error) {
	r := &settingsReader{Reader: fields.Reader{Path: o.File}, names: make(map[string]int)}
	r.settings.source.instance = o.Instance
	r.settings.rest = rule{Rule: Rule{Name: "default", VHost: "*", Queue: "*", To: []string{}, Count: 1}, everywhere: true}
	for _, address := range o.URLs {
		r.settings.sinks = append(r.settings.sinks, sinkSettings{name: r.freeName(kindOfSink(address)), url: address})
	}
	if o.File != "" {
		r.read()
	}
	r.settings.text = r.Seen
	err := errors.Join(r.Errs...)
	if err != nil {
		r.settings.rules = nil
		r.settings.text += "\x00" + err.Error()
	}
	return r.settings, err
}

// freeName is name, with a number if another sink has it.
func (r *settingsReader) freeName(name string) string {
	for i := 1; ; i++ {
		free := name
		if i > 1 {
			free = fmt.Sprintf("%s-%d", name, i)
		}
		if !slices.Contains(r.sinkNames(), free) {
			return free
		}
	}
}

func (r *settingsReader) sinkNames() (names []string) {
	for _, s := range r.settings.sinks {
		names = append(names, s.name)
	}
	return names
}

func (r *settingsReader) read() {
	r.Document([]fields.Field{
		{Name: "externalURL", Read: func(n *yaml.Node, where string) { r.settings.source.externalURL = r.webAddress(n, where) }},
		{Name: "runbooksURL", Read: func(n *yaml.Node, where string) { r.settings.source.runbooksURL = r.webAddress(n, where) }},
		{Name: "deadManSwitch", Read: r.deadManSwitch},
		{Name: "sinks", Read: r.sinks},
		{Name: "defaults", Gone: onlyTwice},
		{Name: "rules", Read: r.rules},
	})
}

func (r *settingsReader) deadManSwitch(n *yaml.Node, where string) {
	d := deadManSwitch{every: defaultEvery}
	r.Mapping(n, where, append(r.Secret("url", &d.url),
		fields.Field{Name: "every", Read: func(n *yaml.Node, where string) { d.every = r.Duration(n, where, time.Second) }}))
	if !isWebAddress(d.url) {
		r.Refuse(n, where, "the field url, or the file that urlFile names, must hold an http:// or https:// URL")
		return
	}
	r.settings.deadManSwitch = d
}

var sinkName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// sinks reads the mapping from names to sinks.
func (r *settingsReader) sinks(n *yaml.Node, where string) {
	if n.Kind != yaml.MappingNode {
		r.Refuse(n, where, "want a mapping from the name of each sink to its url")
		return
	}
	known := make([]fields.Field, 0, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		known = append(known, fields.Field{Name: n.Content[i].Value, Read: r.sink})
	}
	r.Mapping(n, where, known)
}

func (r *settingsReader) sink(n *yaml.Node, where string) {
	s := sinkSettings{name: strings.TrimPrefix(where, "sinks.")}
	if len(s.name) > 64 || !sinkName.MatchString(s.name) || s.name == logName {
		r.Refuse(n, where, "want a name of letters, digits, '.', '_' and '-', 64 at most, and not %s, which always exists", logName)
	}
	if slices.Contains(r.sinkNames(), s.name) {
		r.Refuse(n, where, "a sink of CURFEW_ALERT_URLS has that name")
	}
	mistakes := len(r.Errs)
	r.Mapping(n, where, append(r.Secret("url", &s.url), r.Secret("secret", &s.secret)...))
	if len(r.Errs) > mistakes {
		return
	}
	if err := s.check(); err != nil {
		r.Refuse(n, where, "%v", err)
		return
	}
	r.settings.sinks = append(r.settings.sinks, s)
}

func (r *settingsReader) rules(n *yaml.Node, where string) {
	if n.Kind != yaml.SequenceNode {
		r.Refuse(n, where, "want a list of rules")
		return
	}
	for i, one := range n.Content {
		r.settings.rules = append(r.settings.rules, r.rule(one, i))
	}
}

// rule reads the i-th rule of the list.
func (r *settingsReader) rule(n *yaml.Node, i int) *rule {
	out := r.settings.rest
	out.Name = fmt.Sprintf("rule-%d", i+1)
	where := fmt.Sprintf("rules[%d]", i)
	r.Mapping(n, where, []fields.Field{
		{Name: "name", Read: func(n *yaml.Node, where string) { out.Name = r.Text(n, where) }},
		{Name: "events", Read: func(n *yaml.Node, where string) { out.Events = r.conditions(n, where) }},
		{Name: "vhost", Read: func(n *yaml.Node, where string) { out.VHost = r.Text(n, where) }},
		{Name: "queue", Read: func(n *yaml.Node, where string) { out.Queue = r.Text(n, where) }},
		{Name: "to", Read: func(n *yaml.Node, where string) { out.everywhere, out.To = false, r.to(n, where) }},
		{Name: "severity", Read: func(n *yaml.Node, where string) { out.Severity = r.OneOf(n, where, severities) }},
		{Name: "count", Read: func(n *yaml.Node, where string) { out.Count = r.Number(n, where) }},
		{Name: "lateness", Read: func(n *yaml.Node, where string) { out.lateness = r.Duration(n, where, 0) }},
		{Name: "group", Gone: "there is one incident for each cause, with all its queues"},
		{Name: "wait", Gone: onlyTwice},
		{Name: "interval", Gone: onlyTwice},
		{Name: "repeat", Gone: onlyTwice},
	})
	if line, taken := r.names[out.Name]; taken {
		r.Refuse(n, where+".name", "%q is the name of the rule in line %d, too", out.Name, line)
	}
	r.names[out.Name] = n.Line
	out.vhost, out.queue = newPattern(out.VHost), newPattern(out.Queue)
	return &out
}

// onlyTwice replaces when and how often an alert is sent.
const onlyTwice = "each incident is sent when it begins, when it grows tenfold, and when it is over; let Alertmanager or PagerDuty repeat it"

func (r *settingsReader) conditions(n *yaml.Node, where string) (list []string) {
	for _, event := range r.List(n, where) {
		c := conditionOf(event)
		if c == nil {
			r.Refuse(n, where, "unknown event %q: want one of %s", event, strings.Join(Names(), ", "))
			continue
		}
		list = append(list, c.Name)
	}
	return list
}

// to reads names of sinks.
func (r *settingsReader) to(n *yaml.Node, where string) []string {
	known := append([]string{logName}, r.sinkNames()...)
	list := r.List(n, where)
	for _, sink := range list {
		if !slices.Contains(known, sink) {
			r.Refuse(n, where, "unknown sink %q: want one of %s", sink, strings.Join(known, ", "))
		}
	}
	return list
}

func (r *settingsReader) webAddress(n *yaml.Node, where string) string {
	if !isWebAddress(n.Value) {
		r.Refuse(n, where, "want an http:// or https:// URL")
	}
	return n.Value
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}
