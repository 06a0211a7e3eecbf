package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// tinyDisk mounts a file system of its own, of so many bytes, in memory.
func tinyDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("a small file system to fill is needed, and mount says %q: run the tests as root (in a container with --cap-add SYS_ADMIN)", err)
	}
	t.Cleanup(func() { unmount(t, dir) })
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

// failingDisk mounts an ext4 of its own, in a file. breakIt makes the kernel give up on
// it, as it does after an error of the device: nothing can be written any more.
// mend takes it off and puts it back.
func failingDisk(t *testing.T) (dir string, breakIt, mend func()) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	check(t, os.WriteFile(image, nil, 0o600))
	check(t, os.Truncate(image, 96<<20))
	dir = t.TempDir()
	command(t, "mkfs.ext4", "-q", "-F", image)
	mount := func() { command(t, "mount", "-o", "loop", image, dir) }
	mount()
	t.Cleanup(func() { unmount(t, dir) })
	breakIt = func() { command(t, "mount", "-o", "remount,abort", dir) }
	mend = func() {
		command(t, "umount", dir)
		mount()
	}
	return dir, breakIt, mend
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("a disk that fails is needed, and %s %v says: %v, %s: run the tests as root, with loop devices and e2fsprogs", name, args, err, out)
	}
}
