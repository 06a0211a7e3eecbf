package commands

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

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
