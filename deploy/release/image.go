package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image makes the container image for the Linux targets, as an archive of an OCI layout. It is what the last stage of the Dockerfile says,
// without an engine: what that stage copies of the one before comes from here.
func (r *release) image(_ context.Context, all []target) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range all {
		if t.os != "linux" {
			continue
		}
		img, err := r.imageFor(t)
		if err != nil {
			return fmt.Errorf("image of %s: %w", t, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}}})
	}
	folder := filepath.Join(r.work, "image")
	l, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	err = l.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.number(),
		"io.containerd.image.name":          "docker.io/library/curfew:" + r.number(), // for docker load
	}))
	if err != nil {
		return err
	}
	names, err := walk(folder)
	if err != nil {
		return err
	}
	var files []file
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		files = append(files, file{name: filepath.ToSlash(name), mode: 0o644, text: text})
	}
	return written(r.name("image.tar"), func(w io.Writer) error { return writeTar(w, files, r.time) })
}

// imageFor is the image for one target.
func (r *release) imageFor(t target) (v1.Image, error) {
	stage, err := lastStage(filepath.Join(r.root, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	b := imageBuilder{release: r, target: t, image: mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), args: map[string]string{}}
	for _, c := range stage.Commands {
		if err := b.do(c); err != nil {
			return nil, err
		}
	}
	config, err := b.image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config = t.os, t.arch, b.config
	config.Created = v1.Time{Time: r.time.UTC()}
	return mutate.ConfigFile(b.image, config)
}

func lastStage(dockerfile string) (*instructions.Stage, error) {
	f, err := os.Open(dockerfile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tree, err := parser.Parse(f)
	if err != nil {
		return nil, err
	}
	stages, _, err := instructions.Parse(tree.AST, nil)
	if err != nil {
		return nil, err
	}
	last := &stages[len(stages)-1]
	if last.BaseName != "scratch" {
		return nil, fmt.Errorf("the last stage is from %s, not scratch", last.BaseName)
	}
	return last, nil
}

// imageBuilder carries out the instructions of a stage.
type imageBuilder struct {
	*release
	target target
	image  v1.Image
	config v1.Config
	args   map[string]string
}

func (b *imageBuilder) do(c instructions.Command) error {
	switch c := c.(type) {
	case *instructions.ArgCommand:
		for _, a := range c.Args {
			b.args[a.Key] = b.argument(a.Key)
		}
	case *instructions.LabelCommand:
		for _, l := range c.Labels {
			set(&b.config.Labels, l.Key, b.expand(l.Value))
		}
	case *instructions.EnvCommand:
		for _, e := range c.Env {
			b.config.Env = append(b.config.Env, e.Key+"="+b.expand(e.Value))
		}
	case *instructions.ExposeCommand:
		for _, port := range c.Ports {
			set(&b.config.ExposedPorts, port+"/tcp", struct{}{})
		}
	case *instructions.VolumeCommand:
		for _, volume := range c.Volumes {
			set(&b.config.Volumes, volume, struct{}{})
		}
	case *instructions.UserCommand:
		b.config.User = c.User
	case *instructions.StopSignalCommand:
		b.config.StopSignal = c.Signal
	case *instructions.HealthCheckCommand: // an extension of Docker's to the format
		b.config.Healthcheck = &v1.HealthConfig{Test: c.Health.Test, Interval: c.Health.Interval, Timeout: c.Health.Timeout, StartPeriod: c.Health.StartPeriod, Retries: c.Health.Retries}
	case *instructions.EntrypointCommand:
		b.config.Entrypoint = c.CmdLine
	case *instructions.CmdCommand:
		b.config.Cmd = c.CmdLine
	case *instructions.CopyCommand:
		return b.copy(c)
	default:
		return fmt.Errorf("what %s does is not known here", c.Name())
	}
	return nil
}

func set[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = value
}

// argument is what `docker build` gets for a release.
func (b *imageBuilder) argument(name string) string {
	switch name {
	case "VERSION":
		return b.version
	case "REVISION":
		return b.commit
	case "CREATED":
		return b.time.UTC().Format(time.RFC3339)
	}
	return ""
}

func (b *imageBuilder) expand(text string) string {
	return os.Expand(strings.Trim(text, `"`), func(name string) string { return b.args[name] })
}

// copy adds a layer with one file or folder, and the folders above it.
func (b *imageBuilder) copy(c *instructions.CopyCommand) error {
	if len(c.SourcePaths) != 1 {
		return fmt.Errorf("%s: more than one source", c)
	}
	user := 0
	if c.Chown != "" {
		uid, gid, _ := strings.Cut(c.Chown, ":")
		number, err := strconv.Atoi(uid)
		if err != nil || uid != gid {
			return fmt.Errorf("%s: the owner has to be a number, twice", c)
		}
		user = number
	}
	f, err := b.source(c.SourcePaths[0])
	if err != nil {
		return err
	}
	f.name, f.user = strings.Trim(c.DestPath, "/")+f.name, user
	if strings.HasSuffix(c.DestPath, "/") && !f.isFolder() {
		f.name = strings.Trim(c.DestPath, "/") + "/" + path.Base(c.SourcePaths[0])
	}
	var text bytes.Buffer
	if err := writeTar(&text, append(above(f.name), f), b.time); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}
	b.image, err = mutate.Append(b.image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: b.time.UTC()}, CreatedBy: c.String()}})
	return err
}

// above lists the folders that a file is in.
func above(name string) (folders []file) {
	parts := strings.Split(strings.Trim(name, "/"), "/")
	for i := 1; i < len(parts); i++ {
		folders = append(folders, file{name: strings.Join(parts[:i], "/") + "/", mode: 0o755})
	}
	return folders
}

// source is what the stage before has under a path. The name of a folder is a slash.
func (b *imageBuilder) source(name string) (f file, err error) {
	switch name {
	case "/out/curfew":
		f.mode = 0o755
		f.text, err = os.ReadFile(b.binaries[b.target])
		return f, err
	case "/out/var/lib/curfew":
		return file{name: "/", mode: 0o755}, nil
	case "/etc/ssl/certs/ca-certificates.crt":
		return file{mode: 0o644, text: certificates()}, nil
	}
	return f, fmt.Errorf("there is no %s for the image", name)
}

// certificates are the root certificates that Mozilla trusts.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	return text.Bytes()
}
