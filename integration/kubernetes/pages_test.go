package kubernetes

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")

var installs = regexp.MustCompile(`(?m)^ *helm (?:install|upgrade) (?:[^\\\n]|\\.|\\\n)*`)

// TestPages: manifests, compose files and values of the chart on the pages are what Kubernetes, docker compose and the chart take, and so is
// what the pages give helm install. The other YAML is looked at by integration/pages.
func TestPages(t *testing.T) {
	known := map[string]any{}
	check(t, yaml.Unmarshal([]byte(read(t, chartFolder+"/values.yaml")), &known))
	count := map[string]int{}
	look := func(path, text string) {
		for i, match := range yamlBlock.FindAllStringSubmatch(text, -1) {
			block := regexp.MustCompile(`(?m)^`+match[1]).ReplaceAllString(match[2], "")
			t.Run(fmt.Sprintf("%s block %d", path, i+1), func(t *testing.T) {
				kind := kindOf(block, known)
				count[kind]++
				switch kind {
				case "manifest":
					decode(t, path, block)
				case "compose":
					composes(t, block)
				case "values":
					if !strings.Contains(block, "ecret") { // existingSecret, secrets
						block += "\nexistingSecret: s\n"
					}
					rendered(t, block)
				}
			})
		}
		for _, command := range installs.FindAllString(text, -1) {
			t.Run(path+" helm", func(t *testing.T) {
				count["helm install"]++
				takesValues(t, command)
			})
		}
	}
	for _, folder := range []string{"../../docs", deployFolder} {
		check(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".md" {
				look(path, read(t, path))
			}
			return err
		}))
	}
	look("README.md", read(t, "../../README.md"))
	t.Logf("%v", count)
}

// kindOf tells by its keys what a block of YAML is; "" is something else.
func kindOf(block string, values map[string]any) string {
	var fields map[string]any
	if yaml.Unmarshal([]byte(regexp.MustCompile(`(?m)^---.*$`).Split(block, 2)[0]), &fields) != nil || len(fields) == 0 {
		return ""
	}
	if fields["apiVersion"] != nil {
		return "manifest"
	}
	if fields["services"] != nil {
		return "compose"
	}
	for name := range fields {
		if _, is := values[name]; !is {
			return ""
		}
	}
	return "values"
}

// composes has docker compose's own library read a file.
func composes(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "compose.yaml")
	check(t, os.WriteFile(file, []byte(text), 0o600))
	load(t, file, map[string]string{"CURFEW_PASSWORD": "secret", "RABBITMQ_PASSWORD": "secret"})
}

// takesValues has the chart take what a command sets.
func takesValues(t *testing.T, command string) {
	t.Helper()
	values := map[string]any{}
	for _, match := range regexp.MustCompile(`--set[ =](\S+)`).FindAllStringSubmatch(command, -1) {
		check(t, strvals.ParseInto(strings.ReplaceAll(match[1], "'", ""), values))
	}
	text, err := yaml.Marshal(values)
	check(t, err)
	rendered(t, string(text))
}
