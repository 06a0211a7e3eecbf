package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// composed reads a file as docker compose does: variables filled in, held to the schema, services that are named exist.
func composed(t *testing.T, name string, environment types.Mapping) *types.Project {
	t.Helper()
	file, err := filepath.Abs(deployFolder + "/" + name)
	check(t, err)
	return load(t, file, environment)
}

func load(t *testing.T, file string, environment types.Mapping) *types.Project {
	t.Helper()
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  filepath.Dir(file),
		ConfigFiles: []types.ConfigFile{{Filename: file}},
		Environment: environment,
	}, func(o *loader.Options) { o.SetProjectName("deploy", true) })
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return project
}

// TestCompose: docker compose takes the files, what they mount exists, images have a version, and no two services share a port here.
func TestCompose(t *testing.T) {
	for name, environment := range map[string]types.Mapping{
		"compose.yaml": {"CURFEW_PASSWORD": "secret"}, "compose.rabbitmq.yaml": {"RABBITMQ_PASSWORD": "secret"},
	} {
		ports := map[string]string{}
		for _, service := range composed(t, name, environment).Services {
			if !regexp.MustCompile(`:v?\d`).MatchString(service.Image) {
				t.Errorf("%s: %s: image %s has no version", name, service.Name, service.Image)
			}
			for _, volume := range service.Volumes {
				if _, err := os.Stat(volume.Source); volume.Type == types.VolumeTypeBind && err != nil {
					t.Errorf("%s: %s: %v", name, service.Name, err)
				}
			}
			for _, port := range service.Ports {
				if other, taken := ports[port.Published]; taken || port.HostIP != "127.0.0.1" {
					t.Errorf("%s: port %s of %s on %q is that of %q", name, port.Published, service.Name, port.HostIP, other)
				}
				ports[port.Published] = service.Name
			}
		}
	}
}

// TestComposeWithRabbitMQ: the nodes of the cluster are the services, and both Curfews are told of all of them, of one Redis, and of
// different names.
func TestComposeWithRabbitMQ(t *testing.T) {
	project := composed(t, "compose.rabbitmq.yaml", types.Mapping{"RABBITMQ_PASSWORD": "secret"})
	conf := read(t, deployFolder+"/rabbitmq/rabbitmq.conf")
	var nodes []string
	for _, match := range regexp.MustCompile(`= rabbit@(\S+)`).FindAllStringSubmatch(conf, -1) {
		nodes = append(nodes, match[1])
		if service, err := project.GetService(match[1]); err != nil || service.Hostname != match[1] {
			t.Errorf("node %s is host %q: %v", match[1], service.Hostname, err)
		}
	}
	names := map[string]bool{}
	for _, service := range project.Services {
		if !strings.HasPrefix(service.Image, "curfew:") {
			continue
		}
		value := func(name string) string {
			if v := service.Environment[name]; v != nil {
				return *v
			}
			return ""
		}
		names[value("CURFEW_INSTANCE")] = true
		if want := "amqp://app:secret@" + strings.Join(nodes, ",") + "/"; len(nodes) != 3 || value("CURFEW_PRIMARY_URL") != want {
			t.Errorf("%s is told of %q, not %q", service.Name, value("CURFEW_PRIMARY_URL"), want)
		}
		if value("CURFEW_REDIS_URL") == "" || value("CURFEW_WATCH") != "keep:retry,observe:*" {
			t.Errorf("the settings of %s are %v", service.Name, service.Environment)
		}
	}
	if len(names) != 2 {
		t.Errorf("the Curfews are called %v", names)
	}
}
