package integration

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"curfew/integration/testenv"
	"curfew/monitor/incident"
)

const deployFolder = "../deploy"

func deployed(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployFolder, path))
	check(t, err)
	return string(text)
}

// checked runs a program of a Debian package, which must be content.
func checked(t *testing.T, pkg, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v; run: apt-get install -y --no-install-recommends %s", err, pkg)
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
}

// TestPrometheusFiles: rules and configuration are what Prometheus and Alertmanager take, and the rules do what their unit tests say.
func TestPrometheusFiles(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(deployFolder, "prometheus")
	checked(t, "prometheus", "promtool", "check", "rules", filepath.Join(folder, "curfew.rules.yml"))
	checked(t, "prometheus", "promtool", "check", "config", filepath.Join(folder, "prometheus.yml"))
	checked(t, "prometheus", "promtool", "test", "rules", filepath.Join(folder, "curfew.rules.test.yml"))
	checked(t, "prometheus-alertmanager", "amtool", "check-config", filepath.Join(folder, "alertmanager.yml"))
}

// ruleFile is what is read of Prometheus's rules.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

func prometheusRulesOf(t testing.TB) (file ruleFile) {
	t.Helper()
	check(t, yaml.Unmarshal([]byte(deployed(t, "prometheus/curfew.rules.yml")), &file))
	return file
}

var heading = regexp.MustCompile(`(?m)^#.*$`)

// TestRunbooks: every alert, of Prometheus's rules and of Curfew's own, has a page that says what it means, what to look at, what to do and
// when it is over, and no page is about an alert that is gone.
func TestRunbooks(t *testing.T) {
	wanted := make(map[string][]string) // the alerts of each page
	add := func(alert string) {
		if page := incident.Runbook(alert); !slices.Contains(wanted[page], alert) {
			wanted[page] = append(wanted[page], alert)
		}
	}
	for _, group := range prometheusRulesOf(t).Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			add(rule.Alert)
			if want := "deploy/runbooks/" + incident.Runbook(rule.Alert); rule.Annotations["runbook_url"] != want {
				t.Errorf("%s has the runbook %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
			}
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s lacks a severity, summary or description", rule.Alert)
			}
		}
	}
	for _, c := range incident.Conditions {
		add(c.Alertname())
	}
	add("CurfewWatchdog")
	pages, err := os.ReadDir(filepath.Join(deployFolder, "runbooks"))
	check(t, err)
	for _, page := range pages {
		text := deployed(t, "runbooks/"+page.Name())
		if wanted[page.Name()] == nil {
			t.Errorf("%s is about no alert", page.Name())
		}
		for _, alert := range wanted[page.Name()] {
			if !strings.Contains(text, alert) {
				t.Errorf("%s does not say what %s means", page.Name(), alert)
			}
		}
		delete(wanted, page.Name())
		parts := []string{"# " + strings.TrimSuffix(page.Name(), ".md"), "## What it means", "## Look at", "## Do", "## It is over when"}
		if have := heading.FindAllString(text, -1); !slices.Equal(have, parts) {
			t.Errorf("%s has the headings %q, want %q", page.Name(), have, parts)
		}
	}
	for name, alerts := range wanted {
		t.Errorf("there is no page %s for %v", name, alerts)
	}
}

var metricName = regexp.MustCompile(`\b(curfew|rabbitmq|process)_[a-z0-9_]+`)

// TestDashboardsAndRulesNameRealMetrics: what they ask Prometheus for is what a running Curfew shows, and of that they leave nothing out.
// Series that only a failure makes are looked for in the source.
func TestDashboardsAndRulesNameRealMetrics(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	redis := testenv.StartRedis(t)
	c := startCurfew(t, "REDIS_URL="+redis.URL, "ALERTS="+alertsFile(t, "deadManSwitch: {url: http://127.0.0.1:1/}"))
	q := topology{queue: "orders", dlx: "dlx", dlq: "dead"}
	goClient{}.declare(t, c.url, q)
	goClient{}.publish(t, c.url, q.queue, []planned{{id: "x", ttlMillis: 1}})
	eventually(t, startLimit, "a message to expire", func() bool { return c.metric("curfew_deadlines_fired_total") > 0 })
	_, shown := c.fetch("/metrics")

	asked := make(map[string]string)
	for _, group := range prometheusRulesOf(t).Groups {
		for _, rule := range group.Rules {
			for _, name := range metricName.FindAllString(rule.Expr, -1) {
				asked[name] = "the rules"
			}
		}
	}
	for _, expr := range grafanaQueries(t) {
		for _, name := range metricName.FindAllString(expr, -1) {
			asked[name] = "the dashboard"
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (curfew_\w+)`).FindAllStringSubmatch(shown, -1) {
		if name := match[1]; asked[name] == "" && asked[name+"_bucket"] == "" {
			t.Errorf("%s is in no panel and no rule", name)
		}
	}
	for _, name := range metricName.FindAllString(runbooks(t), -1) {
		asked[name] = "a runbook"
	}
	if len(asked) < 50 {
		t.Fatalf("only %d metrics were found", len(asked))
	}
	source := sources(t)
	for name, by := range asked {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		if !strings.Contains(shown, "\n"+name) && !strings.Contains(source, `"`+base+`"`) {
			t.Errorf("%s asks for %s, which does not exist", by, name)
		}
	}
}

// runbooks is the text of all of them.
func runbooks(t testing.TB) (text string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(deployFolder, "runbooks/*.md"))
	check(t, err)
	for _, file := range files {
		page, err := os.ReadFile(file)
		check(t, err)
		text += string(page)
	}
	return text
}

// TestDeployNamesRealSettings: every variable that a file below deploy names is one of Curfew's, and those of the sidecar have values that it
// takes.
func TestDeployNamesRealSettings(t *testing.T) {
	_, known := runToEnd(t, "config")
	variable := regexp.MustCompile(`(CURFEW|OTEL)_[A-Z0-9][A-Z0-9_]*`)
	is := make(map[string]bool)
	for _, name := range variable.FindAllString(known, -1) {
		is[name] = true
	}
	check(t, filepath.WalkDir(deployFolder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range variable.FindAllString(string(text), -1) {
			if !is[name] && !is[strings.TrimSuffix(name, "_FILE")] {
				t.Errorf("%s names %s, which is not a variable of Curfew's", path, name)
			}
		}
		return err
	}))
	var settings []string
	for _, match := range regexp.MustCompile(`- name: CURFEW_(\w+)\n +value: (.+)`).FindAllStringSubmatch(deployed(t, "kubernetes/sidecar.yaml"), -1) {
		settings = append(settings, match[1]+"="+match[2])
	}
	if code, out := runToEnd(t, "config", settings...); code != 0 || len(settings) < 6 {
		t.Errorf("curfew refuses %v: %s", settings, out)
	}
}

// sources is the text of all Go files except tests.
func sources(t testing.TB) string {
	t.Helper()
	var all bytes.Buffer
	for _, folder := range []string{"../broker", "../monitor", "../cmd"} {
		check(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	}
	return all.String()
}
