package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"curfew/cmd/curfew/inject"
)

func injectCommand() *cobra.Command {
	var files []string
	i := &inject.Injector{Image: "curfew:" + versionText(), Known: knownVariable}
	cmd := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Add Curfew as a sidecar to manifests of Kubernetes, printed with it",
		Long: `Prints manifests with Curfew as a native sidecar in every Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job and CronJob.
The application then finds it on amqp://guest:guest@127.0.0.1:5672/. What else is there, comments too, is kept; injecting again
replaces the sidecar. Annotations of the pod with the prefix curfew.dev/ change it: inject ("false"), image, env (a YAML mapping),
env-from-secret, volume, claim, cpu-request, cpu-limit, memory-request, memory-limit.

Messages are on a claim for each pod of a StatefulSet (a claim template is added), on the claim that --claim or curfew.dev/claim names,
which can be of one workload with one pod, or on the volume of the pod that curfew.dev/volume names. Else they are on an emptyDir, which
is gone with the pod: that is said on the standard error.

  curfew inject -f deploy.yaml | kubectl apply -f -
  curfew inject -f deploy.yaml --claim shop-messages | kubectl apply -f -`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return usageError{fmt.Errorf("inject: -f names the manifest; - is the standard input")}
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
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "manifest, - for the standard input; may be given again")
	cmd.Flags().StringVar(&i.Image, "image", i.Image, "image of the sidecar")
	cmd.Flags().StringVar(&i.Claim, "claim", "", "PersistentVolumeClaim that keeps the messages, where the workload has no volume for them")
	return cmd
}

func injectFile(cmd *cobra.Command, file string, i *inject.Injector) error {
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
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: nothing in it makes pods that want a sidecar\n", file)
	}
	return nil
}

// knownVariable tells whether Curfew reads a variable.
func knownVariable(name string) bool {
	return strings.HasPrefix(name, otelPrefix) || slices.ContainsFunc(settingsOf(new(config)), func(s setting) bool {
		return s.name == name || s.secret && s.fileName() == name
	})
}
