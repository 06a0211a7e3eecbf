package integration

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestImage: what the Dockerfile builds can be checked without an engine: a binary that needs nothing, running as the image's user in a
// root that holds nothing else, with the image's environment.
func TestImage(t *testing.T) {
	dockerfile := readDockerfile(t)
	root := t.TempDir()
	binary := filepath.Join(root, "curfew")
	contents, err := os.ReadFile(mustBinary(t, release)) // built with the Dockerfile's flags, see below
	check(t, err)
	check(t, os.WriteFile(binary, contents, 0o755))

	t.Run("flags", func(t *testing.T) {
		want := `CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w -X main.version=$VERSION"`
		if !strings.Contains(dockerfile, want) {
			t.Errorf("the Dockerfile does not build with %s", want)
		}
	})
	t.Run("static", func(t *testing.T) { linksNothing(t, binary) })
	t.Run("environment is known", func(t *testing.T) {
		_, known := runToEnd(t, "config")
		for _, name := range imageVariables(dockerfile) {
			if !strings.Contains(known, name) {
				t.Errorf("%s is not a variable of Curfew's", name)
			}
		}
	})
	t.Run("runs", func(t *testing.T) {
		inEmptyRoot(t, root, "version")
		inEmptyRoot(t, root, "config")
	})
}

func readDockerfile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	check(t, err)
	for _, line := range []string{"USER 65532:65532", "STOPSIGNAL SIGTERM", `CMD ["/curfew","healthcheck"]`, `ENTRYPOINT ["/curfew"]`} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the Dockerfile has no %s", line)
		}
	}
	return string(text)
}

func imageVariables(dockerfile string) (names []string) {
	for _, match := range regexp.MustCompile(`(CURFEW_\w+)=`).FindAllStringSubmatch(dockerfile, -1) {
		names = append(names, match[1])
	}
	return names
}

func linksNothing(t *testing.T, binary string) {
	t.Helper()
	file, err := elf.Open(binary)
	check(t, err)
	defer file.Close()
	if libraries, _ := file.ImportedLibraries(); len(libraries) > 0 {
		t.Errorf("it links %v", libraries)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("it wants a dynamic loader")
		}
	}
}

// inEmptyRoot runs the binary with root as its file system, as user 65532 or, where the test may not change users, in a user namespace.
func inEmptyRoot(t *testing.T, root string, args ...string) {
	t.Helper()
	check(t, os.Chmod(filepath.Dir(root), 0o755))
	check(t, os.Chmod(root, 0o755))
	cmd := exec.Command("/curfew", args...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
	} else {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v in an empty root: %v\n%s", args, err, out)
	}
}
