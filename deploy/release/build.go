package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// target is a system that a binary is for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "_" + t.arch }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

// here is the target that this program runs on.
var here = target{runtime.GOOS, runtime.GOARCH}

// flags are those of the go tool. The Dockerfile has the same.
func flags(version, commit, when string) []string {
	return []string{"-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-gcflags", "all=-dwarf=false", "-gcflags", "curfew/cmd/internal/dashboard/...=-l -dwarf=false", "-gcflags", "github.com/redis/...=-l -dwarf=false", "-ldflags", "-s -w -X main.version=" + version + " -X main.commit=" + commit + " -X main.commitTime=" + when}
}

// build builds the binaries.
func (r *release) build(ctx context.Context, all []target) error {
	r.binaries = make(map[target]string)
	for _, t := range all {
		path := filepath.Join(r.work, t.String(), "curfew")
		if t.os == "windows" {
			path += ".exe"
		}
		args := append(append([]string{"build", "-o", path}, flags(r.version, r.commit, r.time.UTC().Format(time.RFC3339))...), "./cmd/curfew")
		if err := r.run(ctx, []string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + t.os, "GOARCH=" + t.arch}, "go", args...); err != nil {
			return err
		}
		r.binaries[t] = path
	}
	return nil
}

// run runs a program in the repository.
func (r *release) run(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	cmd.Env = append(cmd.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}
