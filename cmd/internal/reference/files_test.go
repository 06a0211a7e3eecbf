package reference

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sourceFiles names the files of each package, one package to a line: whoever knows the package finds the file by its name.
func sourceFiles(t *testing.T) string {
	lines := map[string]string{} // by folder
	for _, top := range []string{"cmd", "broker", "monitor", "scheduler"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			name, isGo := strings.CutSuffix(filepath.Base(path), ".go")
			if err != nil || !isGo || name == "doc" || strings.HasSuffix(name, "_test") {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			lines[folder] += " " + name
			return err
		}))
	}
	text := "```text\n"
	for _, folder := range slices.Sorted(maps.Keys(lines)) {
		text += filepath.ToSlash(folder) + ":" + lines[folder] + "\n"
	}
	return text + "```"
}
