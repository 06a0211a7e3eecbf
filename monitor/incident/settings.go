package incident

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// settings is what alerts.yaml says, with the sinks of Options.URLs.
type settings struct {
	sinks []sinkSettings
	rules []*rule // the last matches every incident
	source
	deadManSwitch
	// text is all that was read: the file and those that it names.
	text string
}

// settingsReader reads alerts.yaml, and gathers every mistake.
type settingsReader struct {
	path     string
	settings settings
	errs     []error
}

// errNoExchange is a mistake that leaves all else in the file in force.
var errNoExchange = errors.New("incident: no exchange for " + eventsURL)

// maxFile bounds the file and each file that it names, in bytes.
const maxFile = 1 << 20

// readSettings reads o.File, YAML or JSON (which is YAML), and adds the sinks of o.URLs. Its error
// names every mistake by its line and field, with what is allowed there. With an error it returns the
// sinks that have no mistake, and no rules; but with errNoExchange all else is in force.
func (o *Options) readSettings() (settings, error) {
	r := &settingsReader{path: o.File}
	r.settings.source.instance = o.Instance
	for _, address := range o.URLs {
		kind := kindOfSink(address)
		name := kind
		for i := 2; slices.Contains(r.sinkNames(), name); i++ {
			name = fmt.Sprintf("%s-%d", kind, i)
		}
		r.settings.sinks = append(r.settings.sinks, sinkSettings{name: name, url: address})
	}
	if o.File != "" {
		r.read()
	}
	err := errors.Join(r.errs...)
	if err != nil {
		r.settings.rules = nil
		r.settings.text += "\x00" + err.Error()
	}
	r.settings.rules = append(r.settings.rules, everything)
	isExchange := func(s sinkSettings) bool { return s.url == eventsURL }
	if o.Publish == nil && slices.ContainsFunc(r.settings.sinks, isExchange) {
		r.settings.sinks = slices.DeleteFunc(r.settings.sinks, isExchange)
		if err == nil {
			return r.settings, errNoExchange
		}
		err = errors.Join(err, errNoExchange)
	}
	return r.settings, err
}

func (r *settingsReader) sinkNames() (names []string) {
	for _, s := range r.settings.sinks {
		names = append(names, s.name)
	}
	return names
}

func (r *settingsReader) read() {
	var root yaml.Node
	text, err := r.readFile(r.path)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("incident: %w", err))
		return
	}
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", r.path, err))
	}
	if root.Kind == 0 { // it is nothing but comments
		return
	}
	file := r.fields(root.Content[0], "externalURL", "runbooksURL", "deadManSwitch", "sinks", "rules")
	r.settings.source.externalURL = r.webAddress(file, "externalURL")
	r.settings.source.runbooksURL = r.webAddress(file, "runbooksURL")
	if file["deadManSwitch"] != nil {
		r.deadManSwitch(file["deadManSwitch"])
	}
	sinks := r.fields(file["sinks"])
	for _, name := range slices.Sorted(maps.Keys(sinks)) {
		r.sink(name, sinks[name])
	}
	for i, rule := range r.items(file["rules"]) {
		if rule != nil {
			r.rule(fmt.Sprintf("rules[%d]", i), fmt.Sprintf("rule-%d", i+1), rule)
		}
	}
}

// readFile reads a file whole, and notes what it read. A path that is not absolute begins where the alerts file is.
func (r *settingsReader) readFile(path string) (string, error) {
	if path != r.path && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.path), path)
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFile {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	r.settings.text += path + "\x00" + string(content) + "\x00"
	return string(content), nil
}

// refuse notes a mistake.
func (r *settingsReader) refuse(at *yaml.Node, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.path, at.Line, fmt.Sprintf(format, args...)))
}

// fields are the values in a mapping, none if n is nil. They have one of these names or, if there are none, any. A field without a value is a
// mistake: a rule whose queue is empty must not be one for all queues.
func (r *settingsReader) fields(n *yaml.Node, names ...string) map[string]*yaml.Node {
	fields := make(map[string]*yaml.Node)
	switch {
	case n == nil:
		return fields
	case n.Kind != yaml.MappingNode && names == nil:
		r.refuse(n, "want a mapping from the name of each sink to its url")
		return fields
	case n.Kind != yaml.MappingNode:
		r.refuse(n, "want a mapping with the fields %s", strings.Join(names, ", "))
		return fields
	}
	for pair := range slices.Chunk(n.Content, 2) {
		switch key := pair[0]; {
		case key.Tag == "!!merge":
			r.refuse(key, "the key << is not read: write the fields out")
		case fields[key.Value] != nil:
			r.refuse(key, "%s is already defined", key.Value)
		case names != nil && !slices.Contains(names, key.Value):
			r.refuse(key, "unknown field %q: want one of %s", key.Value, strings.Join(names, ", "))
		default:
			if value := r.value(pair[1], key.Value); value != nil {
				fields[key.Value] = value
			}
		}
	}
	return fields
}

// items are those of a list, with nil for one that is empty; none if n is nil.
func (r *settingsReader) items(n *yaml.Node) (items []*yaml.Node) {
	if n != nil && n.Kind != yaml.SequenceNode {
		r.refuse(n, "want a list")
	} else if n != nil {
		for _, child := range n.Content {
			items = append(items, r.value(child, "an item"))
		}
	}
	return items
}

// value is n, or what it stands for; nil if that is empty, which is a mistake.
func (r *settingsReader) value(n *yaml.Node, name string) *yaml.Node {
	if n.Alias != nil {
		n = n.Alias
	}
	if n.Tag == "!!null" || n.Kind == yaml.ScalarNode && n.Value == "" {
		r.refuse(n, "%s is empty: give it a value, or leave it out", name)
		return nil
	}
	return n
}

// isText reports whether n is a text. Anything else but nil is a mistake.
func (r *settingsReader) isText(n *yaml.Node) bool {
	if n != nil && n.Kind != yaml.ScalarNode {
		r.refuse(n, "want text")
		return false
	}
	return n != nil
}

// text is that of n, "" if n is nil.
func (r *settingsReader) text(n *yaml.Node) string {
	if !r.isText(n) {
		return ""
	}
	return n.Value
}

// texts is a list, or one text; nil if n is nil.
func (r *settingsReader) texts(n *yaml.Node) []string {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}
	}
	list := []string{}
	for _, item := range r.items(n) {
		if r.isText(item) {
			list = append(list, item.Value)
		}
	}
	return list
}

// secret is a field, or what the file holds that is named instead.
func (r *settingsReader) secret(fields map[string]*yaml.Node, where, name string) string {
	file := fields[name+"File"]
	if file == nil {
		return r.text(fields[name])
	}
	if fields[name] != nil {
		r.refuse(file, "%s.%sFile: %[2]s is given as well; keep one", where, name)
	}
	if !r.isText(file) {
		return ""
	}
	content, err := r.readFile(file.Value)
	if err != nil {
		r.refuse(file, "%s.%sFile: %v", where, name, err)
	}
	return strings.TrimSpace(content)
}

func (r *settingsReader) deadManSwitch(n *yaml.Node) {
	before := len(r.errs)
	fields := r.fields(n, "url", "urlFile", "every")
	d := deadManSwitch{url: r.secret(fields, "deadManSwitch", "url"), every: defaultEvery}
	if len(r.errs) == before && !isWebAddress(d.url) {
		r.refuse(n, "deadManSwitch: the field url, or the file that urlFile names, must hold an http:// or https:// URL")
		return
	}
	if every := fields["every"]; r.isText(every) {
		d.every = r.duration(every, "deadManSwitch.every", time.Second)
	}
	r.settings.deadManSwitch = d
}

var sinkName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// sink adds a sink, if it has no mistake: it must not be used without the secret that was misspelled.
func (r *settingsReader) sink(name string, n *yaml.Node) {
	where, before := "sinks."+name, len(r.errs)
	if len(name) > 64 || !sinkName.MatchString(name) || name == logName {
		r.refuse(n, "%s: want a name of letters, digits, '.', '_' and '-', 64 at most, and not %s, which always exists", where, logName)
	}
	if slices.Contains(r.sinkNames(), name) {
		r.refuse(n, "%s: a sink of CURFEW_ALERT_URLS has that name", where)
	}
	fields := r.fields(n, "url", "urlFile", "secret", "secretFile")
	s := sinkSettings{name: name, url: r.secret(fields, where, "url"), secret: r.secret(fields, where, "secret")}
	if len(r.errs) > before {
		return
	}
	if _, err := s.sink(&delivery{}); err != nil {
		r.refuse(n, "%s: %v", where, err)
		return
	}
	r.settings.sinks = append(r.settings.sinks, s)
}

func (r *settingsReader) rule(where, name string, n *yaml.Node) {
	fields := r.fields(n, "name", "events", "vhost", "queue", "to", "severity", "count", "lateness")
	out := *everything
	out.Name, out.Severity, out.To = cmp.Or(r.text(fields["name"]), name), r.text(fields["severity"]), r.texts(fields["to"])
	out.VHost, out.Queue = cmp.Or(r.text(fields["vhost"]), out.VHost), cmp.Or(r.text(fields["queue"]), out.Queue)
	out.vhost, out.queue = newPattern(out.VHost), newPattern(out.Queue)
	if slices.ContainsFunc(r.settings.rules, func(other *rule) bool { return other.Name == out.Name }) {
		r.refuse(cmp.Or(fields["name"], n), "%s.name: %q is the name of another rule, too", where, out.Name)
	}
	for _, event := range r.texts(fields["events"]) {
		if c := ConditionOf(event); c != nil {
			out.Events = append(out.Events, c.Name)
		} else {
			r.refuse(fields["events"], "%s.events: unknown event %q: want one of %s", where, event, strings.Join(Names(), ", "))
		}
	}
	known := append([]string{logName}, r.sinkNames()...)
	for _, sink := range out.To {
		if !slices.Contains(known, sink) {
			r.refuse(fields["to"], "%s.to: unknown sink %q: want one of %s", where, sink, strings.Join(known, ", "))
		}
	}
	if out.Severity != "" && !slices.Contains(severities, out.Severity) {
		r.refuse(fields["severity"], "%s.severity: %q is invalid: want %s", where, out.Severity, strings.Join(severities, " or "))
	}
	if count := fields["count"]; r.isText(count) {
		var err error
		if out.Count, err = strconv.ParseInt(count.Value, 10, 64); err != nil || out.Count < 1 {
			r.refuse(count, "%s.count: %q is invalid: want a number from 1", where, count.Value)
		}
	}
	if lateness := fields["lateness"]; r.isText(lateness) {
		out.lateness = r.duration(lateness, where+".lateness", 0)
	}
	r.settings.rules = append(r.settings.rules, &out)
}

// duration reads a duration, least at least.
func (r *settingsReader) duration(n *yaml.Node, where string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < least {
		r.refuse(n, "%s: %q is invalid: want a duration such as 500ms, 10s or 4h, at least %s", where, n.Value, least)
	}
	return d
}

func (r *settingsReader) webAddress(file map[string]*yaml.Node, name string) string {
	text := r.text(file[name])
	if text != "" && !isWebAddress(text) {
		r.refuse(file[name], "%s: want an http:// or https:// URL", name)
	}
	return text
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}
