package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
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
	"/usr/share/doc/curfew/changelog.gz": "-rw-r--r--", "/usr/share/man/man1/curfew.1.gz": "-rw-r--r--",
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

// upgrade has the packages of this version, and of an older number to upgrade from. What else a release has is not made.
var upgrade = sync.OnceValues(func() (list [2]*release, err error) {
	version, err := treeVersion(repository)
	if err != nil {
		return list, err
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		return list, err
	}
	for i, number := range []string{"v0.0.1", version} {
		r := &release{root: root, out: filepath.Join(scratch, "packages", number), work: filepath.Join(scratch, "work", number), version: number, commit: testCommit, time: testTime}
		if err := os.MkdirAll(r.out, 0o755); err != nil {
			return list, err
		}
		for _, step := range []step{r.build, r.generate, r.licenses, r.packages} {
			if err := step(context.Background(), []target{here}); err != nil {
				return list, err
			}
		}
		list[i] = r
	}
	return list, nil
})

// olderAndPresent are the two releases of upgrade.
func olderAndPresent(t *testing.T) (was, is *release) {
	t.Helper()
	list, err := upgrade()
	check(t, err)
	return list[0], list[1]
}

// TestDebInstalled: the package on a Debian with systemd, from the first installation to the purge.
func TestDebInstalled(t *testing.T) {
	m := boot(t)
	was, is := olderAndPresent(t)
	m.run("dpkg", "-i", m.put(packaged(t, was, "deb")))
	m.lives(was, is, func() { m.run("dpkg", "-i", m.put(packaged(t, is, "deb"))) })
	m.run("dpkg", "--remove", "curfew")
	m.isRemoved()
	m.run("dpkg", "--purge", "curfew")
	for _, gone := range []string{"/etc/curfew", "/var/lib/curfew", "/var/lib/private/curfew"} {
		if m.exists(gone) {
			t.Errorf("%s is there after the purge", gone)
		}
	}
}

// TestRpmInstalled: the same with the RPM package, whose dependencies rpm cannot know about here. It has no purge.
func TestRpmInstalled(t *testing.T) {
	m := boot(t)
	was, is := olderAndPresent(t)
	m.run("rpm", "--install", "--nodeps", m.put(packaged(t, was, "rpm")))
	m.lives(was, is, func() { m.run("rpm", "--upgrade", "--nodeps", m.put(packaged(t, is, "rpm"))) })
	m.run("rpm", "--erase", "curfew")
	m.isRemoved()
}

// lives: after the first installation the service is off; enabled, it keeps deadlines; an upgrade restarts it and keeps messages and
// settings.
func (m *machine) lives(was, is *release, upgrade func()) {
	m.t.Helper()
	if !m.says("inactive", "systemctl", "is-active", "curfew") || !m.says("disabled", "systemctl", "is-enabled", "curfew") {
		m.t.Error("the service runs before it was asked for")
	}
	if home := m.run("getent", "passwd", "curfew"); !strings.Contains(home, "/var/lib/curfew:/usr/sbin/nologin") {
		m.t.Errorf("the user is %q", home)
	}
	settings, err := os.ReadFile(m.path("/etc/curfew/curfew.env"))
	check(m.t, err)
	check(m.t, os.WriteFile(m.path("/etc/curfew/curfew.env"), append(settings, "CURFEW_LOG_LEVEL=debug\n"...), 0o640))
	m.run("systemctl", "enable", "--now", "curfew")
	m.serves(was)
	m.run("curfew", "declare", "queue", "orders", "--dlq", "expired", "--arg", "x-curfew-purpose=telemetry") // expiry is meant: it is no incident after the upgrade
	m.run("curfew", "declare", "queue", "expired")
	m.run("curfew", "publish", "orders", "slow", "--ttl", "1h")
	m.run("curfew", "publish", "orders", "fast", "--ttl", "100ms")
	m.eventually("the deadline to fire", func() bool { return m.says("fast", "curfew", "get", "expired", "--body") })

	process := m.run("systemctl", "show", "--property=MainPID", "curfew")
	upgrade()
	m.serves(is)
	if m.run("systemctl", "show", "--property=MainPID", "curfew") == process {
		m.t.Error("the upgrade did not restart the service")
	}
	if !m.says("slow", "curfew", "get", "orders", "--body") || !m.says("fast", "curfew", "get", "expired", "--body") {
		m.t.Error("messages are gone after the upgrade")
	}
	if text, err := os.ReadFile(m.path("/etc/curfew/curfew.env")); err != nil || !strings.Contains(string(text), "CURFEW_LOG_LEVEL=debug") {
		m.t.Errorf("the settings after the upgrade are %q: %v", text, err)
	}
}

// serves: systemd says that the service is up, and it is this release that answers, as the package's user.
func (m *machine) serves(r *release) {
	m.t.Helper()
	if !m.says("active", "systemctl", "is-active", "curfew") {
		m.t.Error("the service does not run")
	}
	var status struct{ Version, Health string }
	check(m.t, json.Unmarshal([]byte(m.run("curfew", "status", "-o", "json")), &status))
	if status.Version != r.version || status.Health != "ok" {
		m.t.Errorf("%s answers, which is %s; want %s", status.Version, status.Health, r.version)
	}
	if owner := strings.TrimSpace(m.run("ps", "-o", "user=", "-C", "curfew")); owner != "curfew" {
		m.t.Errorf("it runs as %s", owner)
	}
}

// isRemoved: nothing runs, what the package brought is gone, messages and settings are there.
func (m *machine) isRemoved() {
	m.t.Helper()
	if m.says("active", "systemctl", "is-active", "curfew") {
		m.t.Error("the service runs after the removal")
	}
	for _, gone := range []string{"/usr/bin/curfew", "/usr/lib/systemd/system/curfew.service", "/etc/systemd/system/multi-user.target.wants/curfew.service"} {
		if m.exists(gone) {
			m.t.Errorf("%s is there after the removal", gone)
		}
	}
	kept, err := filepath.Glob(m.path("/etc/curfew/curfew.env*")) // RPM keeps changed settings as .rpmsave
	check(m.t, err)
	if len(kept) != 1 || !m.exists("/var/lib/private/curfew") {
		m.t.Errorf("settings are in %v after the removal, messages: %v", kept, m.exists("/var/lib/private/curfew"))
	}
}

func (m *machine) eventually(what string, is func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("%s did not come\n%s", what, m.run("journalctl", "--no-pager", "--unit=curfew", "--lines=30"))
		}
	}
}
