package main

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// packages makes a .deb and an .rpm of each Linux target, as package/nfpm.yaml says.
func (r *release) packages(_ context.Context, all []target) error {
	for from, to := range map[string]string{
		filepath.Join(r.root, "docs/changelog.md"): "changelog.gz", filepath.Join(r.generatedFolder(), "curfew.1"): "curfew.1.gz",
	} {
		if err := compress(from, filepath.Join(r.work, to)); err != nil {
			return err
		}
	}
	for _, t := range all {
		if t.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(t, format); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) pack(t target, format string) error {
	info, err := r.packageInfo(t, format)
	if err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return written(filepath.Join(r.out, packager.ConventionalFileName(info)), func(w io.Writer) error { return packager.Package(info, w) })
}

// packageInfo reads package/nfpm.yaml for a target.
func (r *release) packageInfo(t target, format string) (*nfpm.Info, error) {
	f, err := os.Open(filepath.Join(r.root, "deploy/release/package/nfpm.yaml"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	variables := map[string]string{"ARCH": t.arch, "VERSION": r.version, "WORK": r.work, "BINARY": r.binaries[t]}
	config, err := nfpm.ParseWithEnvMapping(f, func(name string) string { return variables[name] })
	if err != nil {
		return nil, err
	}
	info, err := config.Get(format)
	if err != nil {
		return nil, err
	}
	info = nfpm.WithDefaults(info)
	info.MTime = r.time
	for _, c := range info.Contents {
		if c.Type != files.TypeDir {
			c.Source = r.inRepository(c.Source)
		}
	}
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		*script = r.inRepository(*script)
	}
	return info, nfpm.PrepareForPackager(info, format)
}

func (r *release) inRepository(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.root, path)
}

// compress makes a compressed copy of a file.
func compress(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return written(to, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(text); err != nil {
			return err
		}
		return z.Close()
	})
}
