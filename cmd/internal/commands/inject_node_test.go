package commands

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestMergedMappingsAreKept: what << merges into a pod is read, and stays beside what is added. The mapping that it merges does not change.
func TestMergedMappingsAreKept(t *testing.T) {
	const common = `x-common: &common
  volumes: [{name: cache, emptyDir: {}}]
  initContainers: [{name: migrate}]
  terminationGracePeriodSeconds: 90
`
	var d struct {
		Common struct{ Volumes []any } `yaml:"x-common"`
		Spec   struct {
			Volumes        []struct{ Name string }
			InitContainers []struct{ Name string } `yaml:"initContainers"`
			Grace          int                     `yaml:"terminationGracePeriodSeconds"`
		}
		Metadata struct{ Labels map[string]string }
	}
	text := injected(t, "kind: Pod\n"+common+"metadata: {labels: {<<: {app: shop}, tier: web}}\nspec:\n  <<: [*common]\n  containers: [{name: app}]\n")
	require.NoError(t, yaml.Unmarshal([]byte(text), &d))
	require.Len(t, d.Spec.Volumes, 2, text)
	require.Len(t, d.Spec.InitContainers, 2, text)
	assert.Equal(t, "cache", d.Spec.Volumes[0].Name)
	assert.Equal(t, "migrate", d.Spec.InitContainers[1].Name)
	assert.Equal(t, 90, d.Spec.Grace)
	assert.Len(t, d.Common.Volumes, 1)
	assert.Equal(t, map[string]string{"app": "shop", "tier": "web", "curfew.dev/injected": "true"}, d.Metadata.Labels)
	assert.Equal(t, text, injected(t, text), "injecting again changes nothing")

	for what, manifest := range map[string]string{
		"host's network":     "kind: Pod\nspec: {<<: {hostNetwork: true}, containers: [{name: app}]}\n",
		`container "curfew"`: "kind: Pod\nspec: {<<: {containers: [{name: curfew}]}}\n",
	} {
		_, err := injector().Manifests(strings.NewReader(manifest), io.Discard)
		assert.ErrorContains(t, err, what)
	}
	wins := "kind: Pod\nmetadata: {annotations: {curfew.dev/image: own, <<: {curfew.dev/image: merged}}}\nspec: {containers: [{name: app}]}\n"
	assert.Contains(t, injected(t, wins), "image: own,")
}
