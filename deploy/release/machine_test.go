package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is this machine once more: its files under an overlay that forgets all changes, with namespaces, a network and a systemd of its
// own.
type machine struct {
	t     *testing.T
	root  string
	group string // its control group
	init  int    // process id of its systemd
	log   bytes.Buffer
}

// boot starts it. What it needs is part of Debian's systemd and util-linux; it takes root.
func boot(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, root: filepath.Join(t.TempDir(), "root"), group: fmt.Sprintf("curfew-test-%d-%s", os.Getpid(), t.Name())}
	cmd := exec.Command("unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child", "sh", "-euc", bootScript, m.root)
	cmd.Env = append(os.Environ(), "GROUP="+m.group)
	cmd.Stdout, cmd.Stderr = &m.log, &m.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill() // --kill-child ends all that is in it
		<-ended
		removeGroup(t, m.group)
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the machine has ended: %v; this test needs root, and systemd: run `make test-privileged` as root\n%s", err, &m.log)
		default:
		}
		if m.init == 0 {
			m.init = childOf(cmd.Process.Pid)
			continue
		}
		if exec.Command("nsenter", m.inside("systemctl", "is-active", "basic.target")...).Run() == nil {
			return m
		}
		if time.Now().After(deadline) {
			t.Fatalf("systemd did not start\n%s", &m.log)
		}
	}
}

// bootScript becomes the machine's systemd. Its argument is a folder to make the root file system in.
const bootScript = `
base=$(dirname "$0")
mount --make-rprivate /
mount -t tmpfs tmpfs "$base"
mkdir "$base/upper" "$base/work" "$0" "$base/cgroup"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$0"
mount -t proc proc "$0/proc"
mount -t sysfs -o ro sysfs "$0/sys"
mount -t tmpfs tmpfs "$0/run"
mount -t tmpfs tmpfs "$0/tmp"
mount -t tmpfs -o mode=755 tmpfs "$0/dev"
for device in null zero full random urandom tty; do
	touch "$0/dev/$device"
	mount --bind "/dev/$device" "$0/dev/$device"
done
mkdir "$0/dev/pts" "$0/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$0/dev/pts"
ln -s pts/ptmx "$0/dev/ptmx"
mount -t tmpfs tmpfs "$0/dev/shm"
ln -s /proc/self/fd "$0/dev/fd"

# Only what a service needs: none of this machine's own services.
mkdir -p "$0/etc/systemd/system"
rm -rf "$0"/etc/systemd/system/*.target.wants
for unit in getty.target systemd-udevd.service systemd-udev-trigger.service systemd-networkd-wait-online.service apt-daily.timer; do
	ln -sf /dev/null "$0/etc/systemd/system/$unit"
done
rm -f "$0/var/lib/man-db/auto-update" # dpkg would have every manual page read again, three times

mount -t cgroup2 cgroup2 "$base/cgroup"
mkdir "$base/cgroup/$GROUP"
echo 0 >"$base/cgroup/$GROUP/cgroup.procs"
umount "$base/cgroup"
exec unshare --cgroup sh -euc '
	mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
	cd "$0"
	pivot_root . mnt # services have user namespaces of their own, which the kernel refuses to a process in a chroot
	umount --lazy /mnt
	exec /usr/bin/env -i container=curfew-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target --show-status=no
' "$0"
`

// childOf is the process id of a process's only child, 0 if there is none yet.
func childOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	child, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return child
}

// removeGroup removes a control group and those in it, whose processes end.
func removeGroup(t *testing.T, name string) {
	t.Helper()
	for _, base := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} { // where the second exists, the first is version 1
		var folders []string
		filepath.WalkDir(filepath.Join(base, name), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				folders = append(folders, path)
			}
			return nil
		})
		for _, folder := range slices.Backward(folders) {
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				err := os.Remove(folder)
				if err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Error(err)
					break
				}
			}
		}
	}
}

// inside are nsenter's arguments to run a command in the machine.
func (m *machine) inside(command ...string) []string {
	return append([]string{"--target", strconv.Itoa(m.init), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd", "--"}, command...)
}

// run runs a command in the machine to its end, which must be good, and returns what it prints.
func (m *machine) run(command ...string) string {
	m.t.Helper()
	out, err := exec.Command("nsenter", m.inside(command...)...).CombinedOutput()
	if err != nil {
		journal, _ := exec.Command("nsenter", m.inside("journalctl", "--no-pager", "--lines=50")...).CombinedOutput()
		m.t.Fatalf("%v: %v\n%s\nthe journal:\n%s", command, err, out, journal)
	}
	return string(out)
}

// says reports whether a command, which may fail, prints a text and no more.
func (m *machine) says(text string, command ...string) bool {
	out, _ := exec.Command("nsenter", m.inside(command...)...).CombinedOutput()
	return strings.TrimSpace(string(out)) == text
}

// path is where a file of the machine is outside of it.
func (m *machine) path(name string) string { return fmt.Sprintf("/proc/%d/root%s", m.init, name) }

// put copies a file into the machine's folder /root, and returns where it is there.
func (m *machine) put(path string) string {
	m.t.Helper()
	text, err := os.ReadFile(path)
	check(m.t, err)
	name := "/root/" + filepath.Base(path)
	check(m.t, os.WriteFile(m.path(name), text, 0o644))
	return name
}

// exists reports whether there is a file.
func (m *machine) exists(name string) bool {
	_, err := os.Lstat(m.path(name))
	return err == nil
}
