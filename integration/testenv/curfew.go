package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Curfew returns the path of the binary that users run, in version v1.2.3: the one that TEST_CURFEW names, which make test builds for all
// packages, or one that it builds in dir.
func Curfew(dir string) (string, error) {
	if path := os.Getenv("TEST_CURFEW"); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "curfew")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v1.2.3", "-o", path, "curfew/cmd/curfew")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build curfew: %w\n%s", err, out)
	}
	return path, nil
}
