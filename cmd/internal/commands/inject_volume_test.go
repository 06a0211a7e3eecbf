package commands

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made is a workload with fields of its spec and of its pod's, each a line of YAML or empty.
func made(kind, spec, podSpec string) string {
	template := "  template:\n    metadata:\n      labels: {app: a}\n    spec:\n      containers: [{name: a}]\n" + indented(6, podSpec)
	if kind == "CronJob" {
		template = "  jobTemplate:\n    spec:\n" + regexp.MustCompile("(?m)^ ").ReplaceAllString(template, "     ")
	}
	return "kind: " + kind + "\nmetadata:\n  name: w\nspec:\n" + indented(2, spec) + template
}

func indented(by int, line string) string {
	if line == "" {
		return ""
	}
	return strings.Repeat(" ", by) + line + "\n"
}

// noted is a manifest with the sidecar, and the notes about it.
func noted(t *testing.T, claim, manifest string) (out, notes string) {
	t.Helper()
	i, b := injector(), bytes.Buffer{}
	i.Claim = claim
	_, err := i.Manifests(strings.NewReader(manifest), &b)
	require.NoError(t, err, manifest)
	notes = strings.Join(i.Notes, "\n")
	i, again := injector(), bytes.Buffer{}
	i.Claim = claim
	_, err = i.Manifests(strings.NewReader(b.String()), &again)
	require.NoError(t, err)
	assert.Equal(t, b.String(), again.String(), "injecting again changes nothing")
	return b.String(), notes
}

func TestWhatMessagesAreKeptOn(t *testing.T) {
	const (
		gone     = "w: its messages are on an emptyDir, which outlives the container but not the pod: deleting the pod loses them"
		template = "StatefulSet w: it now has a claim template curfew-data of 1Gi. Kubernetes does not add one"
		others   = "w: Curfew can write to its claim if the pod has a securityContext with an fsGroup"
		recreate = "strategy: {type: Recreate}"
	)
	for _, c := range []struct {
		kind, spec, podSpec, claim string
		want, note                 string
	}{
		{"Deployment", "replicas: 3", "", "", "emptyDir: {} # gone with the pod", "Deployment " + gone},
		{"DaemonSet", "", "", "", "emptyDir: {} # gone with the pod", "DaemonSet " + gone},
		{"Job", "", "", "", "emptyDir: {} # gone with the pod", "Job " + gone},
		{"Deployment", "", "volumes: [{name: curfew-data, persistentVolumeClaim: {claimName: mine}}]", "", "claimName: mine", ""},
		{"Deployment", recreate, "", "c", "claimName: c\n", ""},
		{"Deployment", recreate, "", "c", "fsGroup: 65532\n", ""},
		{"Deployment", recreate, "securityContext: {fsGroup: 1000}", "c", "securityContext: {fsGroup: 1000}\n", ""},
		{"Deployment", recreate, "volumes: [{name: db, persistentVolumeClaim: {claimName: db}}]", "c", "claimName: c", "Deployment " + others},
		{"Deployment", recreate, "volumes: [{name: curfew-data, emptyDir: {}}]", "c", "claimName: c", ""},
		{"CronJob", "concurrencyPolicy: Forbid", "", "c", "claimName: c", ""},
		{"Job", "completions: 5", "", "c", "claimName: c", ""},
		{"StatefulSet", "replicas: 3", "", "", "storage: 1Gi", template},
		{"StatefulSet", "replicas: 3", "", "c", "storage: 1Gi", template}, // --claim is for those that have none
		{"StatefulSet", "", "volumes: [{name: curfew-data, emptyDir: {}}]", "", "volumes: []", template},
		{"StatefulSet", "volumeClaimTemplates: [{metadata: {name: curfew-data}, spec: {storageClassName: fast}}]", "", "", "fast", ""},
		{"StatefulSet", "volumeClaimTemplates: [{metadata: {name: db}}]", "", "", "storage: 1Gi", others},
	} {
		out, notes := noted(t, c.claim, made(c.kind, c.spec, c.podSpec))
		assert.Contains(t, out, c.want, "%+v", c)
		assert.Contains(t, notes, c.note, "%+v", c)
		if c.note == "" {
			assert.Empty(t, notes, "%+v", c)
		}
	}
	annotated := func(kind, annotation, volumes string) string {
		return fmt.Sprintf("kind: %s\nmetadata: {name: w, annotations: {%s}}\nspec: {template: {spec: {containers: [{name: a}], volumes: [%s]}}}\n", kind, annotation, volumes)
	}
	out, notes := noted(t, "", annotated("StatefulSet", "curfew.dev/claim: mine", ""))
	assert.Contains(t, out, "claimName: mine")
	assert.NotContains(t, out, "volumeClaimTemplates")
	assert.Empty(t, notes)
	_, notes = noted(t, "c", annotated("Deployment", "curfew.dev/volume: v", "{name: v, emptyDir: {medium: Memory}}"))
	assert.Contains(t, notes, gone, "an emptyDir by another name")
	out, notes = noted(t, "c", annotated("Deployment", "curfew.dev/volume: v", "{name: v, hostPath: {path: /v}}"))
	assert.NotContains(t, out, dataVolume)
	assert.Empty(t, notes)
}

func TestClaimsThatPodsWouldShareAreRefused(t *testing.T) {
	const recreate = "strategy: {type: Recreate}"
	one := made("Deployment", recreate, "")
	for _, c := range []struct{ manifest, want string }{
		{made("Deployment", "replicas: 2", ""), `Deployment w: claim "c": with replicas: 2 its pods would share a data directory`},
		{made("Deployment", "", ""), "give it strategy: {type: Recreate}"},
		{made("ReplicaSet", "replicas: 2", ""), "with replicas: 2"},
		{made("DaemonSet", "", ""), "one on each node"},
		{made("Job", "parallelism: 2", ""), "with parallelism: 2"},
		{made("CronJob", "", ""), "give it concurrencyPolicy: Forbid"},
		{one + "---\n" + strings.Replace(one, "name: w", "name: other", 1), `document 2: Deployment other: claim "c": Deployment w already uses it`},
		{strings.Replace(made("StatefulSet", "replicas: 2", ""), "  name: w\n", "  name: w\n  annotations: {curfew.dev/claim: c}\n", 1), "with replicas: 2"},
		{strings.Replace(one, "  name: w\n", "  name: w\n  annotations: {curfew.dev/claim: c, curfew.dev/volume: v}\n", 1), "it names both a volume and a claim"},
	} {
		i, b := injector(), bytes.Buffer{}
		i.Claim = "c"
		_, err := i.Manifests(strings.NewReader(c.manifest), &b)
		assert.ErrorContains(t, err, c.want, c.manifest)
		assert.Empty(t, b.String())
	}
	elsewhere := strings.Replace(one, "  name: w\n", "  name: w\n  namespace: other\n", 1)
	noted(t, "c", one+"---\n"+elsewhere) // claims of two namespaces
}
