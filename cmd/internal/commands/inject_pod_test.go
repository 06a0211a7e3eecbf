package commands

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func injector() *Injector {
	return &Injector{Image: "curfew:1", Known: func(name string) bool { return strings.HasPrefix(name, "CURFEW_") }}
}

func injected(t *testing.T, manifest string) string {
	t.Helper()
	var out bytes.Buffer
	_, err := injector().Manifests(strings.NewReader(manifest), &out)
	require.NoError(t, err)
	return out.String()
}

// TestManifests: a file with every kind of document. To see a change: curfew inject --image curfew:1 -f testdata/inject/app.yaml.
func TestManifests(t *testing.T) {
	app, err := os.ReadFile("testdata/inject/app.yaml")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/inject/app.injected.yaml")
	require.NoError(t, err)
	got := injected(t, string(app))
	assert.Equal(t, string(want), got)
	assert.Equal(t, got, injected(t, got), "injecting again changes nothing")
}

func TestInjectingAgainReplacesTheSidecar(t *testing.T) {
	pod := "kind: Pod\nmetadata:\n  name: app\nspec:\n  containers:\n    - name: app\n"
	first := injected(t, pod)
	again := injected(t, strings.Replace(strings.ReplaceAll(first, "memory: 256Mi", "memory: 1Mi"), "  name: app\n", "  name: app\n  annotations:\n    curfew.dev/image: other\n", 1))
	assert.Equal(t, 1, strings.Count(again, "name: curfew\n"))
	assert.Contains(t, again, "image: other\n")
	assert.Contains(t, again, "memory: 256Mi")
	assert.Equal(t, strings.Count(first, "curfew-data"), strings.Count(again, "curfew-data"))
}

func TestWhatIsRefused(t *testing.T) {
	pod := func(annotation, spec string) string {
		return "kind: Pod\nmetadata:\n  name: app\n  annotations:\n    " + annotation + "\nspec:\n  containers: [{name: app}]\n" + spec
	}
	for _, test := range []struct{ manifest, want string }{
		{pod("curfew.dev/imgae: x", ""), `document 1: Pod app: annotation curfew.dev/imgae: no such annotation; the annotations are inject, image`},
		{pod("curfew.dev/inject: maybe", ""), `"maybe" must be true or false`},
		{pod("curfew.dev/env: 'TZ: UTC'", ""), "there is no variable TZ"},
		{pod("curfew.dev/env: CURFEW_USER=x", ""), `"CURFEW_USER=x" is not a YAML mapping`},
		{pod("curfew.dev/env: 'CURFEW_USER: [x]'", ""), "the value of CURFEW_USER is not text"},
		{pod("curfew.dev/volume: queue", ""), `it has no volume "queue"`},
		{pod("a: b", "  hostNetwork: true\n"), "it uses the host's network"},
		{"kind: Pod\nspec:\n  containers: [{name: curfew}]\n", `it already has a container "curfew"`},
		{"kind: Deployment\nmetadata: {name: d}\n", "Deployment d has no pod spec"},
		{"kind: Pod\nspec: &a {containers: *a}\n", "anchor 'a' value contains itself"},
		{"kind: Pod\nkind: Job\n", "already defined"},
		{"a: b\n---\n{", "document 2: yaml"},
	} {
		var out bytes.Buffer
		_, err := injector().Manifests(strings.NewReader(test.manifest), &out)
		assert.ErrorContains(t, err, test.want)
		assert.Empty(t, out.String())
	}
}

func TestWhatMakesNoPodsIsPassedOnByteByByte(t *testing.T) {
	for _, manifest := range []string{
		"", "---\n", "# only a comment\n", "a:   1\n---\n\n--- # two\nb: {  c: d}", "kind: Service\r\n---\r\nkind:    ConfigMap\r\n",
		"kind: Pod\nmetadata: {annotations: {curfew.dev/inject: 'false'}}\nspec:   {containers: []}\n", "just text\n", "- a\n-   b\n",
	} {
		assert.Equal(t, manifest, injected(t, manifest))
	}
}

func TestAnnotationsOfThePodCountMore(t *testing.T) {
	got := injected(t, `kind: Job
metadata: {name: j, annotations: {curfew.dev/image: outer, curfew.dev/inject: "false"}}
spec: {template: {metadata: {annotations: {curfew.dev/image: inner, curfew.dev/inject: "true"}}, spec: {containers: [{name: app}]}}}
`)
	assert.Contains(t, got, "image: inner")
}

func FuzzManifests(f *testing.F) {
	app, err := os.ReadFile("testdata/inject/app.yaml")
	require.NoError(f, err)
	f.Add(string(app))
	f.Add("kind: Pod\nspec: &a {containers: *a}\n")
	f.Fuzz(func(t *testing.T, manifest string) {
		var once bytes.Buffer
		if _, err := injector().Manifests(strings.NewReader(manifest), &once); err != nil {
			return
		}
		var again bytes.Buffer
		_, err := injector().Manifests(strings.NewReader(once.String()), &again)
		require.NoError(t, err)
		assert.Equal(t, once.String(), again.String())
	})
}
