package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// generatedFolder has what Curfew itself writes for a release, as the archives have it.
func (r *release) generatedFolder() string { return filepath.Join(r.work, "generated") }

// generate has Curfew write the completions for shells, and makes the man page of its command line.
func (r *release) generate(ctx context.Context, _ []target) error {
	curfew := r.binaries[here]
	if curfew == "" {
		curfew = filepath.Join(r.work, "curfew")
		if err := r.run(ctx, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", curfew, "./cmd/curfew"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(r.generatedFolder(), "completions"), 0o755); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "curfew.bash", "zsh": "_curfew", "fish": "curfew.fish", "powershell": "curfew.ps1"} {
		err := written(filepath.Join(r.generatedFolder(), "completions", name), func(w io.Writer) error {
			cmd := exec.CommandContext(ctx, curfew, "completion", shell)
			cmd.Stdout, cmd.Stderr = w, os.Stderr
			return cmd.Run()
		})
		if err != nil {
			return err
		}
	}
	page, err := os.ReadFile(filepath.Join(r.root, "docs/reference/command-line.md"))
	if err != nil {
		return err
	}
	return written(filepath.Join(r.generatedFolder(), "curfew.1"), func(w io.Writer) error { return r.writeMan(w, string(page)) })
}
