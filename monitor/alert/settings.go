package alert

import (
	"errors"
	"fmt"
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

// maxFile bounds alerts.yaml and each file that it names, in bytes.
const maxFile = 1 << 20

// settings is what alerts.yaml says, with the sinks of Options.URLs.
type settings struct {
	sinks []sinkSettings
	rules []*rule
	rest  rule // takes what none of rules does
	source
	deadManSwitch
	// text is all that was read: the file and those that it names.
	text string
}

// deadManSwitch says which address is asked for, and how often. Without a URL there is none.
type deadManSwitch struct {
	url   string
	every time.Duration
}

// settingsReader reads alerts.yaml.
type settingsReader struct {
	path     string
	settings settings
	errs     []error        // every mistake
	names    map[string]int // of rules, and the line of each
}

// readSettings reads o.File, YAML or JSON (which is YAML), and adds the sinks of o.URLs. Its error
// names every mistake by line and field, with what is allowed there. What it returns then are the
// sinks that have none, and no rules.
func (o *Options) readSettings() (settings, error) {
	r := &settingsReader{path: o.File, names: make(map[string]int)}
	r.settings.source.instance = o.Instance
	r.settings.rest = rule{
		name: "default", everywhere: true, count: 1, wait: defaultWait, interval: defaultInterval, repeat: defaultRepeat,
	}
	for _, address := range o.URLs {
		r.settings.sinks = append(r.settings.sinks, sinkSettings{name: r.freeName(kindOfSink(address)), url: address})
	}
	if o.File != "" {
		r.read()
	}
	for i := range r.settings.sinks {
		r.settings.sinks[i].source = r.settings.source
	}
	err := errors.Join(r.errs...)
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
	text, err := r.readFile(r.path)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("alert: %w", err))
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", r.path, err))
		return
	}
	if len(doc.Content) == 0 {
		return // nothing but comments
	}
	r.mapping(doc.Content[0], "", []field{
		{"externalURL", func(n *yaml.Node, where string) { r.settings.source.externalURL = r.webAddress(n, where) }},
		{"runbooksURL", func(n *yaml.Node, where string) { r.settings.source.runbooksURL = r.webAddress(n, where) }},
		{"deadManSwitch", r.deadManSwitch},
		{"sinks", r.sinks},
		{"defaults", func(n *yaml.Node, where string) { r.mapping(n, where, r.timing(&r.settings.rest)) }},
		{"rules", r.rules},
	})
}

// readFile reads a file whole, and notes what it read.
func (r *settingsReader) readFile(path string) (string, error) {
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

func (r *settingsReader) deadManSwitch(n *yaml.Node, where string) {
	d := deadManSwitch{every: defaultEvery}
	r.mapping(n, where, append(r.secret("url", &d.url),
		field{"every", func(n *yaml.Node, where string) { d.every = r.duration(n, where, time.Second) }}))
	if !isWebAddress(d.url) {
		r.refuse(n, where, "the field url, or the file that urlFile names, takes an http:// or https:// URL")
		return
	}
	r.settings.deadManSwitch = d
}

var sinkName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// sinks reads the mapping from names to sinks.
func (r *settingsReader) sinks(n *yaml.Node, where string) {
	if n.Kind != yaml.MappingNode {
		r.refuse(n, where, "it takes a mapping from the name of each sink to its url")
		return
	}
	fields := make([]field, 0, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		fields = append(fields, field{n.Content[i].Value, r.sink})
	}
	r.mapping(n, where, fields)
}

func (r *settingsReader) sink(n *yaml.Node, where string) {
	s := sinkSettings{name: strings.TrimPrefix(where, "sinks.")}
	if !sinkName.MatchString(s.name) || s.name == logName {
		r.refuse(n, where, "it takes a name of letters, digits, '.', '_' and '-', 64 at most, but not %s, which is always there", logName)
	}
	if slices.Contains(r.sinkNames(), s.name) {
		r.refuse(n, where, "a sink of CURFEW_ALERT_URLS has that name")
	}
	mistakes := len(r.errs)
	r.mapping(n, where, append(r.secret("url", &s.url), r.secret("secret", &s.secret)...))
	if len(r.errs) > mistakes {
		return
	}
	if err := s.check(); err != nil {
		r.refuse(n, where, "%v", err)
		return
	}
	r.settings.sinks = append(r.settings.sinks, s)
}

// secret is a field of that name, and another whose name ends in File for a file that holds its value.
func (r *settingsReader) secret(name string, out *string) []field {
	return []field{
		{name, func(n *yaml.Node, where string) { *out = r.text(n, where) }},
		{name + "File", func(n *yaml.Node, where string) {
			path := r.text(n, where)
			if *out != "" {
				r.refuse(n, where, "%s is there as well; keep one", name)
			}
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(r.path), path)
			}
			content, err := r.readFile(path)
			if err != nil {
				r.refuse(n, where, "%v", err)
			}
			*out = strings.TrimSpace(content)
		}},
	}
}

func (r *settingsReader) rules(n *yaml.Node, where string) {
	if n.Kind != yaml.SequenceNode {
		r.refuse(n, where, "it takes a list of rules")
		return
	}
	for i, one := range n.Content {
		r.settings.rules = append(r.settings.rules, r.rule(one, i))
	}
}

// rule reads the rule at place i of the list.
func (r *settingsReader) rule(n *yaml.Node, i int) *rule {
	out := r.settings.rest
	out.name = fmt.Sprintf("rule-%d", i+1)
	where := fmt.Sprintf("rules[%d]", i)
	r.mapping(n, where, append([]field{
		{"name", func(n *yaml.Node, where string) { out.name = r.text(n, where) }},
		{"events", func(n *yaml.Node, where string) { out.kinds = r.kinds(n, where) }},
		{"vhost", func(n *yaml.Node, where string) { out.vhost = newPattern(r.text(n, where)) }},
		{"queue", func(n *yaml.Node, where string) { out.queue = newPattern(r.text(n, where)) }},
		{"to", func(n *yaml.Node, where string) { out.everywhere, out.to = false, r.to(n, where) }},
		{"severity", func(n *yaml.Node, where string) { out.severity = r.oneOf(n, where, severities) }},
		{"count", func(n *yaml.Node, where string) { out.count = r.number(n, where) }},
		{"lateness", func(n *yaml.Node, where string) { out.lateness = r.duration(n, where, 0) }},
	}, r.timing(&out)...))
	if line, taken := r.names[out.name]; taken {
		r.refuse(n, where+".name", "%q is the name of the rule in line %d, too", out.name, line)
	}
	r.names[out.name] = n.Line
	return &out
}

// timing are the fields that rules and defaults share.
func (r *settingsReader) timing(out *rule) []field {
	return []field{
		{"group", func(n *yaml.Node, where string) { out.group, _ = groupingOf(r.oneOf(n, where, groupings[:])) }},
		{"wait", func(n *yaml.Node, where string) { out.wait = r.duration(n, where, time.Millisecond) }},
		{"interval", func(n *yaml.Node, where string) { out.interval = r.duration(n, where, time.Second) }},
		{"repeat", func(n *yaml.Node, where string) { out.repeat = r.duration(n, where, time.Second) }},
	}
}

func (r *settingsReader) kinds(n *yaml.Node, where string) (list []Kind) {
	for _, event := range r.list(n, where) {
		kind, ok := kindOf(event)
		if !ok {
			r.refuse(n, where, "there is no event %q; it takes %s", event, eventNames())
		}
		list = append(list, kind)
	}
	return list
}

// to reads names of sinks.
func (r *settingsReader) to(n *yaml.Node, where string) []string {
	known := append([]string{logName}, r.sinkNames()...)
	list := r.list(n, where)
	for _, sink := range list {
		if !slices.Contains(known, sink) {
			r.refuse(n, where, "there is no sink %q; it takes %s", sink, strings.Join(known, ", "))
		}
	}
	return list
}

// field is one that a mapping may have.
type field struct {
	name string
	read func(n *yaml.Node, where string)
}

// mapping reads the fields that n has, in the order of known.
func (r *settingsReader) mapping(n *yaml.Node, where string, known []field) {
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	if n.Kind != yaml.MappingNode {
		r.refuse(n, where, "it takes a mapping with the fields %s", strings.Join(names, ", "))
		return
	}
	values := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		switch {
		case values[key.Value] != nil:
			r.refuse(key, join(where, key.Value), "it is there twice")
		case !slices.Contains(names, key.Value):
			r.refuse(key, join(where, key.Value), "there is no such field; there are %s", strings.Join(names, ", "))
		}
		values[key.Value] = value
	}
	for _, f := range known {
		if value := values[f.name]; value != nil {
			f.read(value, join(where, f.name))
			delete(values, f.name) // once
		}
	}
}

func join(where, field string) string {
	if where == "" {
		return field
	}
	return where + "." + field
}

func (r *settingsReader) refuse(n *yaml.Node, where, format string, args ...any) {
	if where != "" {
		where += ": "
	}
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s%s", r.path, n.Line, where, fmt.Sprintf(format, args...)))
}

func (r *settingsReader) text(n *yaml.Node, where string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.refuse(n, where, "it takes text")
	}
	return n.Value
}

// list reads a list of texts, or one text.
func (r *settingsReader) list(n *yaml.Node, where string) []string {
	if n.Kind == yaml.ScalarNode {
		return []string{r.text(n, where)}
	}
	if n.Kind != yaml.SequenceNode {
		r.refuse(n, where, "it takes a list")
		return nil
	}
	list := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		list = append(list, r.text(item, where))
	}
	return list
}

func (r *settingsReader) oneOf(n *yaml.Node, where string, allowed []string) string {
	if n.Kind != yaml.ScalarNode || !slices.Contains(allowed, n.Value) {
		r.refuse(n, where, "%q is not allowed; it takes %s", n.Value, strings.Join(allowed, " or "))
	}
	return n.Value
}

func (r *settingsReader) number(n *yaml.Node, where string) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		r.refuse(n, where, "%q is not allowed; it takes a number from 1", n.Value)
	}
	return v
}

func (r *settingsReader) duration(n *yaml.Node, where string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < least {
		r.refuse(n, where, "%q is not allowed; it takes a duration such as 500ms, 10s, 4h, %s at least", n.Value, least)
	}
	return d
}

func (r *settingsReader) webAddress(n *yaml.Node, where string) string {
	if !isWebAddress(n.Value) {
		r.refuse(n, where, "it takes an http:// or https:// URL")
	}
	return n.Value
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}
