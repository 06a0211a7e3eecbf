package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// coldVariable, if it is set, has TestNewcomer build Curfew and all that it needs from nothing, and holds that to the two limits, which are for two quiet
// cores. Otherwise it has the build cache of this machine: to compile everything again takes a seventh of all the time of make test.
const (
	coldVariable    = "PAGES_COLD"
	firstDeadLetter = 3 * time.Minute // from git clone on
	firstProcessor  = 2 * firstDeadLetter
)

// bareFirst are the pages that somebody follows who has the programs of bare and nothing else: README, the quick start, its next steps.
var bareFirst = []string{"README.md", "docs/quick-start/README.md", "docs/quick-start/go.md", "docs/message-times.md", "docs/dead-letters.md", "docs/policies.md",
	"docs/recipes/at-risk.md", "docs/management.md"}

// bare are the programs of a machine on which somebody tries Curfew: Go is beside them.
var bare = strings.Fields("sh make git curl jq awk cat cp cut date dirname env grep head ls mkdir mv rm sed seq sleep sort tail touch tr uname wc")

// TestNewcomer clones Curfew into a file system with little more than Go, make, git and a shell, without a network, and does what the first
// pages say on one Curfew, in the order of reading.
func TestNewcomer(t *testing.T) {
	r := bareReader(t)
	start, first := time.Now(), time.Duration(0)
	do := func(commands string) string {
		t.Helper()
		out, err := r.run(commands)
		require.NoError(t, err, "%s\n%s", commands, out)
		return out
	}
	do("git clone --quiet /source curfew; cd curfew; PATH=$PWD/bin:$PATH")
	spent := do("make build; times") // make run does that first
	do("make run >../curfew.log 2>&1 & until curfew healthcheck >/dev/null 2>&1; do sleep 0.1; done")
	for _, name := range bareFirst {
		i := slices.IndexFunc(all(t), func(p *Page) bool { return p.Path == name })
		require.GreaterOrEqual(t, i, 0, name)
		plan := planOf(t, all(t)[i])
		for i, s := range plan {
			switch serves := strings.Contains(s.block.Text, "curfew serve"); {
			case strings.HasPrefix(s.block.Text, "go mod init"):
				plan[i].run = true // here is a copy of what the internet has
			case serves || s.block.Language == "python": // it runs already; there is no Python
				plan[i].run = false
			}
		}
		if name == "docs/quick-start/go.md" {
			do("mkdir ../example; cd ../example")
			r.folder = filepath.Join(r.folder, "../example")
		}
		r.follow(t, all(t)[i], plan)
		if name == "README.md" {
			first = time.Since(start)
		}
	}
	processor := processorOf(t, spent)
	t.Logf("the first dead letter came %v after git clone, the last page ended after %v; the build took %v of processor time",
		first.Round(time.Second), time.Since(start).Round(time.Second), processor.Round(time.Second))
	if os.Getenv(coldVariable) != "" {
		assert.Less(t, processor, firstProcessor, "to build")
		assert.Less(t, first, firstDeadLetter, "from git clone to the first dead letter")
	}
}

// processorOf is the processor time of what a shell has waited for, as its command times prints it.
func processorOf(t *testing.T, times string) (sum time.Duration) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(times), "\n")
	for _, match := range regexp.MustCompile(`(\d+)m([\d.]+)s`).FindAllStringSubmatch(lines[len(lines)-1], -1) {
		minutes, err := strconv.Atoi(match[1])
		require.NoError(t, err)
		seconds, err := strconv.ParseFloat(match[2], 64)
		require.NoError(t, err)
		sum += time.Duration(minutes)*time.Minute + time.Duration(seconds*float64(time.Second))
	}
	require.Positive(t, sum, times)
	return sum
}

// bareRoot becomes a shell in a file system of its own. Its arguments are where that is, the folder that both see, Go, its modules, and the build
// cache to begin with, if any.
const bareRoot = `
mount --make-rprivate /
for folder in "$1" /proc /dev; do
	mkdir -p "$0$folder"
	mount --rbind "$folder" "$0$folder"
done
mkdir -p "$0/go" "$0/modules" "$0/source" "$0/tmp"
mount --bind "$2" "$0/go"
mount --bind "$3" "$0/modules"
mount --bind "$1/source.git" "$0/source"
if [ "$4" ]; then
	mkdir -p "$0$1/home/.cache/go-build"
	mount --bind "$4" "$0$1/home/.cache/go-build"
fi
ip link set lo up
exec chroot "$0" /usr/bin/env -i PATH=/go/bin:/usr/bin:/bin HOME="$1/home" LANG=C.UTF-8 CGO_ENABLED=0 GOTOOLCHAIN=local GOPROXY=file:///modules GOSUMDB=off \
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' sh -c 'cd "$HOME" && exec sh'
`

// bareReader has a shell in a bare root, and no Curfew yet. It takes root.
func bareReader(t *testing.T) *reader {
	t.Helper()
	own, dir := t.TempDir(), t.TempDir()
	r := &reader{t: t, dir: dir, folder: filepath.Join(dir, "home/curfew"), ports: map[string]string{}, limit: 20 * time.Minute, serving: filepath.Join(dir, "serving")}
	for _, port := range []string{"5672", "15672", "15692", "5673", "15673", "15693"} {
		r.ports[port] = port // it has a network of its own
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
	for _, name := range bare {
		path, err := exec.LookPath(name)
		require.NoError(t, err, "make deps installs what is missing")
		copyProgram(t, own, path, "/usr/bin/"+name)
	}
	require.NoError(t, os.Symlink("git", filepath.Join(own, "usr/bin/git-upload-pack")))
	require.NoError(t, os.Symlink("usr/bin", filepath.Join(own, "bin")))
	out, err := exec.Command("git", "-c", "safe.directory=*", "clone", "--quiet", "--bare", root, filepath.Join(dir, "source.git")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	goRoot, cache, modules := goVariables(t)
	if os.Getenv(coldVariable) != "" {
		cache = ""
	}

	r.shell = exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-euc", bareRoot, own, dir, goRoot, filepath.Join(modules, "cache/download"), cache)
	r.shell.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	r.begin()
	t.Cleanup(r.leave)
	return r
}

// copyProgram puts a program and the libraries that it needs into a root.
func copyProgram(t *testing.T, root, from, to string) {
	t.Helper()
	files := map[string]string{from: to}
	out, _ := exec.Command("ldd", from).Output() // fails for what is linked statically
	for _, match := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1) {
		files[match[1]] = match[1]
	}
	for from, to := range files {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, to)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, to), text, 0o755))
	}
}
