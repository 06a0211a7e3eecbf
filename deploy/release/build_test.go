package main

import (
	"os"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestOtherSystems: the types of every package agree on the systems that the tests do not run on. That is most of what a compiler would
// find, in a tenth of its time.
func TestOtherSystems(t *testing.T) {
	for _, other := range targets {
		if other == here || (other.os == "darwin" && other.arch != "arm64") {
			continue
		}
		t.Run(other.String(), func(t *testing.T) {
			all, err := packages.Load(&packages.Config{
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax,
				Dir:  repository,
				Env:  append(os.Environ(), "GOOS="+other.os, "GOARCH="+other.arch, "CGO_ENABLED=0", "GOWORK=off"),
			}, "./broker/...", "./cmd/...", "./monitor/...", "./scheduler/...")
			check(t, err)
			if len(all) < 50 {
				t.Errorf("only %d packages were found", len(all))
			}
			for _, p := range all {
				for _, e := range p.Errors {
					t.Error(e)
				}
			}
		})
	}
}
