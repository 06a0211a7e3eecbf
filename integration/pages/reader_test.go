package pages

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

// blockLimit is how long a block may take.
const blockLimit = 90 * time.Second

var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "curfew-pages-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) { return testenv.Curfew(scratch) })

func mustBuild(t testing.TB) string {
	t.Helper()
	binary, err := build()
	require.NoError(t, err)
	return binary
}

// cleanEnvironment is this process's own without settings of Curfew's.
func cleanEnvironment() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CURFEW_") && !strings.HasPrefix(variable, "OTEL_") {
			env = append(env, variable)
		}
	}
	return env
}

// reader is somebody who follows a page: a folder, a terminal, and a Curfew that runs in another one.
type reader struct {
	t      *testing.T
	dir    string            // of the reader's own files
	folder string            // of the page
	ports  map[string]string // of the page, each with the one that it is here
	env    []string
	curfew *exec.Cmd
	log    bytes.Buffer

	shell   *exec.Cmd
	typed   io.WriteCloser
	done    *bufio.Scanner // a line for each block that has ended
	blocks  int
	limit   time.Duration // of a block
	serving string        // where the program curfew leaves its environment when it is to serve
}

// newReader has Curfew running with its defaults, but for ports and folder, and a shell in which nothing has been typed.
func newReader(t *testing.T) *reader {
	t.Helper()
	dir := t.TempDir()
	r := &reader{t: t, dir: dir, folder: filepath.Join(dir, "page"), ports: map[string]string{}, limit: blockLimit, serving: filepath.Join(dir, "serving")}
	programs := filepath.Join(dir, "programs")
	for _, folder := range []string{r.folder, programs, filepath.Join(r.folder, "bin")} {
		require.NoError(t, os.Mkdir(folder, 0o700))
	}
	goRoot, goCache, goModules := goVariables(t)
	r.env = []string{
		"PATH=" + programs + ":/usr/bin:/usr/sbin:/bin:/sbin:" + goRoot + "/bin:" + os.Getenv("PATH"), "HOME=" + r.folder, "LANG=C.UTF-8",
		"CURFEW_AMQP_ADDR=" + r.here("127.0.0.1:5672"), "CURFEW_HTTP_ADDR=" + r.here("127.0.0.1:15672"), "CURFEW_OPS_ADDR=" + r.here("127.0.0.1:15692"),
		"CURFEW_DATA_DIR=" + filepath.Join(r.folder, "curfew-data"), // the default, as seen from there
		"GOCACHE=" + goCache, "GOMODCACHE=" + goModules, "GOFLAGS=" + os.Getenv("GOFLAGS") + " -mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0",
	}
	// serve, which would not end, notes what it was started with. serve starts it.
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = serve ] && { echo \"$@\" >%s.args; exec env -0 >%s; }\nexec %s \"$@\"\n", r.serving, r.serving, mustBuild(t))
	for _, name := range []string{filepath.Join(programs, "curfew"), filepath.Join(r.folder, "bin/curfew")} {
		require.NoError(t, os.WriteFile(name, []byte(script), 0o700))
	}
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Join(absolute, "deploy"), filepath.Join(r.folder, "deploy")))
	r.installClients(absolute)
	t.Cleanup(r.leave)
	r.serve(r.env, "serve")
	r.openShell()
	return r
}

var goVariables = func() func(t *testing.T) (goRoot, cache, modules string) {
	get := sync.OnceValues(func() (string, error) {
		out, err := exec.Command("go", "env", "GOROOT", "GOCACHE", "GOMODCACHE").Output()
		return string(out), err
	})
	return func(t *testing.T) (goRoot, cache, modules string) {
		out, err := get()
		require.NoError(t, err)
		lines := strings.Split(out, "\n")
		return lines[0], lines[1], lines[2]
	}
}()

// installClients puts the clients of Debian and npm where a page's pip, npm, composer, mvn and go get would have.
func (r *reader) installClients(repository string) {
	write := func(name, text string) {
		require.NoError(r.t, os.MkdirAll(filepath.Dir(filepath.Join(r.folder, name)), 0o700))
		require.NoError(r.t, os.WriteFile(filepath.Join(r.folder, name), []byte(text), 0o600))
	}
	write("package.json", "{}\n")
	write("vendor/autoload.php", "<?php require_once 'PhpAmqpLib/autoload.php';\n")
	require.NoError(r.t, os.Symlink(filepath.Join(repository, ".cache/node/node_modules"), filepath.Join(r.folder, "node_modules")))
	for _, jar := range []string{"amqp-client.jar", "slf4j-api.jar", "slf4j-nop.jar", "junit-jupiter-api.jar", "junit-jupiter-engine.jar", "junit-platform-commons.jar",
		"junit-platform-console.jar", "junit-platform-engine.jar", "junit-platform-launcher.jar", "junit-platform-reporting.jar", "opentest4j.jar", "opentest4j-reporting-events.jar",
		"opentest4j-reporting-schema.jar", "apiguardian-api.jar", "picocli.jar"} {
		require.NoError(r.t, os.Symlink("/usr/share/java/"+jar, filepath.Join(r.folder, jar)))
	}
	module, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(r.t, err)
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	require.NoError(r.t, err)
	write("go.mod", strings.Replace(string(module), "module curfew", "module page", 1)) // the clients are among what it requires
	write("go.sum", string(sums))
}

// address is one on this machine, in a URL or as two arguments of a program.
var address = regexp.MustCompile(`\b((?:127\.0\.0\.1|localhost|0\.0\.0\.0)(?::|['"], *))(\d+)\b`)

// here is a text of the page with the ports and folders that stand for the page's.
func (r *reader) here(text string) string {
	text = address.ReplaceAllStringFunc(text, func(match string) string {
		parts := address.FindStringSubmatch(match)
		if r.ports[parts[2]] == "" {
			addr := testenv.FreeAddr()
			if parts[2] == "6379" {
				addr = testenv.StartRedis(r.t).Addr
			}
			_, r.ports[parts[2]], _ = net.SplitHostPort(addr)
		}
		return parts[1] + r.ports[parts[2]]
	})
	return strings.NewReplacer("/var/lib/curfew", r.folder+"/curfew-data", "/etc/curfew", r.folder+"/etc").Replace(text)
}

// serve starts Curfew with an environment and arguments, in place of the one that runs.
func (r *reader) serve(env []string, args ...string) {
	r.t.Helper()
	r.stopCurfew()
	if slices.Contains(args, "manual") { // no folder is chosen: the default is not used
		env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "CURFEW_DATA_DIR=") })
	}
	r.curfew = exec.Command(mustBuild(r.t), args...)
	r.curfew.Env, r.curfew.Dir = env, r.folder
	r.curfew.Stdout, r.curfew.Stderr = &r.log, &r.log
	r.curfew.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // an aborted test leaves nothing behind
	require.NoError(r.t, r.curfew.Start())
	var ops string
	for _, variable := range env {
		if value, is := strings.CutPrefix(variable, "CURFEW_OPS_ADDR="); is {
			ops = value
		}
	}
	require.Eventually(r.t, func() bool {
		response, err := http.Get("http://" + ops + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 10*time.Millisecond, "curfew is not ready")
}

func (r *reader) stopCurfew() {
	if r.curfew == nil {
		return
	}
	_ = r.curfew.Process.Signal(syscall.SIGTERM)
	if err := r.curfew.Wait(); err != nil {
		r.t.Errorf("curfew did not end cleanly: %v", err)
	}
	r.curfew = nil
}

func (r *reader) openShell() {
	r.shell = exec.Command("sh")
	r.shell.Env, r.shell.Dir = r.env, r.folder
	r.shell.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	r.begin()
}

// begin starts the shell.
func (r *reader) begin() {
	typed, err := r.shell.StdinPipe()
	require.NoError(r.t, err)
	out, err := r.shell.StdoutPipe()
	require.NoError(r.t, err)
	r.shell.Stderr = r.shell.Stdout
	r.typed, r.done = typed, bufio.NewScanner(out)
	require.NoError(r.t, r.shell.Start())
	_, err = io.WriteString(r.typed, "set -eu\n")
	require.NoError(r.t, err)
}

// leave ends all that the reader has started.
func (r *reader) leave() {
	if r.shell != nil {
		r.typed.Close()
		_ = syscall.Kill(-r.shell.Process.Pid, syscall.SIGKILL)
		_ = r.shell.Wait()
	}
	r.stopCurfew()
	if r.t.Failed() {
		log := r.log.String()
		r.t.Logf("curfew's log:\n%s", log[max(0, len(log)-4000):])
	}
}

// save writes a file of the page.
func (r *reader) save(name, text string) {
	name = filepath.Join(r.folder, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(r.t, os.WriteFile(name, []byte(r.here(text)), 0o600))
}

// run types commands, waits until they have ended and returns what they have printed. A command that fails ends the shell, and so the page.
func (r *reader) run(commands string) (string, error) {
	r.blocks++
	script, out := filepath.Join(r.dir, fmt.Sprintf("%d.sh", r.blocks)), filepath.Join(r.dir, fmt.Sprintf("%d.out", r.blocks))
	require.NoError(r.t, os.WriteFile(script, []byte(r.here(commands)+"\n"), 0o600))
	if _, err := fmt.Fprintf(r.typed, ". %s >%s 2>&1 </dev/null; echo done\n", script, out); err != nil {
		return "", err
	}
	late := time.AfterFunc(r.limit, func() { _ = syscall.Kill(-r.shell.Process.Pid, syscall.SIGKILL) })
	ended := r.done.Scan()
	inTime := late.Stop()
	printed, err := os.ReadFile(out)
	switch {
	case err != nil:
		return "", err
	case !inTime:
		return string(printed), fmt.Errorf("it has not ended after %v", r.limit)
	case !ended:
		return string(printed), errors.New("a command failed")
	}
	return string(printed), r.servedAgain()
}

// servedAgain starts Curfew as the last block has, if it has.
func (r *reader) servedAgain() error {
	env, err := os.ReadFile(r.serving)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	args, err := os.ReadFile(r.serving + ".args")
	if err != nil {
		return err
	}
	r.serve(strings.Split(strings.TrimRight(string(env), "\x00"), "\x00"), strings.Fields(string(args))...)
	return os.Remove(r.serving)
}
