package commands

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/settings"
)

func injectCommand(version string) *cobra.Command {
	var files []string
	i := &Injector{Image: "curfew:" + strings.TrimPrefix(version, "v"), Known: settings.Known}
	cmd := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Add Curfew as a sidecar to Kubernetes manifests and print them",
		Long: `Prints manifests with Curfew as a native sidecar in every Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job and CronJob.
The application then finds it on amqp://guest:guest@127.0.0.1:5672/. Everything else, comments too, is kept; injecting again
replaces the sidecar. Annotations of the pod with the prefix curfew.dev/ change it: inject ("false"), image, env (a YAML mapping),
env-from-secret, volume, claim, cpu-request, cpu-limit, memory-request, memory-limit.

Messages are on a claim for each pod of a StatefulSet (a claim template is added), or on the pod's volume that curfew.dev/volume names.
One workload with one pod can use the claim that --claim or curfew.dev/claim names. Otherwise they are on an emptyDir,
which is deleted with the pod, and a warning is printed to standard error.

  curfew inject -f deploy.yaml | kubectl apply -f -
  curfew inject -f deploy.yaml --claim shop-messages | kubectl apply -f -`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return cli.Usagef("inject: name the manifest with -f; - is standard input")
			}
			for n, file := range files {
				if n > 0 {
					fmt.Fprintln(cmd.OutOrStdout(), "---")
				}
				if err := injectFile(cmd, file, i); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "manifest, - for standard input; may be repeated")
	cmd.Flags().StringVar(&i.Image, "image", i.Image, "image of the sidecar")
	cmd.Flags().StringVar(&i.Claim, "claim", "", "PersistentVolumeClaim that keeps the messages, where the workload has no volume for them")
	return cmd
}

func injectFile(cmd *cobra.Command, file string, i *Injector) error {
	in := io.NopCloser(cmd.InOrStdin())
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		in = opened
	}
	defer in.Close()
	i.Notes = nil
	changed, err := i.Manifests(in, cmd.OutOrStdout())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, note := range i.Notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", file, note)
	}
	if changed == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: nothing in it makes pods that can have a sidecar\n", file)
	}
	return nil
}

const (
	container = "curfew"
	// stopSeconds is the termination grace period of a pod that sets none: for the
	// application, and 10 s for Curfew.
	stopSeconds = "60"
)

//go:embed inject_sidecar.yaml
var sidecarText []byte

// inject adds the sidecar to the pods of a workload, replacing an existing one.
func (i *Injector) inject(l *workload, w *podSettings) error {
	spec := l.podSpec
	if textAt(spec, "hostNetwork") == "true" {
		return errors.New("it uses the host's network, where Curfew's ports would be the host's")
	}
	if named(lookup(spec, "containers"), container) >= 0 {
		return fmt.Errorf("it already has a container %q that is not a sidecar", container)
	}
	if err := i.addVolume(l, w); err != nil {
		return err
	}
	putNamed(child(spec, "initContainers", yaml.SequenceNode), container, w.sidecar(), true)
	if lookup(spec, "terminationGracePeriodSeconds") == nil {
		spec.Content = append(spec.Content, text("terminationGracePeriodSeconds"), &yaml.Node{Kind: yaml.ScalarNode, Value: stopSeconds})
	}
	set(child(child(l.pod, "metadata", yaml.MappingNode), "labels", yaml.MappingNode), prefix+"injected", "true")
	return nil
}

// putNamed replaces the element of a sequence with that name, or adds it as the first or
// last one.
func putNamed(list *yaml.Node, name string, element *yaml.Node, first bool) {
	switch i := named(list, name); {
	case i >= 0:
		list.Content[i] = element
	case first:
		list.Content = append([]*yaml.Node{element}, list.Content...)
	default:
		list.Content = append(list.Content, element)
	}
}

// parsed parses a mapping that belongs to this package.
func parsed(own []byte) *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal(own, &document); err != nil {
		panic(fmt.Sprintf("inject: own YAML: %v", err))
	}
	return document.Content[0]
}

// sidecar returns the container with the settings of the annotations.
func (w *podSettings) sidecar() *yaml.Node {
	n := parsed(sidecarText)
	n.HeadComment = ""
	n.Content[0].HeadComment = ""
	n.Content = append(n.Content[:2:2], append([]*yaml.Node{text("image"), text(w.image)}, n.Content[2:]...)...)
	env := child(n, "env", yaml.SequenceNode)
	for _, v := range w.env {
		putNamed(env, v.name, mapping("name", v.name, "value", v.value), false)
	}
	if w.secret != "" {
		from := &yaml.Node{Kind: yaml.MappingNode}
		from.Content = []*yaml.Node{text("secretRef"), mapping("name", w.secret)}
		child(n, "envFrom", yaml.SequenceNode).Content = []*yaml.Node{from}
	}
	for path, quantity := range w.resources {
		set(child(child(n, "resources", yaml.MappingNode), path[0], yaml.MappingNode), path[1], quantity)
	}
	if w.volume != "" {
		set(lookup(n, "volumeMounts").Content[0], "name", w.volume)
	}
	return n
}
