package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	set := flag.String("set", "", "write this version, such as v0.2.0, into the files that name one, and do nothing else")
	r := &release{}
	flag.StringVar(&r.root, "root", ".", "folder of the repository")
	flag.StringVar(&r.out, "out", "dist", "folder to write to; it is emptied first")
	flag.StringVar(&r.version, "version", "", "version, such as v0.1.0")
	flag.StringVar(&r.commit, "commit", "", "the commit that is built")
	flag.Func("time", "when that commit was made (RFC 3339)", func(text string) (err error) {
		r.time, err = time.Parse(time.RFC3339, text)
		return err
	})
	flag.StringVar(&r.downloads, "downloads", "", "URL of the folder that the archives will be downloaded from, for the Homebrew formula; without it there is none")
	flag.Parse()
	var err error
	if *set != "" {
		err = setVersion(r.root, *set)
	} else {
		err = r.make(context.Background(), targets)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one version of Curfew on its way to a folder.
type release struct {
	root      string    // of the repository
	out       string    // for what is published
	version   string    // v0.1.0
	commit    string    // that is built
	time      time.Time // of the commit; every time stamp
	downloads string    // URL of the folder of the archives, or empty

	work     string            // folder for what is not published
	binaries map[target]string // paths, once they are built
}

// number is the version as packages, chart and images have it: without v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// name is that of a published file.
func (r *release) name(suffix string) string {
	return filepath.Join(r.out, "curfew_"+r.number()+"_"+suffix)
}

// step makes a part of a release for some targets.
type step func(context.Context, []target) error

// make builds everything for the targets.
func (r *release) make(ctx context.Context, all []target) (err error) {
	if err := holdVersion(r.root, r.version); err != nil {
		return err
	}
	if r.commit == "" || r.time.IsZero() {
		return fmt.Errorf("-commit and -time are needed")
	}
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "curfew-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, step := range []step{r.build, r.generate, r.licenses, r.archives, r.packages, r.image, r.materials, r.formula, r.checksums} {
		if err := step(ctx, all); err != nil {
			return err
		}
	}
	return nil
}

// checksums lists the SHA-256 of every published file, as sha256sum --check reads it.
func (r *release) checksums(context.Context, []target) error {
	entries, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, e := range entries {
		sum, err := sha256Of(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(list.String()), 0o644)
}

func sha256Of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
