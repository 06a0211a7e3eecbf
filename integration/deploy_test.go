package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"curfew/scheduler/storetest"
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

// TestRunbooks: every alert, of Prometheus's rules and of Curfew's own, has a page that says what it means and what to do, and no page is
// about an alert that is gone.
func TestRunbooks(t *testing.T) {
	wanted := make(map[string]bool)
	for _, group := range prometheusRulesOf(t).Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			wanted[rule.Alert] = true
			if want := "deploy/runbooks/" + rule.Alert + ".md"; rule.Annotations["runbook_url"] != want {
				t.Errorf("%s has the runbook %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
			}
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s lacks a severity, summary or description", rule.Alert)
			}
		}
	}
	source, err := os.ReadFile("../monitor/alert/event.go")
	check(t, err)
	for _, match := range regexp.MustCompile(`\{"(Curfew\w+)"`).FindAllStringSubmatch(string(source), -1) {
		wanted[match[1]] = match[1] != "CurfewTest"
	}
	pages, err := os.ReadDir(filepath.Join(deployFolder, "runbooks"))
	check(t, err)
	for _, page := range pages {
		name := strings.TrimSuffix(page.Name(), ".md")
		if !wanted[name] {
			t.Errorf("%s is about no alert", page.Name())
		}
		delete(wanted, name)
		text := deployed(t, "runbooks/"+page.Name())
		if !containsAll(text, []string{"# " + name + "\n", "\n## What it means\n", "\n## How to check\n", "\n## What to do\n"}) {
			t.Errorf("%s lacks a part", page.Name())
		}
	}
	for name, yes := range wanted {
		if yes {
			t.Errorf("%s has no runbook", name)
		}
	}
}

var metricName = regexp.MustCompile(`\b(curfew|rabbitmq|process)_[a-z0-9_]+`)

// TestDashboardsAndRulesNameRealMetrics: what they ask Prometheus for is what a running Curfew shows. Series that only a failure makes are
// looked for in the source.
func TestDashboardsAndRulesNameRealMetrics(t *testing.T) {
	redis := storetest.StartRedis(t)
	c := startCurfew(t, "REDIS_URL="+redis.URL, "HEARTBEAT_URL=http://127.0.0.1:1/")
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
	for _, expr := range dashboardQueries(t) {
		for _, name := range metricName.FindAllString(expr, -1) {
			asked[name] = "the dashboard"
		}
	}
	if len(asked) < 50 {
		t.Fatalf("only %d metrics were found", len(asked))
	}
	source := sources(t)
	for name, by := range asked {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		if !strings.Contains(shown, "\n"+name) && !strings.Contains(source, `"`+base+`"`) {
			t.Errorf("%s asks for %s, which there is not", by, name)
		}
	}
	// And the other way round: a metric of Curfew's that nobody looks at is a mistake in the dashboard.
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (curfew_\w+) (\w+)`).FindAllStringSubmatch(shown, -1) {
		name := match[1]
		if match[2] == "histogram" {
			name += "_bucket"
		}
		if asked[name] == "" {
			t.Errorf("%s is shown by Curfew, but in no panel and no rule", name)
		}
	}
}

func dashboardQueries(t testing.TB) (queries []string) {
	t.Helper()
	var dashboard struct {
		UID    string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	check(t, json.Unmarshal([]byte(deployed(t, "grafana/curfew.json")), &dashboard))
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	return queries
}

// TestDashboardQueriesAreValid: promtool takes each, its variables filled in, as the expression of a rule.
func TestDashboardQueriesAreValid(t *testing.T) {
	fill := strings.NewReplacer("$job", ".+", "$instance", ".+", "$__rate_interval", "5m")
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for i, expr := range dashboardQueries(t) {
		fmt.Fprintf(&rules, "      - {record: query%d, expr: %q}\n", i, fill.Replace(expr))
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	check(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	checked(t, "prometheus", "promtool", "check", "rules", file)
}

// sources is the text of all Go files that are no tests.
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

type composeFile struct {
	Services map[string]struct {
		Image       string
		Command     yaml.Node
		Environment map[string]string
		Volumes     []string
	}
	Volumes map[string]any
}

func composed(t testing.TB) (file composeFile) {
	t.Helper()
	check(t, yaml.Unmarshal([]byte(deployed(t, "compose.yaml")), &file))
	return file
}

// TestCompose: files that are mounted exist, images have a version, and the settings are Curfew's.
func TestCompose(t *testing.T) {
	file := composed(t)
	for name, service := range file.Services {
		if service.Image != "curfew" && !regexp.MustCompile(`:v?\d`).MatchString(service.Image) {
			t.Errorf("%s: image %s has no version", name, service.Image)
		}
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(filepath.Join(deployFolder, source)); err != nil && file.Volumes != nil && !hasKey(file.Volumes, source) {
				t.Errorf("%s mounts %s, which there is not", name, source)
			}
		}
	}
	if code, out := runToEnd(t, "config", composeSettings(file)...); code != 0 {
		t.Errorf("curfew refuses the settings: %s", out)
	}
}

func hasKey(m map[string]any, key string) bool { _, ok := m[key]; return ok }

func composeSettings(file composeFile) (settings []string) {
	for name, value := range file.Services["curfew"].Environment {
		settings = append(settings, strings.TrimPrefix(name, "CURFEW_")+"="+filledIn(value))
	}
	return settings
}

// filledIn puts a password where compose does.
func filledIn(text string) string {
	return regexp.MustCompile(`\$\{CURFEW_PASSWORD[^}]*\}`).ReplaceAllString(text, "secret")
}

// TestComposeTellsOfMissedDeadlines: what compose.yaml starts, with its files, settings and the application's command, on this machine. The
// alert of a missed deadline is in Alertmanager, from Curfew and from Prometheus.
func TestComposeTellsOfMissedDeadlines(t *testing.T) {
	file := composed(t)
	redis := storetest.StartRedis(t)
	managerAddr, prometheusAddr := freeAddr(t), freeAddr(t)
	startTool(t, "prometheus-alertmanager", "--config.file="+filepath.Join(deployFolder, "prometheus/alertmanager.yml"), "--storage.path="+t.TempDir(),
		"--web.listen-address="+managerAddr, "--cluster.listen-address=")
	awaitReady(t, "http://"+managerAddr+"/-/ready")
	hosts := strings.NewReplacer("redis://redis:6379", redis.URL, "alertmanager:9093", managerAddr)
	settings := composeSettings(file)
	for i := range settings {
		settings[i] = hosts.Replace(settings[i])
	}
	c := startCurfew(t, settings...)

	dir := t.TempDir()
	config := strings.NewReplacer("curfew:15692", strings.TrimPrefix(c.ops, "http://"), "alertmanager:9093", managerAddr).Replace(deployed(t, "prometheus/prometheus.yml"))
	check(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "curfew.rules.yml"), []byte(deployed(t, "prometheus/curfew.rules.yml")), 0o600))
	startTool(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+prometheusAddr)

	var command []string
	app := file.Services["app"].Command
	check(t, app.Decode(&command))
	for i := range command {
		command[i] = strings.Replace(filledIn(command[i]), "curfew:5672", strings.TrimPrefix(c.url, "amqp://guest:guest@"), 1)
	}
	startTool(t, mustBinary(t, release), command...)
	eventually(t, 2*time.Minute, "the alert from Curfew and from Prometheus", func() bool {
		jobs := jobsOf(t, managerAddr, "CurfewDeadlineMissed")
		return slices.Contains(jobs, "") && slices.Contains(jobs, "curfew")
	})
}

// jobsOf lists the label job of the alerts of a name in an Alertmanager: Curfew's own have none.
func jobsOf(t testing.TB, manager, name string) (jobs []string) {
	t.Helper()
	resp, err := http.Get("http://" + manager + "/api/v2/alerts")
	check(t, err)
	defer resp.Body.Close()
	var alerts []struct{ Labels map[string]string }
	check(t, json.NewDecoder(resp.Body).Decode(&alerts))
	for _, a := range alerts {
		if a.Labels["alertname"] == name {
			jobs = append(jobs, a.Labels["job"])
		}
	}
	return jobs
}

// TestSystemdUnit: systemd's own checker, with the binary in its place, and its judgement of the sandbox.
func TestSystemdUnit(t *testing.T) {
	unit := strings.ReplaceAll(deployed(t, "systemd/curfew.service"), "/usr/bin/curfew", mustBinary(t, release))
	file := filepath.Join(t.TempDir(), "curfew.service")
	check(t, os.WriteFile(file, []byte(unit), 0o644))
	checked(t, "systemd", "systemd-analyze", "verify", "--man=no", file)
	checked(t, "systemd", "systemd-analyze", "security", "--offline=true", "--threshold=20", file) // of 100, 0 is best
	for _, match := range regexp.MustCompile(`(?m)^#? ?Environment=(CURFEW_\w+)=`).FindAllStringSubmatch(unit, -1) {
		if _, known := runToEnd(t, "config"); !strings.Contains(known, strings.TrimSuffix(match[1], "_FILE")) {
			t.Errorf("%s is not a variable of Curfew's", match[1])
		}
	}
}

// TestDockerfile: what hadolint would say, as far as it matters here.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	check(t, err)
	lines := strings.Split(strings.ReplaceAll(string(text), "\\\n", " "), "\n")
	var last []string // instructions of the last stage
	for _, line := range lines {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "FROM":
			last = nil
			image := strings.Fields(strings.TrimPrefix(rest, "--platform=$BUILDPLATFORM "))[0]
			if image != "scratch" && (!strings.Contains(image, ":") || strings.HasSuffix(image, ":latest")) {
				t.Errorf("%s has no version", image)
			}
		case "ADD", "MAINTAINER":
			t.Errorf("%s is not to be used", verb)
		case "CMD", "ENTRYPOINT":
			if !strings.HasPrefix(rest, "[") {
				t.Errorf("%s %s wants a shell, and the image has none", verb, rest)
			}
		case "RUN":
			if slices.Contains(strings.Fields(rest), "sudo") || strings.Contains(rest, "apt-get") {
				t.Errorf("RUN %s", rest)
			}
		case "WORKDIR":
			if !strings.HasPrefix(rest, "/") {
				t.Errorf("WORKDIR %s is relative", rest)
			}
		}
		last = append(last, strings.TrimSpace(line))
	}
	stage := strings.Join(last, "\n")
	for _, want := range []string{"USER 65532:65532", "--chown=65532:65532 /out/var/lib/curfew", "HEALTHCHECK", "VOLUME /var/lib/curfew"} {
		if !strings.Contains(stage, want) {
			t.Errorf("the image lacks %s", want)
		}
	}
	if user, volume := strings.Index(stage, "USER "), strings.Index(stage, "COPY --from=build --chown"); user < volume {
		t.Error("files are copied after USER: they would be another's")
	}
}

// TestInjectedExample: deploy/kubernetes/sidecar.yaml is app.yaml with the sidecar.
func TestInjectedExample(t *testing.T) {
	out := tool(t, mustBinary(t, release), "inject", "--image", "curfew:1.0.0", "-f", filepath.Join(deployFolder, "kubernetes/app.yaml"))
	_, manifest, _ := strings.Cut(out, "\napiVersion")
	if want := deployed(t, "kubernetes/sidecar.yaml"); strings.TrimSpace("apiVersion"+manifest) != strings.TrimSpace(want) {
		t.Errorf("inject makes of app.yaml\n%s\nand sidecar.yaml is\n%s", manifest, want)
	}
}
