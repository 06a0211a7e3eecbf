package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// licenseFile are the names of files in which a module says how it may be used.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-.].*)?$`)

// licenses collects the licenses of the modules that are in the binaries: most want to be passed on with them.
func (r *release) licenses(ctx context.Context, _ []target) error {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	modules := make(map[string]string) // folders, by path and version
	for _, binary := range r.binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return err
		}
		for _, m := range info.Deps {
			path, err := module.EscapePath(m.Path)
			if err != nil {
				return err
			}
			modules[m.Path+" "+m.Version] = filepath.Join(strings.TrimSpace(string(cache)), filepath.FromSlash(path)+"@"+m.Version)
		}
	}
	var text bytes.Buffer
	text.WriteString("Curfew contains these modules, each under its own license.\n")
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		entries, err := os.ReadDir(modules[name]) // sorted
		if err != nil {
			return err
		}
		found := false
		for _, e := range entries {
			if !e.Type().IsRegular() || !licenseFile.MatchString(e.Name()) {
				continue
			}
			license, err := os.ReadFile(filepath.Join(modules[name], e.Name()))
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(license))
			found = true
		}
		if !found {
			return fmt.Errorf("%s has no license", name)
		}
	}
	return os.WriteFile(filepath.Join(r.generatedFolder(), "third-party-licenses.txt"), text.Bytes(), 0o644)
}
