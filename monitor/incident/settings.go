package incident

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
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

// deadManSwitch is the address that is requested, and how often. Without a URL there is none.
type deadManSwitch struct {
	url   string
	every time.Duration
}

// alertsFile is alerts.yaml as it is written.
type alertsFile struct {
	ExternalURL   string               `yaml:"externalURL"`
	RunbooksURL   string               `yaml:"runbooksURL"`
	DeadManSwitch *switchFile          `yaml:"deadManSwitch"`
	Sinks         map[string]*sinkFile `yaml:"sinks"`
	Rules         []ruleFile           `yaml:"rules"`
}

type switchFile struct {
	URL     string `yaml:"url"`
	URLFile string `yaml:"urlFile"`
	Every   string `yaml:"every"`
}

type sinkFile struct {
	URL        string `yaml:"url"`
	URLFile    string `yaml:"urlFile"`
	Secret     string `yaml:"secret"`
	SecretFile string `yaml:"secretFile"`
}

type ruleFile struct {
	Name     string `yaml:"name"`
	Events   texts  `yaml:"events"`
	VHost    string `yaml:"vhost"`
	Queue    string `yaml:"queue"`
	To       texts  `yaml:"to"`
	Severity string `yaml:"severity"`
	Count    string `yaml:"count"`
	Lateness string `yaml:"lateness"`
}

// texts is a list, or one text.
type texts []string

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// settingsReader reads alerts.yaml, and gathers every mistake.
type settingsReader struct {
	path     string
	settings settings
	root     yaml.Node // of the file, for the lines of mistakes
	bad      []int     // lines in which the decoder found mistakes, or something is empty
	errs     []error
}

// maxFile bounds the file and each file that it names, in bytes.
const maxFile = 1 << 20

// readSettings reads o.File, YAML or JSON (which is YAML), and adds the sinks of o.URLs. Its error
// names every mistake by its line and field, with what is allowed there. With an error it returns the
// sinks that have no mistake, and no rules.
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
	return r.settings, err
}

func (r *settingsReader) sinkNames() (names []string) {
	for _, s := range r.settings.sinks {
		names = append(names, s.name)
	}
	return names
}

func (r *settingsReader) read() {
	var file alertsFile
	text, err := r.readFile(r.path)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("incident: %w", err))
		return
	}
	_ = yaml.Unmarshal([]byte(text), &r.root) // the decoder finds the same mistakes
	r.check(&r.root)
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var kinds *yaml.TypeError
	switch err := decoder.Decode(&file); {
	case errors.As(err, &kinds):
		for _, text := range kinds.Errors {
			line := 0
			_, _ = fmt.Sscanf(text, "line %d:", &line)
			_, text, _ = strings.Cut(text, ": ")
			r.refuseLine(line, "%s", inPlainWords(text))
		}
	case err != nil && !errors.Is(err, io.EOF): // which is nothing but comments
		r.errs = append(r.errs, fmt.Errorf("%s: %s", r.path, inPlainWords(err.Error())))
	}
	r.settings.source.externalURL = r.webAddress("externalURL", file.ExternalURL)
	r.settings.source.runbooksURL = r.webAddress("runbooksURL", file.RunbooksURL)
	r.deadManSwitch(file.DeadManSwitch)
	for _, name := range slices.Sorted(maps.Keys(file.Sinks)) {
		r.sink(name, file.Sinks[name])
	}
	for i := range file.Rules {
		r.rule(fmt.Sprintf("rules[%d]", i), cmp.Or(file.Rules[i].Name, fmt.Sprintf("rule-%d", i+1)), &file.Rules[i])
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

// refuse notes a mistake. The place of a field is written as in rules[1].to.
func (r *settingsReader) refuse(where, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s: %s", r.path, nodeOf(&r.root, where).Line, where, fmt.Sprintf(format, args...)))
}

// refuseLine notes a mistake in a line, with which nothing in that line is used.
func (r *settingsReader) refuseLine(line int, format string, args ...any) {
	r.bad = append(r.bad, line)
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.path, line, fmt.Sprintf(format, args...)))
}

// check notes the fields that have no value: a rule whose queue is empty must not be one for all queues. And it refuses YAML's merge keys.
func (r *settingsReader) check(n *yaml.Node) {
	for i, child := range n.Content {
		switch {
		case child.Tag == "!!merge":
			r.refuseLine(child.Line, "the key << is not read: write the fields out")
		case child.Kind == yaml.ScalarNode && child.Value == "" || child.Tag == "!!null":
			field := "an item"
			if n.Kind == yaml.MappingNode {
				field = n.Content[i-i%2].Value
			}
			r.refuseLine(child.Line, "%s is empty: give it a value, or leave it out", field)
		}
		r.check(child)
	}
}

// touched reports whether a line of n has a mistake.
func (r *settingsReader) touched(n *yaml.Node) bool {
	return slices.Contains(r.bad, n.Line) || slices.ContainsFunc(n.Content, r.touched)
}

// nodeOf is a field, or the last one on the way there that the file has.
func nodeOf(n *yaml.Node, where string) *yaml.Node {
	for i, child := range n.Content {
		key := fmt.Sprintf("[%d]", i)
		switch {
		case n.Kind == yaml.DocumentNode:
			return nodeOf(child, where)
		case n.Kind == yaml.MappingNode && i%2 == 0:
			key = child.Value
			child = n.Content[i+1]
		case n.Kind != yaml.SequenceNode:
			continue
		}
		if rest, is := strings.CutPrefix(where, key); is && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return nodeOf(child, strings.TrimPrefix(rest, "."))
		}
	}
	return n
}

// secret is value, or what the file holds that is named instead.
func (r *settingsReader) secret(where, value, file string) string {
	if file == "" {
		return value
	}
	if value != "" {
		r.refuse(where+"File", "%s is given as well; keep one", where[strings.LastIndexByte(where, '.')+1:])
	}
	content, err := r.readFile(file)
	if err != nil {
		r.refuse(where+"File", "%v", err)
	}
	return strings.TrimSpace(content)
}

func (r *settingsReader) deadManSwitch(file *switchFile) {
	if file == nil {
		return
	}
	d := deadManSwitch{url: r.secret("deadManSwitch.url", file.URL, file.URLFile), every: defaultEvery}
	if !isWebAddress(d.url) {
		r.refuse("deadManSwitch", "the field url, or the file that urlFile names, must hold an http:// or https:// URL")
		return
	}
	if file.Every != "" {
		d.every = r.duration("deadManSwitch.every", file.Every, time.Second)
	}
	r.settings.deadManSwitch = d
}

var sinkName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func (r *settingsReader) sink(name string, file *sinkFile) {
	where, before := "sinks."+name, len(r.errs)
	if len(name) > 64 || !sinkName.MatchString(name) || name == logName {
		r.refuse(where, "want a name of letters, digits, '.', '_' and '-', 64 at most, and not %s, which always exists", logName)
	}
	if slices.Contains(r.sinkNames(), name) {
		r.refuse(where, "a sink of CURFEW_ALERT_URLS has that name")
	}
	if file == nil {
		file = new(sinkFile)
	}
	s := sinkSettings{name: name, url: r.secret(where+".url", file.URL, file.URLFile), secret: r.secret(where+".secret", file.Secret, file.SecretFile)}
	if len(r.errs) > before || r.touched(nodeOf(&r.root, where)) {
		return
	}
	if err := s.check(); err != nil {
		r.refuse(where, "%v", err)
		return
	}
	r.settings.sinks = append(r.settings.sinks, s)
}

func (r *settingsReader) rule(where, name string, file *ruleFile) {
	out := *everything
	out.Name, out.Severity = name, file.Severity
	out.VHost, out.Queue = cmp.Or(file.VHost, out.VHost), cmp.Or(file.Queue, out.Queue)
	out.vhost, out.queue = newPattern(out.VHost), newPattern(out.Queue)
	if slices.ContainsFunc(r.settings.rules, func(other *rule) bool { return other.Name == name }) {
		r.refuse(where+".name", "%q is the name of another rule, too", name)
	}
	for _, event := range file.Events {
		if c := ConditionOf(event); c != nil {
			out.Events = append(out.Events, c.Name)
		} else {
			r.refuse(where+".events", "unknown event %q: want one of %s", event, strings.Join(Names(), ", "))
		}
	}
	out.To = file.To
	known := append([]string{logName}, r.sinkNames()...)
	for _, sink := range out.To {
		if !slices.Contains(known, sink) {
			r.refuse(where+".to", "unknown sink %q: want one of %s", sink, strings.Join(known, ", "))
		}
	}
	if file.Severity != "" && !slices.Contains(severities, file.Severity) {
		r.refuse(where+".severity", "%q is invalid: want %s", file.Severity, strings.Join(severities, " or "))
	}
	if file.Count != "" {
		var err error
		if out.Count, err = strconv.ParseInt(file.Count, 10, 64); err != nil || out.Count < 1 {
			r.refuse(where+".count", "%q is invalid: want a number from 1", file.Count)
		}
	}
	if file.Lateness != "" {
		out.lateness = r.duration(where+".lateness", file.Lateness, 0)
	}
	r.settings.rules = append(r.settings.rules, &out)
}

// duration reads a duration, least at least.
func (r *settingsReader) duration(where, text string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < least {
		r.refuse(where, "%q is invalid: want a duration such as 500ms, 10s or 4h, at least %s", text, least)
	}
	return d
}

func (r *settingsReader) webAddress(where, text string) string {
	if text != "" && !isWebAddress(text) {
		r.refuse(where, "want an http:// or https:// URL")
	}
	return text
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// The mistakes that the decoder of YAML finds, which name types of Go.
var (
	unknownField = regexp.MustCompile(`(?s)^field (.*) not found in type incident\.(\w+)$`)
	wrongKind    = regexp.MustCompile(`(?s)^cannot unmarshal .* into (.*)$`)
	quotedValue  = regexp.MustCompile("(?s)`.*`")
)

// inPlainWords says a mistake without types of Go or values, which may be secrets, and with what is allowed.
func inPlainWords(text string) string {
	if m := unknownField.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("unknown field %q: want one of %s", m[1], strings.Join(fieldsOf(m[2]), ", "))
	}
	if m := wrongKind.FindStringSubmatch(text); m != nil {
		want := "text"
		switch kind := strings.TrimLeft(m[1], "*"); {
		case strings.HasPrefix(kind, "[]"):
			want = "a list"
		case strings.HasPrefix(kind, "map["):
			want = "a mapping from the name of each sink to its url"
		case strings.HasPrefix(kind, "incident."):
			want = "a mapping with the fields " + strings.Join(fieldsOf(strings.TrimPrefix(kind, "incident.")), ", ")
		}
		return "want " + want
	}
	return quotedValue.ReplaceAllString(text, "a value")
}

// fieldsOf returns the names of the fields of one of the types above.
func fieldsOf(name string) (names []string) {
	for _, of := range []any{alertsFile{}, switchFile{}, sinkFile{}, ruleFile{}} {
		if t := reflect.TypeOf(of); t.Name() == name {
			for i := range t.NumField() {
				names = append(names, t.Field(i).Tag.Get("yaml"))
			}
		}
	}
	return names
}
