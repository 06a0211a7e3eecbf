package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"curfew/cmd/curfew/inject"
)

func injectCommand() *cobra.Command {
	var files []string
	image := "curfew:" + versionText()
	cmd := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Add Curfew as a sidecar to manifests of Kubernetes, printed with it",
		Long: `Prints manifests with Curfew as a native sidecar in every Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job and CronJob.
The application then finds it on amqp://guest:guest@127.0.0.1:5672/. What else is there, comments too, is kept; injecting again
replaces the sidecar. Annotations of the pod with the prefix curfew.dev/ change it: inject ("false"), image, env (a YAML mapping),
env-from-secret, volume, cpu-request, cpu-limit, memory-request, memory-limit.

  curfew inject -f deploy.yaml | kubectl apply -f -`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return usageError{fmt.Errorf("inject: -f names the manifest; - is the standard input")}
			}
			o := inject.Options{Image: image, Known: knownVariable}
			for i, file := range files {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout(), "---")
				}
				if err := injectFile(cmd, file, o); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "manifest, - for the standard input; may be given again")
	cmd.Flags().StringVar(&image, "image", image, "image of the sidecar")
	return cmd
}

func injectFile(cmd *cobra.Command, file string, o inject.Options) error {
	in := io.NopCloser(cmd.InOrStdin())
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		in = opened
	}
	defer in.Close()
	changed, err := inject.Manifests(in, cmd.OutOrStdout(), o)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if changed == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: nothing in it makes pods that want a sidecar\n", file)
	}
	return nil
}

// knownVariable tells whether Curfew reads a variable.
func knownVariable(name string) bool {
	return slices.Contains(otelNames(), name) || slices.ContainsFunc(settingsOf(new(config)), func(s setting) bool {
		return s.name == name || s.secret && s.fileName() == name
	})
}
