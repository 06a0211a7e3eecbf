package house

import (
	"slices"
	"strings"
	"testing"
)

// rooms says which of our packages each package may import: downward, and no other. What is under integration stands above all of them.
// Test files are not looked at; they may reach anywhere.
var rooms = map[string][]string{
	"broker/access":            {"broker/policy"},
	"broker/amqp":              {},
	"broker/amqp10":            {},
	"broker/exchange":          {"broker/amqp"},
	"broker/policy":            {"broker/amqp", "broker/exchange", "broker/queue"},
	"broker/queue":             {"broker/chunked"},
	"broker/servicebus":        {"broker", "broker/amqp", "broker/amqp10", "broker/exchange", "broker/policy"},
	"broker/servicebus/atom":   {"broker", "broker/amqp", "broker/exchange", "broker/operate", "broker/operate/admin", "broker/policy", "broker/servicebus"},
	"broker/store":             {},
	"broker/chunked":           {},
	"broker/memory":            {},
	"broker/internal/message":  {"broker/amqp", "broker/policy", "broker/queue"},
	"broker/internal/catalog":  {"broker/access", "broker/amqp", "broker/internal/message", "broker/policy", "broker/store"},
	"broker/internal/delivery": {"broker/amqp", "broker/memory", "broker/internal/message", "broker/policy", "broker/queue", "broker/store"},
	"broker/internal/topology": {"broker/access", "broker/amqp", "broker/exchange", "broker/internal/catalog", "broker/internal/delivery", "broker/internal/message", "broker/policy", "broker/queue", "broker/store"},
	"broker/internal/forward":  {"broker/amqp", "broker/memory", "broker/internal/delivery", "broker/internal/message", "broker/internal/topology", "broker/policy", "broker/queue", "broker/store"},
	"broker/deadline":          {},
	"broker":                   {"broker/internal/catalog", "broker/internal/delivery", "broker/internal/forward", "broker/internal/message", "broker/internal/topology", "broker/access", "broker/amqp", "broker/memory", "broker/policy", "broker/queue", "broker/store"},
	"broker/deadletters":       {"broker", "broker/access", "broker/amqp", "broker/policy", "broker/queue"},
	"broker/operate":           {"broker", "broker/access", "broker/amqp", "broker/deadletters", "broker/definitions", "broker/memory", "broker/policy", "broker/queue", "broker/server"},
	"broker/operate/messages":  {"broker", "broker/access", "broker/amqp", "broker/deadletters", "broker/definitions", "broker/operate", "broker/policy", "broker/queue"},
	"broker/operate/admin":     {"broker", "broker/access", "broker/deadletters", "broker/definitions", "broker/operate", "broker/policy", "broker/server"},
	"broker/definitions":       {"broker", "broker/access", "broker/amqp", "broker/policy"},
	"broker/management":        {"broker", "broker/access", "broker/amqp", "broker/definitions", "broker/memory", "broker/management/rest", "broker/operate", "broker/operate/messages", "broker/operate/admin", "broker/policy", "broker/queue", "broker/server", "broker/deadletters"},
	"broker/management/rest":   {"broker", "broker/access", "broker/amqp", "broker/deadletters", "broker/memory", "broker/operate", "broker/policy"},
	"broker/server":            {"broker", "broker/access", "broker/amqp", "broker/amqp10", "broker/policy", "broker/servicebus", "broker/server/internal/convert", "broker/server/internal/manage", "broker/server/internal/deliveries"},

	"broker/server/internal/convert":    {"broker/amqp", "broker/amqp10"},
	"broker/server/internal/manage":     {"broker", "broker/access", "broker/amqp", "broker/amqp10", "broker/server/internal/convert", "broker/policy", "broker/queue", "broker/servicebus"},
	"broker/server/internal/deliveries": {"broker", "broker/amqp", "broker/policy", "broker/queue", "broker/memory", "broker/chunked"}, // of the queue only the identity of a message

	"scheduler":              {},
	"scheduler/redisstore":   {"scheduler"},
	"monitor":                {"monitor/incident"},
	"monitor/schedule":       {"monitor", "monitor/incident", "monitor/printable", "scheduler"},
	"monitor/incident":       {"monitor/printable"},
	"monitor/printable":      {},
	"monitor/history":        {"monitor/printable"},
	"monitor/audit":          {},
	"monitor/changes":        {"broker/operate", "monitor/incident", "monitor/rabbitmq"},
	"cmd/internal/dashboard": {"broker/access", "broker/deadletters", "broker/operate", "broker/operate/messages", "cmd/internal/dashboard/internal/letters", "cmd/internal/dashboard/internal/overview", "cmd/internal/dashboard/internal/topology", "cmd/internal/dashboard/internal/ui", "monitor/audit", "monitor/changes", "monitor/history", "monitor/incident", "monitor/rabbitmq"}, // of access only values
	"monitor/telemetry":      {},

	"cmd/internal/dashboard/internal/overview": {"broker/operate", "broker/operate/messages", "cmd/internal/dashboard/internal/ui", "monitor", "monitor/changes", "monitor/history", "monitor/incident"},
	"cmd/internal/dashboard/internal/ui":       {"broker/amqp", "broker/operate", "monitor", "monitor/printable"},
	"cmd/internal/dashboard/internal/letters":  {"broker/amqp", "broker/deadletters", "broker/operate", "broker/operate/messages", "cmd/internal/dashboard/internal/ui", "monitor/printable"},
	"cmd/internal/dashboard/internal/topology": {"broker/access", "broker/operate", "broker/operate/admin", "cmd/internal/dashboard/internal/ui"}, // of access only values

	"monitor/rabbitmq":         {"monitor/printable", "monitor/rabbitmq/cluster", "monitor/rabbitmq/delay", "monitor/rabbitmq/keeper", "monitor/rabbitmq/lease", "monitor/rabbitmq/observe"},
	"monitor/rabbitmq/cluster": {},
	"monitor/rabbitmq/observe": {"monitor/rabbitmq/cluster"},
	"monitor/rabbitmq/plan":    {"monitor/rabbitmq/cluster", "monitor/rabbitmq/observe"},
	"monitor/rabbitmq/keeper":  {"monitor/rabbitmq/cluster"},
	"monitor/rabbitmq/delay":   {"monitor/rabbitmq/cluster", "monitor/rabbitmq/keeper"},
	"monitor/rabbitmq/lease":   {"monitor/rabbitmq/keeper"},

	"cmd/internal/reference": {},

	"cmd/internal/cli":      {"broker/access", "broker/deadletters", "broker/operate", "cmd/internal/settings", "monitor/printable"},
	"cmd/internal/queues":   {"broker/deadletters", "broker/operate", "broker/operate/admin", "broker/operate/messages", "cmd/internal/cli", "monitor/history", "monitor/incident", "monitor/printable"},
	"cmd/internal/settings": {"broker/policy", "broker/servicebus", "monitor/incident", "monitor/rabbitmq/cluster", "monitor/telemetry", "scheduler/redisstore"}, // of these only what checks a value
	"cmd/internal/node":     {"broker", "broker/access", "broker/amqp", "broker/deadletters", "broker/definitions", "broker/management", "broker/management/rest", "broker/memory", "broker/operate", "broker/operate/admin", "broker/policy", "broker/server", "broker/servicebus", "broker/servicebus/atom", "broker/store", "cmd/internal/settings", "monitor", "monitor/incident", "monitor/audit", "monitor/changes", "monitor/printable", "cmd/internal/dashboard", "monitor/rabbitmq", "monitor/rabbitmq/cluster", "monitor/schedule", "monitor/telemetry", "scheduler/redisstore", "monitor/history"},
	"cmd/internal/commands": {"broker/deadletters", "broker/definitions", "broker/operate", "broker/store", "cmd/internal/cli", "cmd/internal/queues", "cmd/internal/node", "cmd/internal/settings", "monitor/incident", "monitor/audit", "monitor/printable", "monitor/rabbitmq", "monitor/rabbitmq/cluster", "monitor/rabbitmq/plan"},
	"cmd/curfew":            {"cmd/internal/commands", "cmd/internal/node"},
}

var everyRoom = []string{"*"}

// importBans are imports a package must not have, ours or another's, each with its reason. A ban covers the import's subfolders.
var importBans = []struct {
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
	{"scheduler", []string{"github.com/redis", "net"},
		"a schedule is deadlines and identities, and its index is what fires while Redis is away"},
	{"scheduler/redisstore", []string{"curfew/broker", "curfew/monitor"},
		"a Store keeps shadows; what they mean is decided above"},
	{"monitor", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"what expired is reported the same whoever fires: beside RabbitMQ there is no schedule of ours"},
	{"monitor/schedule", []string{"curfew/broker"},
		"the scheduler proposes to any Primary: our broker is one, that of a test another"},
	{"cmd/internal/node", []string{"github.com/spf13/cobra"},
		"it runs the parts: the command line is read above it"},
	{"cmd/internal/dashboard", []string{"curfew/broker/server", "curfew/broker/store", "curfew/broker/management", "curfew/scheduler", "github.com/redis"},
		"a face asks, parses and draws: who may do what, and how it is done, is decided once for all faces, in broker/operate"},
	{"broker/operate", []string{"curfew/monitor", "curfew/scheduler", "github.com/redis", "net/http"},
		"an operation is the same by whatever face it is asked for: it knows none of them, and no deadline watcher"},
	{"monitor/audit", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"a record of what others say has happened, readable without them"},
	{"monitor/telemetry", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"it sends what others hand over"},
	{"monitor/rabbitmq/cluster", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"RabbitMQ is seen from outside, as any client sees it"},
	{"monitor/incident", []string{"curfew/broker", "curfew/scheduler", "github.com/redis"},
		"an alert is made of what the monitor hands over"},
}

// ground is the vocabulary of deadlines. It imports none of our packages, and each of them may import it: it is not in the table.
const ground = "broker/deadline"

// TestImportDirections: the rooms import downward only, and the pure ones nothing that reads a clock, a lock or a socket.
// A permission that no package uses is not kept.
func TestImportDirections(t *testing.T) {
	used := map[string]bool{}
	for _, f := range allGoFiles(t) {
		name := f.folder
		allowed, known := rooms[name]
		if within(name, "integration") {
			allowed, known = everyRoom, true
		}
		if within(name, "deploy/examples") || within(name, "deploy/release") { // modules of their own
			known = true
		}
		if f.test {
			continue
		}
		if !known {
			t.Errorf("package %s is in no room: add it to the table with what it may import", name)
			continue
		}
		for _, spec := range f.ast.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			inner, ours := strings.CutPrefix(path, module+"/")
			if inner == ground {
				continue
			}
			used[name+" imports "+inner] = true
			if ours && !slices.Contains(allowed, "*") && !slices.Contains(allowed, inner) {
				t.Errorf("%s imports %s; it may import %v", f.path, inner, allowed)
			}
			for _, ban := range importBans {
				if ban.room == name && slices.ContainsFunc(ban.imports, func(b string) bool { return within(path, b) }) {
					t.Errorf("%s imports %s: %s", f.path, path, ban.reason)
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
