package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// places are the files of the repository that name the version, each with what stands before it.
var places = []struct{ path, before string }{
	{"deploy/helm/curfew/Chart.yaml", `version: `},
	{"deploy/helm/curfew/Chart.yaml", `appVersion: `},
	{"deploy/kubernetes/*.yaml", `image: curfew:`},
	{"deploy/compose*.yaml", `image: curfew:`},
	{"deploy/compose*.yaml", `VERSION: v`},
}

// number is a version as it stands in these files.
const number = `\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?`

var released = regexp.MustCompile(`^v` + number + `$`)

// eachVersion calls replace with every version in the files, and writes what it returns.
func eachVersion(root string, replace func(path, was string) string) error {
	for _, p := range places {
		paths, err := filepath.Glob(filepath.Join(root, p.path))
		if err != nil {
			return err
		}
		found := 0
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(root, path)
			changed := regexp.MustCompile(`\b`+p.before+number+`\b`).ReplaceAllStringFunc(string(text), func(match string) string {
				found++
				return p.before + replace(name, strings.TrimPrefix(match, p.before))
			})
			if changed == string(text) {
				continue
			}
			if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
				return err
			}
		}
		if found == 0 {
			return fmt.Errorf("no version stands after %q in %s", p.before, p.path)
		}
	}
	return nil
}

// treeVersion is the version that the repository's files name, as a release has it: v0.1.0.
func treeVersion(root string) (version string, err error) {
	err = eachVersion(root, func(_, was string) string {
		version = "v" + was
		return was
	})
	return version, err
}

// holdVersion refuses a version that is not the one in the repository's files.
func holdVersion(root, version string) error {
	if !released.MatchString(version) {
		return fmt.Errorf("%q is not a version of a release, such as v0.1.0", version)
	}
	var errs []error
	err := eachVersion(root, func(path, was string) string {
		if "v"+was != version {
			errs = append(errs, fmt.Errorf("%s is about v%s, not %s: run make set-version VERSION=%s and commit", path, was, version, version))
		}
		return was
	})
	return errors.Join(append(errs, err)...)
}

func setVersion(root, version string) error {
	if !released.MatchString(version) {
		return fmt.Errorf("%q is not a version of a release, such as v0.1.0", version)
	}
	return eachVersion(root, func(_, _ string) string { return strings.TrimPrefix(version, "v") })
}
