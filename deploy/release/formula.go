package main

import (
	"context"
	_ "embed"
	"io"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed formula.rb.tmpl
var formulaText string

var formula = template.Must(template.New("formula").Parse(formulaText))

// formula writes the Homebrew formula, which fetches the archives.
func (r *release) formula(_ context.Context, all []target) error {
	if r.downloads == "" {
		return nil
	}
	homepage, _, _ := strings.Cut(r.downloads, "/releases/")
	data := struct {
		Version, Homepage, Downloads string
		Sums                         map[string]string // of the archives, by target
	}{r.number(), homepage, strings.TrimSuffix(r.downloads, "/"), make(map[string]string)}
	for _, t := range all {
		if t.os == "windows" {
			continue
		}
		sum, err := sha256Of(r.name(t.String() + ".tar.gz"))
		if err != nil {
			return err
		}
		data.Sums[t.String()] = sum
	}
	return written(filepath.Join(r.out, "curfew.rb"), func(w io.Writer) error { return formula.Execute(w, data) })
}
