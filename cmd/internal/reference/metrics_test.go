package reference

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// metric is a metric of Curfew's own.
type metric struct {
	name, help, kind string
	labels           []string
	broker, rabbitmq bool // whether it is there with a broker, and beside RabbitMQ
}

// metricsTable is what the registries of running nodes have, in both modes.
func metricsTable(t *testing.T) string {
	all := map[string]*metric{}
	t.Run("broker", func(t *testing.T) {
		r := startNode(t, false)
		r.fill()
		readMetrics(t, r, all)
	})
	t.Run("beside RabbitMQ", func(t *testing.T) { readMetrics(t, startNode(t, true), all) })
	alerts := alertsOf(t)
	out := newTable("Metric", "Type", "Labels", "Unit", "Where", "Meaning", "Alerts")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		out.row(code(name), m.kind, strings.Join(quoted(m.labels), ", "), unitOf(m), where(m), m.help, strings.Join(alerts[name], ", "))
		delete(alerts, name)
	}
	for name := range alerts {
		assert.NotRegexp(t, `^curfew_`, name, "an alert uses it, and no Curfew has it")
	}
	return out.String()
}

var (
	descriptions = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: ("(?:[^"\\]|\\.)*"), unit: "\w*", constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)
	// foreign are metrics of Go and of the process, which client_golang documents.
	foreign = regexp.MustCompile(`^(go|process)_`)
)

// readMetrics notes what a registry can have. What it has now shows the types; of the others the name does.
func readMetrics(t *testing.T, r *running, all map[string]*metric) {
	families, err := r.metrics.Gather()
	require.NoError(t, err)
	kinds := map[string]string{}
	note := func(name, help string, labels []string) {
		m := all[name]
		if m == nil {
			m = &metric{name: name, help: help, kind: cmp.Or(kinds[name], kindByName(name)), labels: slices.Sorted(slices.Values(labels))}
			all[name] = m
		}
		m.broker, m.rabbitmq = m.broker || r.broker, m.rabbitmq || !r.broker
	}
	for _, f := range families {
		if name := f.GetName(); !foreign.MatchString(name) {
			kinds[name] = strings.ToLower(f.GetType().String())
			assert.Contains(t, []string{"histogram", kindByName(name)}, kinds[name], name)
			note(name, f.GetHelp(), labelsOf(f))
		}
	}
	described := make(chan *prometheus.Desc)
	go func() {
		r.metrics.Describe(described)
		close(described)
	}()
	for d := range described {
		match := descriptions.FindStringSubmatch(d.String())
		require.NotNil(t, match, d.String())
		help, err := strconv.Unquote(match[2])
		require.NoError(t, err)
		if !foreign.MatchString(match[1]) {
			note(match[1], help, strings.FieldsFunc(match[3], func(r rune) bool { return r == ',' }))
		}
	}
}

func kindByName(name string) string {
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// unitOf is the unit that the name ends with.
func unitOf(m *metric) string {
	name := strings.TrimSuffix(m.name, "_total")
	switch {
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return "Unix seconds"
	case strings.HasSuffix(name, "_seconds"):
		return "seconds"
	case strings.HasSuffix(name, "_bytes"):
		return "bytes"
	}
	return ""
}

func where(m *metric) string {
	switch {
	case m.broker && m.rabbitmq:
		return "both"
	case m.broker:
		return "broker"
	}
	return "beside RabbitMQ"
}

func quoted(list []string) (out []string) {
	for _, one := range list {
		out = append(out, code(one))
	}
	return out
}

// alertsOf are links to the pages of alerts, by the metrics that they look at, by way of recording rules too.
func alertsOf(t *testing.T) map[string][]string {
	text, err := os.ReadFile(root + "/deploy/prometheus/curfew.rules.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Record, Expr string
				Annotations         map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	recorded := map[string]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Record != "" {
				recorded[rule.Record] = rule.Expr
			}
		}
	}
	list := map[string][]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			expr := rule.Expr
			for name, by := range recorded {
				if strings.Contains(expr, name) {
					expr += "\n" + by
				}
			}
			page := rule.Annotations["runbook_url"]
			_, err := os.Stat(root + "/" + page)
			require.NoError(t, err)
			link := fmt.Sprintf("[%s](../../%s)", strings.TrimPrefix(rule.Alert, "Curfew"), page)
			for _, name := range regexp.MustCompile(`\b(curfew|rabbitmq)_\w+`).FindAllString(expr, -1) {
				name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
				if !slices.Contains(list[name], link) {
					list[name] = append(list[name], link)
				}
			}
		}
	}
	return list
}

// rabbitmqMetricsTable is the metrics named like RabbitMQ's of a broker that has queues and clients.
func rabbitmqMetricsTable(t *testing.T) (text string) {
	t.Run("broker", func(t *testing.T) {
		r := startNode(t, false)
		r.fill()
		nodes, objects := scrape(t, r, "/metrics"), scrape(t, r, "/metrics/per-object")
		out := newTable("Metric", "Type", "`/metrics`", "Labels on `/metrics/per-object`", "Meaning")
		names := map[string]bool{}
		for _, families := range []map[string]*dto.MetricFamily{nodes, objects} {
			for name := range families {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if !strings.HasPrefix(name, "rabbitmq_") {
				continue
			}
			f, whole, labels := objects[name], "", "not there"
			if nodes[name] != nil {
				f, whole = nodes[name], "y"
			}
			if objects[name] != nil {
				labels = strings.Join(quoted(labelsOf(objects[name])), ", ")
			}
			out.row(code(name), strings.ToLower(f.GetType().String()), whole, labels, f.GetHelp())
		}
		text = out.String()
	})
	return text
}

func scrape(t *testing.T, r *running, path string) map[string]*dto.MetricFamily {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(r.get(path)))
	require.NoError(t, err)
	return families
}

// labelsOf are the labels that a metric of the family has.
func labelsOf(f *dto.MetricFamily) (names []string) {
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if !slices.Contains(names, l.GetName()) {
				names = append(names, l.GetName())
			}
		}
	}
	slices.Sort(names)
	return names
}
