package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"curfew/integration/testenv"
)

type composeFile struct {
	Services map[string]struct {
		Image       string
		Command     yaml.Node
		Environment map[string]string
		Volumes     []string
	}
	Volumes map[string]any
}

func composed(t testing.TB, name string) (file composeFile) {
	t.Helper()
	check(t, yaml.Unmarshal([]byte(deployed(t, name)), &file))
	return file
}

// TestCompose: files that are mounted exist, images have a version, and the settings are Curfew's.
func TestCompose(t *testing.T) {
	t.Run("compose.yaml", func(t *testing.T) { composesWell(t, "compose.yaml", "curfew") })
	t.Run("compose.rabbitmq.yaml", func(t *testing.T) { composesWell(t, "compose.rabbitmq.yaml", "curfew-0", "curfew-1") })
}

func composesWell(t *testing.T, name string, curfews ...string) {
	file := composed(t, name)
	for name, service := range file.Services {
		if !regexp.MustCompile(`:v?\d`).MatchString(service.Image) {
			t.Errorf("%s: image %s has no version", name, service.Image)
		}
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(filepath.Join(deployFolder, source)); err != nil && file.Volumes != nil && !hasKey(file.Volumes, source) {
				t.Errorf("%s mounts %s, which does not exist", name, source)
			}
		}
	}
	for _, service := range curfews {
		if code, out := runToEnd(t, "config", composeSettings(file, service)...); code != 0 {
			t.Errorf("curfew refuses the settings of %s: %s", service, out)
		}
	}
}

func hasKey(m map[string]any, key string) bool { _, ok := m[key]; return ok }

func composeSettings(file composeFile, service string) (settings []string) {
	for name, value := range file.Services[service].Environment {
		settings = append(settings, strings.TrimPrefix(name, "CURFEW_")+"="+filledIn(value))
	}
	return settings
}

// filledIn puts a password where compose does.
func filledIn(text string) string {
	return regexp.MustCompile(`\$\{(CURFEW|RABBITMQ)_PASSWORD[^}]*\}`).ReplaceAllString(text, "secret")
}

// TestComposeTellsOfMissedDeadlines: what compose.yaml starts, with its files, settings and the application's command, on this machine. The
// alert of a missed deadline is in Alertmanager, from Curfew and from Prometheus, and people are told once.
func TestComposeTellsOfMissedDeadlines(t *testing.T) {
	t.Parallel()
	file := composed(t, "compose.yaml")
	redis := testenv.StartRedis(t)
	managerAddr, prometheusAddr := testenv.FreeAddr(), testenv.FreeAddr()
	startTool(t, "prometheus-alertmanager", "--config.file="+filepath.Join(deployFolder, "prometheus/alertmanager.yml"), "--storage.path="+t.TempDir(),
		"--web.listen-address="+managerAddr, "--cluster.listen-address=")
	awaitReady(t, "http://"+managerAddr+"/-/ready")
	hosts := strings.NewReplacer("redis://redis:6379", redis.URL, "alertmanager:9093", managerAddr)
	settings := composeSettings(file, "curfew")
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
	here := strings.NewReplacer("http://curfew:15672", c.http, "curfew:5672", strings.TrimSuffix(strings.TrimPrefix(c.url, "amqp://guest:guest@"), "/"))
	for i := range command {
		command[i] = here.Replace(filledIn(command[i]))
	}
	tool := []string{mustBinary(t, release)}
	for _, setting := range composeSettings(file, "app") {
		tool = append([]string{"CURFEW_" + setting}, tool...)
	}
	startTool(t, "env", append(tool, command...)...)
	var told []managerAlert
	eventually(t, 4*time.Minute, "the alert from Curfew and from Prometheus", func() bool {
		told = alertsIn(t, managerAddr)
		return len(fromCurfew(told)) > 0 && len(fromPrometheus(told)) > 0
	})
	eventually(t, startLimit, "Curfew's own alert to stand for Prometheus's", func() bool {
		told = alertsIn(t, managerAddr)
		return !slices.ContainsFunc(fromPrometheus(told), func(a managerAlert) bool { return a.Status.State != "suppressed" })
	})
	if own := fromCurfew(told); !slices.ContainsFunc(own, func(a managerAlert) bool { return a.Status.State == "active" }) {
		t.Errorf("nobody is told: %+v", own)
	}
}

// managerAlert is an alert in an Alertmanager.
type managerAlert struct {
	Labels map[string]string
	Status struct{ State string }
}

// alertsIn lists the alerts in an Alertmanager.
func alertsIn(t testing.TB, manager string) (alerts []managerAlert) {
	t.Helper()
	resp, err := http.Get("http://" + manager + "/api/v2/alerts")
	check(t, err)
	defer resp.Body.Close()
	check(t, json.NewDecoder(resp.Body).Decode(&alerts))
	return alerts
}

// fromCurfew are those of missed deadlines that Curfew sent itself, fromPrometheus those that its rules made of the metric.
func fromCurfew(all []managerAlert) []managerAlert {
	return slices.DeleteFunc(slices.Clone(all), func(a managerAlert) bool {
		return a.Labels["alertname"] != "CurfewDeadlineMissed" || a.Labels["job"] != ""
	})
}

func fromPrometheus(all []managerAlert) []managerAlert {
	return slices.DeleteFunc(slices.Clone(all), func(a managerAlert) bool {
		return a.Labels["alertname"] != "CurfewIncident" || a.Labels["condition"] != "deadline_missed" || a.Labels["job"] != "curfew"
	})
}

// TestComposeWithoutRabbitMQ: with the settings of compose.rabbitmq.yaml, while RabbitMQ and Redis are away, Curfew is ready and alive and says
// what is missing. Its own user may look, and guest has no account.
func TestComposeWithoutRabbitMQ(t *testing.T) {
	t.Parallel()
	nodes := []string{testenv.FreeAddr(), testenv.FreeAddr(), testenv.FreeAddr()}
	hosts := strings.NewReplacer("rabbitmq-0,rabbitmq-1,rabbitmq-2", strings.Join(nodes, ","), "rabbitmq-0:15672,rabbitmq-1:15672,rabbitmq-2:15672", testenv.FreeAddr(), "redis:6379", testenv.FreeAddr())
	settings := composeSettings(composed(t, "compose.rabbitmq.yaml"), "curfew-0")
	for i := range settings {
		settings[i] = hosts.Replace(settings[i])
	}
	c := startCurfew(t, settings...)
	eventually(t, time.Minute, "both to be missed", func() bool {
		code, health := answerOf(t, c.ops+"/healthz", "", "")
		if code != http.StatusOK {
			t.Fatalf("/healthz answers %d, and a restart would not help: %s", code, health)
		}
		return strings.Contains(health, `"degraded"`) && strings.Contains(health, "Some deadlines in RabbitMQ are not watched: ") &&
			strings.Contains(health, "the queues of RabbitMQ have not been looked at") && strings.Contains(health, "Redis has not answered")
	})
	if code, text := answerOf(t, c.ops+"/readyz", "", ""); code != http.StatusOK {
		t.Errorf("/readyz answers %d: %s", code, text)
	}
	if code, text := answerOf(t, c.http+"/api/curfew/rabbitmq", "app", "secret"); code != http.StatusOK || !strings.Contains(text, `"redis":"down"`) {
		t.Errorf("the user is told %d: %s", code, text)
	}
	if code, text := answerOf(t, c.http+"/api/curfew/rabbitmq", "guest", "guest"); code != http.StatusUnauthorized {
		t.Errorf("guest is told %d: %s", code, text)
	}
	if log := c.log.String(); strings.Contains(log, "have no effect") {
		t.Errorf("what the image sets is reported as unused:\n%s", log)
	}
}

// answerOf asks for a URL; an empty user is nobody.
func answerOf(t testing.TB, url, user, password string) (code int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	check(t, err)
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	check(t, err)
	return res.StatusCode, string(body)
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
	out := tool(t, mustBinary(t, release), "inject", "--image", "curfew:"+chartVersion(t), "-f", filepath.Join(deployFolder, "kubernetes/app.yaml"))
	_, manifest, _ := strings.Cut(out, "\napiVersion")
	if want := deployed(t, "kubernetes/sidecar.yaml"); strings.TrimSpace("apiVersion"+manifest) != strings.TrimSpace(want) {
		t.Errorf("inject makes of app.yaml\n%s\nand sidecar.yaml is\n%s", manifest, want)
	}
}

// chartVersion is the version that the files below deploy are about; deploy/release has a test that they all name the same.
func chartVersion(t testing.TB) string {
	t.Helper()
	var chart struct {
		AppVersion string `yaml:"appVersion"`
	}
	check(t, yaml.Unmarshal([]byte(deployed(t, "helm/curfew/Chart.yaml")), &chart))
	return chart.AppVersion
}
