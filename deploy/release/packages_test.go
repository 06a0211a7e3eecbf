package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// output is what a program of a Debian package prints; it must end well.
func output(t testing.TB, pkg, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%v; run: apt-get install -y --no-install-recommends %s", err, pkg)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// packaged is the path of the package for the machine that the tests run on.
func packaged(t testing.TB, r *release, extension string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(r.out, "*."+extension))
	check(t, err)
	if len(all) == 0 {
		t.Fatalf("no .%s was made", extension)
	}
	return all[0]
}

// packagedFiles are in both packages, with these modes.
var packagedFiles = map[string]string{
	"/usr/bin/curfew": "-rwxr-xr-x", "/usr/lib/systemd/system/curfew.service": "-rw-r--r--", "/etc/curfew/curfew.env": "-rw-r-----",
	"/usr/share/bash-completion/completions/curfew": "-rw-r--r--", "/usr/share/fish/vendor_completions.d/curfew.fish": "-rw-r--r--",
	"/usr/share/doc/curfew/changelog.gz": "-rw-r--r--",
}

// TestDeb: dpkg reads it, everything is root's, settings are a conffile, and times are the commit's.
func TestDeb(t *testing.T) {
	r := made(t)
	path := packaged(t, r, "deb")
	fields := output(t, "dpkg", "dpkg-deb", "--field", path)
	for _, want := range []string{"Package: curfew\n", "Version: " + r.number() + "-1\n", "Architecture: " + here.arch + "\n", "Maintainer: The Curfew authors", "Description: AMQP 0-9-1 broker"} {
		if !strings.Contains(fields, want) {
			t.Errorf("the package has no %q in\n%s", want, fields)
		}
	}
	list := output(t, "dpkg", "dpkg-deb", "--contents", path)
	for name, mode := range packagedFiles {
		if !regexp.MustCompile(`(?m)^` + mode + ` (root/root|0/0) +\d+ 2030-01-02 \d\d:\d\d \.` + regexp.QuoteMeta(name) + `$`).MatchString(list) {
			t.Errorf("%s %s is not in\n%s", mode, name, list)
		}
	}
	if files := output(t, "dpkg", "dpkg-deb", "--info", path, "conffiles"); files != "/etc/curfew/curfew.env\n" {
		t.Errorf("the conffiles are %q", files)
	}
}

// TestRpm: rpm reads it and finds the digests right, everything is root's, and settings are kept by an upgrade.
func TestRpm(t *testing.T) {
	r := made(t)
	path := packaged(t, r, "rpm")
	output(t, "rpm", "rpm", "--checksig", "--nosignature", path)
	if got, want := output(t, "rpm", "rpm", "-qp", "--nosignature", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE} %{ARCH} %{LICENSE} %{BUILDTIME} %{BUILDHOST}", path),
		"curfew "+r.number()+"-1 "+map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[here.arch]+" MIT 1893553445 reproducible"; got != want {
		t.Errorf("the package is %q, not %q", got, want)
	}
	list := output(t, "rpm", "rpm", "-qp", "--nosignature", "-lv", path)
	for name, mode := range packagedFiles {
		if !regexp.MustCompile(`(?m)^` + mode + ` +\d+ root +root .* ` + regexp.QuoteMeta(name) + `$`).MatchString(list) {
			t.Errorf("%s %s is not in\n%s", mode, name, list)
		}
	}
	if files := output(t, "rpm", "rpm", "-qp", "--nosignature", "--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]", path); !strings.Contains(files, "/etc/curfew/curfew.env cn\n") {
		t.Errorf("the settings are no %%config(noreplace) in\n%s", files)
	}
	if scripts := output(t, "rpm", "rpm", "-qp", "--nosignature", "--scripts", path); !strings.Contains(scripts, "useradd") || !strings.Contains(scripts, "systemctl stop curfew") {
		t.Errorf("the scripts are\n%s", scripts)
	}
}
