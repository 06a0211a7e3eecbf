package kubernetes

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	deployFolder = "../../deploy"
	chartFolder  = deployFolder + "/helm/curfew"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	return string(text)
}

// typeOf makes an object of the Go type that Kubernetes or the Prometheus operator has for a kind.
var typeOf = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return new(apps.Deployment) },
	"apps/v1 StatefulSet":                     func() any { return new(apps.StatefulSet) },
	"batch/v1 CronJob":                        func() any { return new(batch.CronJob) },
	"batch/v1 Job":                            func() any { return new(batch.Job) },
	"v1 ConfigMap":                            func() any { return new(core.ConfigMap) },
	"v1 Pod":                                  func() any { return new(core.Pod) },
	"v1 Secret":                               func() any { return new(core.Secret) },
	"v1 Service":                              func() any { return new(core.Service) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policy.PodDisruptionBudget) },
	"monitoring.coreos.com/v1 PodMonitor":     func() any { return new(monitoring.PodMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return new(monitoring.PrometheusRule) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoring.ServiceMonitor) },
}

// decode reads documents strictly: a field that the type lacks, or that is there twice, fails the test.
func decode(t *testing.T, name, text string) (objects []any) {
	t.Helper()
	for _, document := range regexp.MustCompile(`(?m)^---.*$`).Split(text, -1) {
		var kind struct{ APIVersion, Kind string }
		check(t, yaml.Unmarshal([]byte(document), &kind))
		if kind.Kind == "" {
			continue
		}
		makeOne := typeOf[kind.APIVersion+" "+kind.Kind]
		if makeOne == nil {
			t.Errorf("%s: %s %s is unknown to this test", name, kind.APIVersion, kind.Kind)
			continue
		}
		object := makeOne()
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Errorf("%s: %s: %v", name, kind.Kind, err)
		}
		objects = append(objects, object)
	}
	return objects
}

// one is the only object of a type.
func one[T any](t *testing.T, objects []any) (found T) {
	t.Helper()
	n := 0
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = o
			n++
		}
	}
	if n != 1 {
		t.Fatalf("there are %d of %T", n, found)
	}
	return found
}

func TestManifests(t *testing.T) {
	files, err := filepath.Glob(deployFolder + "/kubernetes/*.yaml")
	check(t, err)
	if len(files) < 4 {
		t.Fatalf("only %v", files)
	}
	for _, file := range files {
		decode(t, file, read(t, file))
	}
}

// TestInjected: what curfew inject makes of its own test's file.
func TestInjected(t *testing.T) {
	file := "../../cmd/internal/commands/testdata/inject/app.injected.yaml"
	manifest, list, _ := strings.Cut(read(t, file), "kind: List")
	manifest = strings.ReplaceAll(manifest, "      futureField: {of: [a, later, version]}\n", "")
	manifest = manifest[:strings.LastIndex(manifest, "---")]
	objects := decode(t, file, manifest)
	if len(objects) != 7 || !strings.Contains(list, "kind: Job") {
		t.Errorf("%d objects", len(objects))
	}
	kept := map[string]string{}
	for _, o := range objects {
		switch o := o.(type) {
		case *apps.Deployment:
			kept[o.Name] = native(t, o.Spec.Template.Spec, nil)
		case *apps.StatefulSet:
			kept[o.Name] = native(t, o.Spec.Template.Spec, o.Spec.VolumeClaimTemplates)
		case *batch.CronJob:
			kept[o.Name] = native(t, o.Spec.JobTemplate.Spec.Template.Spec, nil)
		}
	}
	want := map[string]string{"shop": "gone with the pod", "nightly": "gone with the pod", "stateful": "template queue", "keeper": "template curfew-data, fsGroup", "office": "claim office-messages, fsGroup"}
	if !maps.Equal(kept, want) {
		t.Errorf("messages are kept on %v, not %v", kept, want)
	}
}

// native: Curfew is a sidecar that starts before and stops after the application, hardened, and its volume is the pod's or a claim.
// on says which.
func native(t *testing.T, pod core.PodSpec, claims []core.PersistentVolumeClaim) (on string) {
	t.Helper()
	sidecar := pod.InitContainers[0]
	if sidecar.Name != "curfew" || sidecar.RestartPolicy == nil || *sidecar.RestartPolicy != core.ContainerRestartPolicyAlways {
		t.Errorf("the first init container is %s, restarted %v", sidecar.Name, sidecar.RestartPolicy)
	}
	if sidecar.StartupProbe == nil || sidecar.LivenessProbe == nil || sidecar.ReadinessProbe == nil {
		t.Error("it lacks a probe")
	}
	if pod.TerminationGracePeriodSeconds == nil || *pod.TerminationGracePeriodSeconds < 60 {
		t.Errorf("it may take %v to stop", pod.TerminationGracePeriodSeconds)
	}
	hardened(t, &sidecar, nil)
	name := sidecar.VolumeMounts[0].Name
	for _, v := range pod.Volumes {
		if v.Name == name && v.EmptyDir != nil {
			on += "gone with the pod"
		}
		if v.Name == name && v.PersistentVolumeClaim != nil {
			on += "claim " + v.PersistentVolumeClaim.ClaimName
		}
	}
	for _, c := range claims {
		if c.Name == name && !c.Spec.Resources.Requests.Storage().IsZero() && len(c.Spec.AccessModes) == 1 {
			on += "template " + name
		}
	}
	if s := pod.SecurityContext; s != nil && s.FSGroup != nil && *s.FSGroup == *sidecar.SecurityContext.RunAsGroup && *s.FSGroupChangePolicy == core.FSGroupChangeOnRootMismatch {
		on += ", fsGroup"
	}
	return on
}

func hardened(t *testing.T, c *core.Container, pod *core.PodSecurityContext) {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("%s: %+v", c.Name, s)
	}
	user, nonRoot, profile := s.RunAsUser, s.RunAsNonRoot, s.SeccompProfile
	if pod != nil {
		user, nonRoot, profile = pod.RunAsUser, pod.RunAsNonRoot, pod.SeccompProfile
	}
	if user == nil || *user != 65532 || nonRoot == nil || !*nonRoot || profile == nil || profile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s runs as %v, non-root %v, with %v", c.Name, user, nonRoot, profile)
	}
	if c.Resources.Limits.Memory().IsZero() {
		t.Errorf("%s has no limit of memory", c.Name)
	}
}

// portsExist: what probes, services and policies name are ports of the container.
func portsExist(t *testing.T, c *core.Container, names ...string) {
	t.Helper()
	for _, name := range names {
		if !slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == name }) {
			t.Errorf("%s has no port %s", c.Name, name)
		}
	}
}

func TestStandalone(t *testing.T) {
	objects := decode(t, "standalone.yaml", read(t, deployFolder+"/kubernetes/standalone.yaml"))
	whole(t, objects)
}

// whole: the objects of one Curfew fit together.
func whole(t *testing.T, objects []any) *core.Container {
	t.Helper()
	set := one[*apps.StatefulSet](t, objects)
	return fit(t, objects, set.Spec.Selector, set.Spec.Template, set.Spec.VolumeClaimTemplates)
}

// fit: ports that are named exist, what selects pods selects these, and what is mounted is a volume.
func fit(t *testing.T, objects []any, selector *meta.LabelSelector, pod core.PodTemplateSpec, claims []core.PersistentVolumeClaim) *core.Container {
	t.Helper()
	c := &pod.Spec.Containers[0]
	hardened(t, c, pod.Spec.SecurityContext)
	for _, port := range one[*core.Service](t, objects).Spec.Ports {
		portsExist(t, c, port.TargetPort.StrVal)
	}
	for _, rule := range one[*networking.NetworkPolicy](t, objects).Spec.Ingress {
		for _, port := range rule.Ports {
			portsExist(t, c, port.Port.StrVal)
		}
	}
	for _, probe := range []*core.Probe{c.ReadinessProbe, c.LivenessProbe} {
		portsExist(t, c, probe.HTTPGet.Port.StrVal)
	}
	selectors := []map[string]string{
		selector.MatchLabels, one[*core.Service](t, objects).Spec.Selector,
		one[*networking.NetworkPolicy](t, objects).Spec.PodSelector.MatchLabels, one[*policy.PodDisruptionBudget](t, objects).Spec.Selector.MatchLabels,
	}
	for _, spread := range pod.Spec.TopologySpreadConstraints {
		selectors = append(selectors, spread.LabelSelector.MatchLabels)
	}
	for _, selector := range selectors {
		if len(selector) == 0 {
			t.Error("something selects every pod")
		}
		for key, value := range selector {
			if pod.Labels[key] != value {
				t.Errorf("%v does not select the pod %v", selector, pod.Labels)
			}
		}
	}
	var volumes []string
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, claim := range claims {
		volumes = append(volumes, claim.Name)
	}
	for _, mount := range c.VolumeMounts {
		if !slices.Contains(volumes, mount.Name) {
			t.Errorf("there is no volume %s", mount.Name)
		}
	}
	return c
}

func TestManifestForRabbitMQ(t *testing.T) {
	objects := decode(t, "beside-rabbitmq.yaml", read(t, deployFolder+"/kubernetes/beside-rabbitmq.yaml"))
	env := environmentOf(replicas(t, objects))
	if env["CURFEW_PRIMARY_API_URL"] != "http://rabbitmq:15672" || env["CURFEW_WATCH"] == "" {
		t.Errorf("the environment is %v", env)
	}
}

// replicas: two replicas that fit together with the rest, keep nothing on disk, reach RabbitMQ and Redis, and of which one may go at
// a time.
func replicas(t *testing.T, objects []any) *core.Container {
	t.Helper()
	d := one[*apps.Deployment](t, objects)
	c := fit(t, objects, d.Spec.Selector, d.Spec.Template, nil)
	if *d.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *d.Spec.Replicas)
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil && v.Secret == nil {
			t.Errorf("volume %s is for data", v.Name)
		}
	}
	env := environmentOf(c)
	if dir, set := env["CURFEW_DATA_DIR"]; dir != "" || !set {
		t.Errorf("the folder of data is %q", dir)
	}
	if user := env["CURFEW_USER"]; user != "app" { // guest may log in from inside the pod only
		t.Errorf("the user is %q", user)
	}
	if s := one[*core.Service](t, objects); s.Spec.SessionAffinity != core.ServiceAffinityClientIP {
		t.Errorf("the service sends a browser to either replica: %q", s.Spec.SessionAffinity)
	}
	if _, broker := env["CURFEW_AMQP_ADDR"]; broker || slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == "amqp" || p.Name == "amqps" }) {
		t.Errorf("it has a broker of its own: %v, %v", env, c.Ports)
	}
	if budget := one[*policy.PodDisruptionBudget](t, objects).Spec; budget.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%v may be away", budget.MaxUnavailable)
	}
	reached := map[int]bool{}
	for _, rule := range one[*networking.NetworkPolicy](t, objects).Spec.Egress {
		for _, port := range rule.Ports {
			reached[port.Port.IntValue()] = true
		}
	}
	for _, port := range []int{53, 5671, 5672, 6379, 15672} {
		if !reached[port] {
			t.Errorf("port %d cannot be reached", port)
		}
	}
	return c
}
