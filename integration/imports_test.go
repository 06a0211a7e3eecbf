package integration

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "curfew"

// rooms says which of our packages each package may import: downward, and no other. What is under integration stands above all of them.
// Test files are not looked at; they may reach anywhere.
var rooms = map[string][]string{
	"broker/access":          {"broker/pattern"},
	"broker/amqp":            {},
	"broker/certs":           {},
	"broker/certs/certstest": {},
	"broker/exchange":        {"broker/amqp"},
	"broker/pattern":         {},
	"broker/policy":          {"broker/pattern"},
	"broker/queue":           {},
	"broker/store":           {},
	"broker/memory":          {},
	"broker":                 {"broker/access", "broker/amqp", "broker/exchange", "broker/memory", "broker/policy", "broker/queue", "broker/store"},
	"broker/deadletters":     {"broker", "broker/access", "broker/amqp", "broker/pattern", "broker/queue"},
	"broker/definitions":     {"broker", "broker/access", "broker/amqp", "broker/policy"},
	"broker/management":      {"broker", "broker/access", "broker/amqp", "broker/deadletters", "broker/definitions", "broker/memory", "broker/pattern", "broker/policy", "broker/queue", "broker/server"},
	"broker/server":          {"broker", "broker/access", "broker/amqp", "broker/certs", "broker/memory", "broker/queue"}, // of the queue only the identity of a message

	"scheduler":            {},
	"scheduler/memstore":   {"scheduler"},
	"scheduler/redisstore": {"scheduler"},
	"scheduler/storetest":  {"scheduler"},
	"monitor":              {"scheduler", "scheduler/memstore", "scheduler/redisstore", "monitor/alert", "monitor/forecast"},
	"monitor/alert":        {},
	"monitor/forecast":     {},
	"monitor/audit":        {},
	"monitor/dashboard":    {"monitor", "monitor/alert", "monitor/audit"},
	"monitor/embedded":     {"monitor", "monitor/audit", "monitor/forecast", "monitor/telemetry", "scheduler", "broker"},
	"monitor/telemetry":    {},
	"cmd/curfew/inject":    {},
	"cmd/curfew/load":      {"broker/amqp"}, // a client of any broker: of ours it knows the codec alone
	"cmd/curfew":           everyRoom,
}

var everyRoom = []string{"*"}

// bans are imports a package must not have, ours or another's, each with its reason. A ban covers the import's subfolders.
var bans = []struct {
	room    string
	imports []string
	reason  string
}{
	{"broker/queue", []string{"os", "net", "sync", "log", "time", "context", "go.uber.org/zap"},
		"the queue is a pure state machine: time comes in as a parameter, consequences go out, so a model and a fuzzer can drive it"},
	{"broker/access", []string{"os", "sync", "log", "context", "go.uber.org/zap"},
		"who may do what is computed from values: the broker keeps them, under its lock"},
	{"broker/exchange", []string{"os", "net", "sync", "log", "time", "context", "go.uber.org/zap"},
		"routing is pure: the registry above holds the lock"},
	{"broker/amqp", []string{"os", "net", "sync", "log", "io", "go.uber.org/zap"},
		"the codec turns bytes into values and back: connections own the reading and writing"},
	{"broker", []string{"curfew/monitor", "curfew/scheduler", "github.com/redis"},
		"the broker is the truth and works alone: whatever watches deadlines sees it through a feed"},
	{"broker/server", []string{"curfew/monitor", "curfew/scheduler", "github.com/redis"},
		"the broker is the truth and works alone: whatever watches deadlines sees it through a feed"},
	{"broker/management", []string{"curfew/monitor", "curfew/scheduler", "github.com/redis", "curfew/broker/store"},
		"the API is a view on the broker and its clients: whatever watches deadlines has paths of its own"},
	{"broker/store", []string{"curfew/monitor", "curfew/scheduler", "github.com/redis", "net"},
		"what the journal promises may not depend on another machine"},
	{"broker", []string{"github.com/kelseyhightower/envconfig"},
		"only the command reads the environment; packages take an Options struct"},
	{"scheduler", []string{"curfew/broker", "github.com/redis"},
		"a schedule is deadlines and identities: it knows no message, and a Store is behind an interface"},
	{"scheduler/memstore", []string{"github.com/redis", "net"},
		"the in-process index is what fires while Redis is away"},
	{"scheduler/redisstore", []string{"curfew/broker", "curfew/monitor"},
		"a Store keeps shadows; what they mean is decided above"},
	{"monitor", []string{"curfew/broker"},
		"the monitor proposes to any Primary: our broker is one, an outside RabbitMQ may be another"},
	{"cmd/curfew", []string{"curfew/integration", "curfew/scheduler/storetest", "curfew/broker/certs/certstest"},
		"what tests are made of stays out of the binary"},
	{"monitor/forecast", []string{"os", "net", "sync", "log", "time", "context", "go.uber.org/zap"},
		"a forecast is arithmetic: what it says can be held against a simulated queue"},
	{"monitor/dashboard", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"pages show what they are handed, and of a broker through a narrow interface: the command makes it of the bundled one"},
	{"monitor/audit", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"a record of what others say has happened, readable without them"},
	{"monitor/telemetry", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"it sends what others hand over"},
	{"monitor/alert", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"an alert is told from what the monitor hands over"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

// TestImportDirections: the rooms import downward only, and the pure ones nothing that reads a clock, a lock or a socket.
// A permission that no package uses is one too many.
func TestImportDirections(t *testing.T) {
	used := map[string]bool{}
	for _, pkg := range listPackages(t) {
		name := strings.TrimPrefix(pkg.ImportPath, module+"/")
		allowed, known := rooms[name]
		if within(name, "integration") {
			allowed, known = everyRoom, true
		}
		if !known {
			t.Errorf("package %s is in no room: add it to the table with what it may import", name)
			continue
		}
		for _, path := range pkg.Imports {
			inner, ours := strings.CutPrefix(path, module+"/")
			used[name+" imports "+inner] = true
			if ours && !slices.Contains(allowed, "*") && !slices.Contains(allowed, inner) {
				t.Errorf("%s imports %s; it may import %v", name, inner, allowed)
			}
			for _, ban := range bans {
				if ban.room == name && slices.ContainsFunc(ban.imports, func(b string) bool { return within(path, b) }) {
					t.Errorf("%s imports %s: %s", name, path, ban.reason)
				}
			}
		}
	}
	for name, allowed := range rooms {
		for _, inner := range allowed {
			if inner != "*" && !used[name+" imports "+inner] {
				t.Errorf("%s may import %s and does not: take it out of the table", name, inner)
			}
		}
	}
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

func listPackages(t *testing.T) (packages []goPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	}
	check(t, err)
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg goPackage
		if err := decoder.Decode(&pkg); err == io.EOF {
			return packages
		} else {
			check(t, err)
		}
		packages = append(packages, pkg)
	}
}
