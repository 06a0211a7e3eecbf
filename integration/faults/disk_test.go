package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// tinyDisk mounts a file system of its own, of that many bytes, in memory.
func tinyDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("a small file system to fill is needed, and mount says %q: run `make test-privileged` as root (in a container with --cap-add SYS_ADMIN)", err)
	}
	t.Cleanup(func() { unmount(t, dir) })
	return dir
}

// memoryFolder makes a folder that is in memory, or, in a container whose /dev/shm is small, on disk.
func memoryFolder(t *testing.T) string {
	t.Helper()
	const memory, wanted = "/dev/shm", 1 << 30
	var st unix.Statfs_t
	if err := unix.Statfs(memory, &st); err != nil || int64(st.Bavail)*int64(st.Bsize) < wanted {
		t.Logf("%s is too small: the journal is on disk", memory)
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "curfew-faults-")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func unmount(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Errorf("unmount %s: %v", dir, err)
	}
}

// fill takes up n bytes of a disk; the function returned gives them back.
func fill(t *testing.T, dir string, n int) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	check(t, os.WriteFile(path, make([]byte, n), 0o600))
	return func() { check(t, os.Remove(path)) }
}

// ownDisk mounts an ext4 of its own, in a file.
func ownDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir(), image: filepath.Join(t.TempDir(), "image")}
	check(t, os.WriteFile(d.image, nil, 0o600))
	check(t, os.Truncate(d.image, 96<<20))
	d.run("mkfs.ext4", "-q", "-F", d.image)
	d.mount()
	t.Cleanup(func() { unmount(t, d.dir) })
	return d
}

type disk struct {
	t          *testing.T
	dir, image string
}

func (d *disk) run(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("a disk to break is needed, and %s %v says: %v, %s: run `make test-privileged` as root, with loop devices and e2fsprogs", name, args, err, out)
	}
}

func (d *disk) mount() {
	d.t.Helper()
	d.run("mount", "-o", "loop", d.image, d.dir)
}

// extShutdown is EXT4_IOC_SHUTDOWN of linux/fs/ext4: give up on the file system.
const extShutdown = 0x8004587d

// fail makes the kernel give up on it, as it does after an error of the device:
// nothing more can be written. What was synced is on disk. (Remounting with
// "abort" is not the same: a sync under way at that instant may answer well and its
// data be lost all the same, as seen with a bare loop of write and fdatasync.)
func (d *disk) fail() {
	d.t.Helper()
	dir, err := os.Open(d.dir)
	check(d.t, err)
	defer dir.Close()
	const flushFirst = 0
	check(d.t, unix.IoctlSetPointerInt(int(dir.Fd()), extShutdown, flushFirst))
}

// mend takes it off and puts a copy of it in its place. The kernel would give back the one that it has given up on, if a process that
// another test put into a mount namespace of its own meanwhile has it still.
func (d *disk) mend() {
	d.t.Helper()
	d.run("umount", d.dir)
	d.run("cp", d.image, d.image+".mended")
	d.image += ".mended"
	d.mount()
}

// freeze has every write and sync wait until thaw, which is called at the end of the
// test at the latest.
func (d *disk) freeze() (thaw func()) {
	d.t.Helper()
	d.run("fsfreeze", "--freeze", d.dir)
	thaw = sync.OnceFunc(func() { d.run("fsfreeze", "--unfreeze", d.dir) })
	d.t.Cleanup(thaw)
	return thaw
}
