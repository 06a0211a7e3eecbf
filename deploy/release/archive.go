package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one entry of an archive or of a layer of the image.
type file struct {
	name string // with slashes; of a folder with one at its end
	mode int64
	text []byte
	user int // owner and group
}

// archives makes a .tar.gz for each target, a .zip for Windows, each with one folder.
func (r *release) archives(_ context.Context, all []target) error {
	for _, t := range all {
		files, err := r.archived(t)
		if err != nil {
			return err
		}
		if t.os == "windows" {
			err = written(r.name(t.String()+".zip"), func(w io.Writer) error { return writeZip(w, files, r.time) })
		} else {
			err = written(r.name(t.String()+".tar.gz"), func(w io.Writer) error { return writeTarGz(w, files, r.time) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// archived lists what is in the archive for a target.
func (r *release) archived(t target) (files []file, err error) {
	folder := "curfew_" + r.number() + "_" + t.String() + "/"
	add := func(name, path string, mode int64) {
		text, readErr := os.ReadFile(path)
		if err == nil {
			err = readErr
		}
		files = append(files, file{name: folder + name, mode: mode, text: text})
	}
	files = append(files, file{name: folder, mode: 0o755})
	add(filepath.Base(r.binaries[t]), r.binaries[t], 0o755)
	add("LICENSE", filepath.Join(r.root, "LICENSE"), 0o644)
	add("README.txt", filepath.Join(r.root, "deploy/release/package/README.txt"), 0o644)
	if t.os == "linux" {
		add("curfew.service", filepath.Join(r.root, "deploy/systemd/curfew.service"), 0o644)
		add("curfew.env", filepath.Join(r.root, "deploy/release/package/curfew.env"), 0o644)
	}
	for in, from := range map[string]string{"": r.generatedFolder(), "docs/": filepath.Join(r.root, "docs"), "deploy/": filepath.Join(r.root, "deploy")} {
		names, walkErr := walk(from)
		if err == nil {
			err = walkErr
		}
		for _, name := range names {
			if in != "deploy/" || !strings.HasPrefix(name, "release/") { // what makes the release is for those who have the source tree
				add(in+filepath.ToSlash(name), filepath.Join(from, name), 0o644)
			}
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, err
}

// walk lists the files below a folder, and the links to files, relative to it, sorted.
func walk(folder string) (names []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if about, err := os.Stat(path); err != nil || !about.Mode().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		names = append(names, name)
		return err
	})
	return names, err
}

// written makes a file of what write writes.
func written(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func writeTarGz(w io.Writer, files []file, when time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(z, files, when); err != nil {
		return err
	}
	return z.Close()
}

func writeTar(w io.Writer, files []file, when time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.text)), Uid: f.user, Gid: f.user, ModTime: when.UTC(), Format: tar.FormatUSTAR}
		if f.isFolder() {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.text); err != nil {
			return err
		}
	}
	return t.Close()
}

func (f file) isFolder() bool { return f.name[len(f.name)-1] == '/' }

func writeZip(w io.Writer, files []file, when time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when.UTC()}
		h.SetMode(os.FileMode(f.mode))
		if f.isFolder() {
			h.Method = zip.Store
			h.SetMode(os.ModeDir | os.FileMode(f.mode))
		}
		entry, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.text); err != nil {
			return err
		}
	}
	return z.Close()
}
