package integration

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnusedMethodsAreLeftOut: nothing in the binary looks a method up by a name or number that is not known when it is linked, as text/template
// and html/template do when they are executed. The linker would keep every exported method of every type then: it was 27 MB so, and is 20 without.
func TestUnusedMethodsAreLeftOut(t *testing.T) {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "curfew"), "./cmd/curfew")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var dump bytes.Buffer
	cmd.Stderr = &dump
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, dump.Bytes()[:min(dump.Len(), 2000)])
	}
	edges := 0
	lines := bufio.NewScanner(&dump)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		by, reached, ok := strings.Cut(lines.Text(), " -> ")
		if !ok {
			continue
		}
		edges++
		if strings.Contains(reached, "<ReflectMethod>") {
			t.Errorf("%s reaches %s", by, reached)
		}
	}
	check(t, lines.Err())
	if edges < 10_000 {
		t.Fatalf("the linker names %d dependencies: it tells them otherwise now", edges)
	}
}
