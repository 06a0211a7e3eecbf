package kubernetes

import (
	"maps"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint/rules"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// render is helm template with values (YAML), which the schema has judged.
func render(t testing.TB, values string) (string, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	check(t, err)
	given, err := chartutil.ReadValues([]byte(values))
	check(t, err)
	release := chartutil.ReleaseOptions{Name: "shop", Namespace: "queues", IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			text.WriteString("---\n" + files[name] + "\n")
		}
	}
	return text.String(), err
}

func rendered(t *testing.T, values string) []any {
	t.Helper()
	text, err := render(t, values)
	check(t, err)
	return decode(t, "the chart", text)
}

func environmentOf(c *core.Container) map[string]string {
	env := make(map[string]string)
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	return env
}

func TestChartWithEverything(t *testing.T) {
	objects := rendered(t, read(t, chartFolder+"/ci/all.yaml"))
	env := environmentOf(whole(t, objects))
	for name, want := range map[string]string{
		"CURFEW_MAX_CONNECTIONS": "1000000", "CURFEW_AUDIT": "false", "CURFEW_LOG_LEVEL": "debug", "CURFEW_AMQPS_ADDR": ":5671", "CURFEW_INSTANCE": "one",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "CURFEW_ALERTS": "/etc/curfew/files/alerts.yaml",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if secret := one[*core.Secret](t, objects); secret.StringData["CURFEW_PASSWORD"] != "it's 5: #secret" {
		t.Errorf("the password became %q", secret.StringData)
	}
	one[*monitoring.PodMonitor](t, objects)
	one[*monitoring.ServiceMonitor](t, objects)
	shipsTheRules(t, one[*monitoring.PrometheusRule](t, objects))
}

func TestChartForRabbitMQ(t *testing.T) {
	objects := rendered(t, read(t, chartFolder+"/ci/rabbitmq.yaml"))
	c := replicas(t, objects)
	if env := environmentOf(c); env["CURFEW_WATCH"] != "/etc/curfew/files/watch.yaml" || env["CURFEW_HTTPS_ADDR"] != ":15671" || env["CURFEW_AMQPS_ADDR"] != "" {
		t.Errorf("the environment is %v", env)
	}
	if len(c.EnvFrom) != 1 || c.EnvFrom[0].SecretRef.Name != "shop-curfew" {
		t.Errorf("variables come from %v", c.EnvFrom)
	}
	secret := one[*core.Secret](t, objects).StringData
	if secret["CURFEW_PRIMARY_URL"] != "amqps://curfew:p%40ss@rabbitmq-0.nodes,rabbitmq-1.nodes,rabbitmq-2.nodes/shop" || secret["CURFEW_PRIMARY_API_URL"] == "" || secret["CURFEW_REDIS_URL"] == "" {
		t.Errorf("the secrets became %q", secret)
	}
	for _, o := range objects {
		if files, ok := o.(*core.ConfigMap); ok && files.Name == "shop-curfew" && !strings.Contains(files.Data["watch.yaml"], "  - queue: retry\n    mode: keep\n") {
			t.Errorf("the rules became %q", files.Data)
		}
	}
}

// TestChartForRabbitMQWithLittle: one replica needs no Redis, and a Secret may have everything.
func TestChartForRabbitMQWithLittle(t *testing.T) {
	for values, want := range map[string]string{
		`{primary: {url: "amqp://u:p@rabbitmq", replicas: 1, watch: "keep:retry-*,observe:*"}, secrets: {CURFEW_PASSWORD: p}}`: "keep:retry-*,observe:*",
		"primary: {existingSecret: s, replicas: 3}": "",
	} {
		d := one[*apps.Deployment](t, rendered(t, values))
		c := &d.Spec.Template.Spec.Containers[0]
		if got := environmentOf(c)["CURFEW_WATCH"]; got != want || len(c.EnvFrom) != 1 || len(d.Spec.Template.Spec.Volumes) > 0 {
			t.Errorf("%s: watched is %q, secrets %v, volumes %v", values, got, c.EnvFrom, d.Spec.Template.Spec.Volumes)
		}
		hardened(t, c, d.Spec.Template.Spec.SecurityContext)
	}
}

// shipsTheRules: the same as the file of rules, but for where runbooks are.
func shipsTheRules(t *testing.T, rule *monitoring.PrometheusRule) {
	t.Helper()
	var file monitoring.PrometheusRuleSpec
	check(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(read(t, deployFolder+"/prometheus/curfew.rules.yml"), "deploy/runbooks/", "https://wiki.example/runbooks/")), &file))
	want, err := yaml.Marshal(file)
	check(t, err)
	got, err := yaml.Marshal(rule.Spec)
	check(t, err)
	if string(got) != string(want) {
		t.Errorf("the chart's rules are not deploy/prometheus/curfew.rules.yml:\n%s", got)
	}
}

func TestChartWithLittle(t *testing.T) {
	objects := rendered(t, "existingSecret: curfew\npersistence: {enabled: false}")
	if len(objects) != 2 {
		t.Errorf("%d objects, want a StatefulSet and a Service", len(objects))
	}
	set := one[*apps.StatefulSet](t, objects)
	if set.Name != "shop-curfew" || set.Namespace != "queues" || len(set.Spec.VolumeClaimTemplates) > 0 || set.Spec.Template.Spec.Volumes[0].EmptyDir == nil {
		t.Errorf("%s in %s with %v", set.Name, set.Namespace, set.Spec.Template.Spec.Volumes)
	}
	hardened(t, &set.Spec.Template.Spec.Containers[0], set.Spec.Template.Spec.SecurityContext)
}

func TestChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"":                                   "set secrets.CURFEW_PASSWORD",
		"existingSecret: s\nreplicas: 3":     "replicas",
		"config: {LOG_LEVEL: debug}":         "LOG_LEVEL",
		"config: {CURFEW_DATA_DIR: /tmp}":    "CURFEW_DATA_DIR",
		"config: {CURFEW_USER: [a]}":         "CURFEW_USER",
		"image: {tag: latest}":               "tag",
		"image: {pullPolicy: Sometimes}":     "pullPolicy",
		"persistence: {size: much}":          "size",
		"terminationGracePeriodSeconds: 5":   "terminationGracePeriodSeconds",
		"networkPolicy: {egressPorts: [0]}":  "egressPorts",
		"serviceMonitor: {interval: often}":  "interval",
		"persistence: {accessModes: [Many]}": "accessModes",
		"secrets: {CURFEW_PASSWORD: 5}":      "CURFEW_PASSWORD",

		"primary: {url: amqp://rabbitmq}":                              "replicas share the queues through Redis",
		"primary: {url: amqp://rabbitmq, replicas: 1}":                 "set secrets.CURFEW_PASSWORD",
		"primary: {url: http://rabbitmq}":                              "url",
		"primary: {existingSecret: s, replicas: 0}":                    "replicas",
		"primary: {existingSecret: s, watch: hold:q}":                  "watch",
		"primary: {existingSecret: s, watch: q, watchFile: q}":         "watchFile",
		"primary: {existingSecret: s, url: amqp://rabbitmq}":           "existingSecret",
		"primary: {existingSecret: s}\ndefinitions: '{}'":              "definitions",
		"primary: {watch: observe:*}\nexistingSecret: s":               "set primary.url",
		"config: {CURFEW_PRIMARY_URL: amqp://rabbitmq}":                "CURFEW_PRIMARY_URL",
		"primary: {existingSecret: s, watch: 'keep:a'}\nreplicas: yes": "replicas",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", values, err)
		}
	}
}

// TestChartLints: helm lint.
func TestChartLints(t *testing.T) {
	for _, file := range []string{"all", "rabbitmq"} {
		lint(t, chartFolder+"/ci/"+file+".yaml")
	}
}

func lint(t *testing.T, file string) {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(read(t, file)))
	check(t, err)
	linter := support.Linter{ChartDir: chartFolder}
	rules.Chartfile(&linter)
	rules.ValuesWithOverrides(&linter, values)
	rules.TemplatesWithSkipSchemaValidation(&linter, values, "queues", nil, false)
	rules.Dependencies(&linter)
	for _, message := range linter.Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}
