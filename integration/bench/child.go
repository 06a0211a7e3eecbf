package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"curfew/integration/bench/load"
)

// runChild makes this program a load process: bench KIND SPEC prints the result as JSON.
func runChild(kind, spec string) error {
	ctx := context.Background()
	switch kind {
	case "throughput":
		return child(spec, func(s load.Spec) (load.Result, error) { return load.Throughput(ctx, s) })
	case "deadlines":
		return child(spec, func(d load.Deadlines) (load.DeadlinesResult, error) { return d.Run(ctx) })
	case "due":
		return child(spec, func(d load.Due) (load.DueResult, error) { return d.Run(ctx) })
	case "idle":
		return child(spec, idle)
	case "relay":
		return relay(os.Stdout)
	}
	return fmt.Errorf("bench: no load of kind %q", kind)
}

func child[S, R any](spec string, run func(S) (R, error)) error {
	var s S
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	result, err := run(s)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// idle holds its connections until its input ends.
func idle(d load.Idle) (struct{}, error) {
	conns, err := d.Open()
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	if err != nil {
		return struct{}{}, err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return struct{}{}, err
}

// inProcess runs a load in a new process and returns its result.
func inProcess[R any](kind string, spec any) (result R, err error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return result, err
	}
	cmd, err := childCommand(kind, string(text))
	if err != nil {
		return result, err
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return result, fmt.Errorf("%s %s: %w: %s", kind, text, err, said.String())
	}
	return result, json.Unmarshal(out.Bytes(), &result)
}

func childCommand(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}
