package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// published reads the image back from its archive, for the machine that the tests run on.
func published(t *testing.T) v1.Image {
	t.Helper()
	r := made(t)
	folder := t.TempDir()
	output(t, "tar", "tar", "-xf", r.name("image.tar"), "-C", folder)
	l, err := layout.FromPath(folder)
	check(t, err)
	outer, err := l.ImageIndex()
	check(t, err)
	manifest, err := outer.IndexManifest()
	check(t, err)
	if name := manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; len(manifest.Manifests) != 1 || name != r.number() {
		t.Errorf("the layout has %d images, the first called %q", len(manifest.Manifests), name)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	check(t, err)
	check(t, validate.Index(index))
	manifest, err = index.IndexManifest()
	check(t, err)
	for _, m := range manifest.Manifests {
		if m.Platform.OS == here.os && m.Platform.Architecture == here.arch {
			img, err := index.Image(m.Digest)
			check(t, err)
			return img
		}
	}
	t.Fatalf("there is no image for %s", here)
	return nil
}

// TestImage: the image is what the Dockerfile says, needs nothing that it does not bring, and runs: a deadline fires in it.
func TestImage(t *testing.T) {
	img := published(t)
	file, err := img.ConfigFile()
	check(t, err)
	config := file.Config
	t.Run("configuration", func(t *testing.T) { configuredAs(t, file) })
	root := t.TempDir()
	unpack(t, img, root)
	t.Run("files", func(t *testing.T) {
		names, err := walk(root)
		check(t, err)
		if want := []string{"curfew", "etc/ssl/certs/ca-certificates.crt"}; !slices.Equal(names, want) {
			t.Errorf("its files are %v, not %v", names, want)
		}
		pem, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
		check(t, err)
		if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(pem) || bytes.Count(pem, []byte("BEGIN")) < 100 {
			t.Error("the certificates are not to be read, or few")
		}
		linksNothing(t, filepath.Join(root, "curfew"))
	})
	t.Run("runs", func(t *testing.T) {
		c := &container{t: t, root: root, config: config}
		settings := c.run("config")
		for _, e := range config.Env {
			name, value, _ := strings.Cut(e, "=")
			if !strings.Contains(settings, name) || !strings.Contains(settings, value) {
				t.Errorf("%s is not a variable of Curfew's, or has another value:\n%s", e, settings)
			}
		}
		c.start()
		c.run("declare", "queue", "orders", "--dlq", "expired")
		c.run("declare", "queue", "expired")
		c.run("publish", "orders", "slow", "--ttl", "1h")
		c.run("publish", "orders", "fast", "--ttl", "100ms")
		c.eventually("the deadline to fire", "get", "expired", "--body")
		if body := c.run("get", "expired", "--body", "--ack"); body != "fast" {
			t.Errorf("%q has expired, not fast", body)
		}
		c.stop()
	})
}

// configuredAs holds the configuration to what the Dockerfile is known to say: the code that made it read the same file.
func configuredAs(t *testing.T, file *v1.ConfigFile) {
	c := file.Config
	if c.User != "65532:65532" || c.StopSignal != "SIGTERM" || !slices.Equal(c.Entrypoint, []string{"/curfew"}) || !slices.Equal(c.Cmd, []string{"serve"}) {
		t.Errorf("it runs %q %q as %s until %s", c.Entrypoint, c.Cmd, c.User, c.StopSignal)
	}
	if len(c.ExposedPorts) != 3 || len(c.Volumes) != 1 || len(c.Env) != 4 {
		t.Errorf("ports %v, volumes %v, environment %v", c.ExposedPorts, c.Volumes, c.Env)
	}
	if h := c.Healthcheck; h == nil || !slices.Equal(h.Test, []string{"CMD", "/curfew", "healthcheck"}) || h.Interval != 10*time.Second {
		t.Errorf("the health check is %+v", h)
	}
	for name, want := range map[string]string{"version": made(t).version, "revision": testCommit, "created": "2030-01-02T03:04:05Z", "licenses": "MIT", "title": "Curfew"} {
		if got := c.Labels["org.opencontainers.image."+name]; got != want {
			t.Errorf("the label %s is %q, not %q", name, got, want)
		}
	}
	if !file.Created.Equal(testTime) || file.OS != here.os || file.Architecture != here.arch {
		t.Errorf("it is for %s/%s, of %v", file.OS, file.Architecture, file.Created)
	}
}

// unpack writes the files of an image. For a plain user they all belong to that user.
func unpack(t *testing.T, img v1.Image, root string) {
	t.Helper()
	stream := mutate.Extract(img)
	defer stream.Close()
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		check(t, err)
		path := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			check(t, os.MkdirAll(path, 0o755))
		} else {
			text, err := io.ReadAll(r)
			check(t, err)
			check(t, os.MkdirAll(filepath.Dir(path), 0o755))
			check(t, os.WriteFile(path, text, 0o644))
		}
		check(t, os.Chmod(path, os.FileMode(h.Mode)))
		if os.Getuid() == 0 {
			check(t, os.Chown(path, h.Uid, h.Gid))
		}
	}
	for path := root; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		check(t, os.Chmod(path, 0o755)) // its user has to get there
	}
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

// container is what an engine would make of the image, without one: its root, user and environment, and nothing of the machine but the
// network.
type container struct {
	t      *testing.T
	root   string
	config v1.Config
	ports  []string // variables with free ports, once it was started
	serve  *exec.Cmd
	log    bytes.Buffer
	ended  chan error
}

// command is the entry point with arguments, as user 65532 or, where the test may not change users, in a user namespace.
func (c *container) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.config.Entrypoint[0], append(slices.Clone(c.config.Entrypoint[1:]), args...)...)
	cmd.Env = slices.Concat(c.config.Env, c.ports)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
	} else {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

// run runs a command of Curfew's to its end, which must be good.
func (c *container) run(args ...string) string {
	c.t.Helper()
	out, err := c.command(args...).Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		c.t.Fatalf("%v in the container: %v\n%s%s\n%s", args, err, out, exit.Stderr, &c.log)
	}
	return string(out)
}

// start runs the image's command until its health check is content.
func (c *container) start() {
	c.t.Helper()
	for _, variable := range []string{"AMQP", "HTTP", "OPS"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(c.t, err)
		defer l.Close()
		c.ports = append(c.ports, fmt.Sprintf("CURFEW_%s_ADDR=0.0.0.0:%d", variable, l.Addr().(*net.TCPAddr).Port))
		l.Close()
	}
	c.serve = c.command(c.config.Cmd...)
	c.serve.Stdout, c.serve.Stderr = &c.log, &c.log
	check(c.t, c.serve.Start())
	c.ended = make(chan error, 1)
	go func() { c.ended <- c.serve.Wait() }()
	c.eventually("the health check", c.config.Healthcheck.Test[2:]...)
}

// eventually runs a command until it ends well.
func (c *container) eventually(what string, args ...string) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); c.command(args...).Run() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.serve.Process.Kill()
			c.t.Fatalf("%s did not come\n%s", what, &c.log)
		}
	}
}

// stop sends the image's signal for it.
func (c *container) stop() {
	c.t.Helper()
	check(c.t, c.serve.Process.Signal(syscall.SIGTERM))
	if err := <-c.ended; err != nil {
		c.t.Errorf("it did not end cleanly: %v\n%s", err, &c.log)
	}
	if _, err := os.Stat(filepath.Join(c.root, "var/lib/curfew")); err != nil {
		c.t.Error(err)
	}
}
