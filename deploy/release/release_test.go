package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	repository = "../.."
	testCommit = "0123456789abcdef0123456789abcdef01234567"
)

var testTime = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tested are the targets that the tests build: the one they run on; all of them with RELEASE_TARGETS=all, which takes minutes.
func tested() []target {
	if os.Getenv("RELEASE_TARGETS") == "all" {
		return targets
	}
	return []target{here}
}

// scratch is a folder for all tests.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "curfew-release-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// made is a release that was made once for all tests.
func made(t testing.TB) *release {
	t.Helper()
	r, err := makeOnce()
	check(t, err)
	return r
}

var makeOnce = sync.OnceValues(func() (*release, error) { return makeFrom(repository, filepath.Join(scratch, "dist")) })

// makeFrom makes a release of the version that is in the folder of the repository.
func makeFrom(root, out string) (*release, error) {
	version, err := treeVersion(root)
	r := &release{root: root, out: out, version: version, commit: testCommit, time: testTime, downloads: "https://github.com/curfew/curfew/releases/download/" + version}
	if err == nil {
		err = r.make(context.Background(), tested())
	}
	return r, err
}

// copyOfRepository is the present files of the repository that git knows, in another folder, with other times and other modes.
func copyOfRepository(t testing.TB) string {
	t.Helper()
	list, err := exec.Command("git", "-C", repository, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	check(t, err)
	root := filepath.Join(t.TempDir(), "elsewhere")
	for name := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		check(t, err)
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		check(t, os.WriteFile(filepath.Join(root, name), text, 0o600))
	}
	return root
}

// TestReproducible: another folder, time, time zone, home, language and file modes, the same bytes. With all targets the compiler starts
// again from nothing, too.
func TestReproducible(t *testing.T) {
	first := made(t)
	root := copyOfRepository(t)
	t.Setenv("TZ", "Pacific/Kiritimati")
	t.Setenv("LC_ALL", "C")
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	if len(tested()) == len(targets) {
		t.Setenv("GOCACHE", t.TempDir())
	}
	second, err := makeFrom(root, filepath.Join(t.TempDir(), "dist"))
	check(t, err)
	names, err := walk(first.out)
	check(t, err)
	others, err := walk(second.out)
	check(t, err)
	if !slices.Equal(names, others) || len(names) < 7 {
		t.Errorf("one has %v, the other %v", names, others)
	}
	for _, name := range names {
		one, err := sha256Of(filepath.Join(first.out, name))
		check(t, err)
		other, err := sha256Of(filepath.Join(second.out, name))
		check(t, err)
		if one != other {
			t.Errorf("%s differs from one build to the next", name)
		}
	}
}

// TestVersions: the files of the repository name one version, releases of others are refused, and all of them change together.
func TestVersions(t *testing.T) {
	version, err := treeVersion(repository)
	check(t, err)
	check(t, holdVersion(repository, version))
	for _, other := range []string{"v99.0.0", "0.1.0", "v1", "latest"} {
		if holdVersion(repository, other) == nil {
			t.Errorf("a release of %s is not refused", other)
		}
	}
	root := t.TempDir()
	for _, p := range places {
		paths, err := filepath.Glob(filepath.Join(repository, p.path))
		check(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			check(t, err)
			copied := filepath.Join(root, strings.TrimPrefix(path, repository))
			check(t, os.MkdirAll(filepath.Dir(copied), 0o755))
			check(t, os.WriteFile(copied, text, 0o644))
		}
	}
	check(t, setVersion(root, "v99.1.2-rc.1"))
	check(t, holdVersion(root, "v99.1.2-rc.1"))
	check(t, setVersion(root, version))
	names, err := walk(root)
	check(t, err)
	for _, name := range names {
		was, err := os.ReadFile(filepath.Join(repository, name))
		check(t, err)
		is, err := os.ReadFile(filepath.Join(root, name))
		check(t, err)
		if !bytes.Equal(was, is) {
			t.Errorf("%s is not as it was after the version was set there and back", name)
		}
	}
}

// TestNoOtherVersion: no file below deploy names an image or a version of Curfew that setVersion does not know.
func TestNoOtherVersion(t *testing.T) {
	version, err := treeVersion(repository)
	check(t, err)
	names, err := walk(repository + "/deploy")
	check(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, "release/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repository, "deploy", name))
		check(t, err)
		for _, match := range regexp.MustCompile(`\bcurfew:v?(`+number+`)`).FindAllStringSubmatch(string(text), -1) {
			if "v"+match[1] != version {
				t.Errorf("%s names curfew:%s, and the version is %s", name, match[1], version)
			}
		}
	}
}

// contents reads an archive.
func contents(t testing.TB, path string) map[string]*tar.Header {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	check(t, err)
	all := make(map[string]*tar.Header)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		check(t, err)
		all[h.Name] = h
	}
}

func TestArchive(t *testing.T) {
	r := made(t)
	folder := "curfew_" + r.number() + "_" + here.String() + "/"
	all := contents(t, r.name(here.String()+".tar.gz"))
	for name, mode := range map[string]int64{"": 0o755, "curfew": 0o755, "LICENSE": 0o644, "README.txt": 0o644, "curfew.service": 0o644, "completions/curfew.bash": 0o644, "curfew.1": 0o644, "docs/README.md": 0o644,
		"docs/pictures/overview.svg": 0o644, "deploy/runbooks/CurfewDown.md": 0o644, "deploy/screenshots/overview.png": 0o644} {
		h := all[folder+name]
		if h == nil {
			t.Errorf("the archive lacks %s%s", folder, name)
			continue
		}
		if h.Mode != mode || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(testTime) {
			t.Errorf("%s has mode %o, owner %d:%d %q, time %v", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
	}
	linked := 0
	for _, match := range regexp.MustCompile(`\]\(\.\./(deploy/[^)#]+)`).FindAllStringSubmatch(output(t, "tar", "tar", "-xOf", r.name(here.String()+".tar.gz"), "--wildcards", folder+"docs/*.md"), -1) {
		linked++
		if all[folder+match[1]] == nil && !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(name string) bool { return strings.HasPrefix(name, folder+match[1]+"/") }) {
			t.Errorf("a page links to %s, which is not in the archive", match[1])
		}
	}
	if linked < 20 {
		t.Errorf("the pages have %d links to deploy", linked)
	}
	var zipped bytes.Buffer
	check(t, writeZip(&zipped, []file{{name: "a/", mode: 0o755}, {name: "a/curfew.exe", mode: 0o755, text: []byte("text")}}, testTime))
	z, err := zip.NewReader(bytes.NewReader(zipped.Bytes()), int64(zipped.Len()))
	check(t, err)
	if f := z.File[1]; f.Name != "a/curfew.exe" || f.Mode() != 0o755 || !f.Modified.Equal(testTime) || !z.File[0].Mode().IsDir() {
		t.Errorf("the zip has %s, %v, %v", f.Name, f.Mode(), f.Modified)
	}
}

// TestDownload: the line in docs/deployment.md fetches a released archive and unpacks it, with nothing set but the address.
func TestDownload(t *testing.T) {
	r := made(t)
	page, err := os.ReadFile("../../docs/deployment.md")
	check(t, err)
	line := regexp.MustCompile(`(?m)^curl .*\| tar .*$`).FindString(string(page))
	archive := filepath.Base(r.name(here.String() + ".tar.gz"))
	line = strings.ReplaceAll(line, "curfew_0.1.0_linux_amd64", strings.TrimSuffix(archive, ".tar.gz"))
	downloads := httptest.NewServer(http.FileServer(http.Dir(r.out)))
	defer downloads.Close()
	cmd := exec.Command("sh", "-euc", line+"\n./"+strings.TrimSuffix(archive, ".tar.gz")+"/curfew version")
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", "DOWNLOADS=" + downloads.URL}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), r.version) {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// TestManPage: man reads it without a complaint, and every command is in it.
func TestManPage(t *testing.T) {
	r := made(t)
	page := filepath.Join(t.TempDir(), "curfew.1")
	text := output(t, "tar", "tar", "-xOf", r.name(here.String()+".tar.gz"), "curfew_"+r.number()+"_"+here.String()+"/curfew.1")
	check(t, os.WriteFile(page, []byte(text), 0o600))
	for _, want := range []string{".TH CURFEW 1 ", ".SH EXIT CODES\n", ".SS curfew clock advance\n", ".SS curfew serve\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the man page has no %q", want)
		}
	}
	if strings.Contains(text, "](") || strings.Contains(text, "<!--") {
		t.Error("the man page has Markdown in it")
	}
}

// TestReleasedBinary: it says what it was built from.
func TestReleasedBinary(t *testing.T) {
	r := made(t)
	unpacked := t.TempDir()
	if out, err := exec.Command("tar", "-xf", r.name(here.String()+".tar.gz"), "-C", unpacked, "--strip-components=1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(unpacked, "curfew"), "version", "-o", "json").Output()
	check(t, err)
	var v struct {
		Version, Commit string
		CommitTime      time.Time `json:"commit_time"`
		Dirty           bool
	}
	check(t, json.Unmarshal(out, &v))
	if v.Version != r.version || v.Commit != testCommit || !v.CommitTime.Equal(testTime) || v.Dirty {
		t.Errorf("it says %s", out)
	}
}

// TestChecksums: sha256sum finds every published file, unchanged.
func TestChecksums(t *testing.T) {
	r := made(t)
	cmd := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	cmd.Dir = r.out
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	names, err := walk(r.out)
	check(t, err)
	for _, name := range names {
		if name != "SHA256SUMS" && !strings.Contains(string(out), name+": OK") {
			t.Errorf("%s has no checksum", name)
		}
	}
}

// TestFormula: Ruby takes it, and each archive is there with its checksum.
func TestFormula(t *testing.T) {
	r := made(t)
	path := filepath.Join(r.out, "curfew.rb")
	if out, err := exec.Command("ruby", "-c", path).CombinedOutput(); err != nil {
		t.Errorf("%v; run: apt-get install -y --no-install-recommends ruby\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	check(t, err)
	sum, err := sha256Of(r.name(here.String() + ".tar.gz"))
	check(t, err)
	want := "url \"" + r.downloads + "/" + filepath.Base(r.name(here.String()+".tar.gz")) + "\"\n      sha256 \"" + sum + "\""
	if !strings.Contains(string(text), want) {
		t.Errorf("the formula has no\n%s\nin\n%s", want, text)
	}
}
