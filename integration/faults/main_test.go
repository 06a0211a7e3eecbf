package faults

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"curfew/integration/testenv"
)

// scratch holds the binary built for the run.
var scratch string

func TestMain(m *testing.M) {
	if order, attacks := os.LookupEnv(strikeVariable); attacks {
		os.Exit(strike(order))
	}
	var err error
	if scratch, err = os.MkdirTemp("", "curfew-faults-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// built is the binary that users run, built once.
var built = sync.OnceValues(func() (string, error) {
	if err := readSources("../.."); err != nil {
		return "", err
	}
	return testenv.Curfew(scratch)
})

// readSources reads every folder of the module. That is for the go tool: a test that
// passed is not run again until what it has read has changed, and of the sources of a
// binary that it builds the tool knows nothing.
func readSources(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		return err
	})
}
