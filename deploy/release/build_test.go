package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestOtherSystems: the types of every package agree on the systems that the tests do not run on. That is most of what a compiler would
// find, in a tenth of its time.
func TestOtherSystems(t *testing.T) {
	root, err := filepath.Abs(repository)
	check(t, err)
	for _, other := range targets {
		if other == here || (other.os == "darwin" && other.arch != "arm64") {
			continue
		}
		t.Run(other.String(), func(t *testing.T) {
			all, err := packages.Load(&packages.Config{
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax,
				Dir:  repository,
				Env:  append(os.Environ(), "GOOS="+other.os, "GOARCH="+other.arch, "CGO_ENABLED=0", "GOWORK=off"),
				ParseFile: func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
					return parsed(files, name, text, strings.HasPrefix(name, root+"/"))
				},
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

// parsed is a file, without the bodies of its functions where only its declarations are needed: most of the work is in those of libraries.
func parsed(files *token.FileSet, name string, text []byte, bodies bool) (*ast.File, error) {
	file, err := parser.ParseFile(files, name, text, parser.AllErrors|parser.SkipObjectResolution)
	if err != nil || bodies {
		return file, err
	}
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is {
			f.Body = nil
		}
	}
	return file, nil
}
