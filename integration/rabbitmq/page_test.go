package rabbitmq

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/lease"
	"curfew/scheduler/redisstore"
)

const page = "../../docs/beside-rabbitmq.md"

// section returns the text below a heading of the page.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	check(t, err)
	_, after, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found, "the page has no section %s", heading)
	below, _, _ := strings.Cut(after, "\n## ")
	return below
}

// serveAsWritten runs commands of a page that end in curfew serve, with the addresses of this test in place of those of the page.
func serveAsWritten(t *testing.T, commands string) *replica {
	t.Helper()
	path, err := binary()
	check(t, err)
	r := &replica{t: t, api: testenv.FreeAddr(), ops: testenv.FreeAddr(), log: new(testenv.Log)}
	for page, own := range map[string]string{"127.0.0.1:15673": r.api, "127.0.0.1:15693": r.ops} {
		require.Contains(t, commands, page)
		commands = strings.ReplaceAll(commands, page, own)
	}
	r.cmd = command(r.log, []string{"PATH=" + filepath.Dir(path) + ":" + os.Getenv("PATH")}, "sh", "-c", "set -eu\n"+commands)
	check(t, r.cmd.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Curfew's log:\n%s", r.log.Tail(6000))
		}
		end(r.cmd)
	})
	return r
}

// TestFirstSteps runs the commands of the first steps of each page, one after another, in a new virtual host / for each page.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	n := loneNode(t)
	for _, p := range []struct {
		name  string
		first func(*testing.T, *node)
	}{{"beside", fiveMinutes}, {"delays", delaysPage}, {"retries", retriesPage}} {
		n.api(t, http.MethodDelete, "vhosts/%2F", nil, nil)
		n.api(t, http.MethodPut, "vhosts/%2F", nil, nil)
		n.api(t, http.MethodPut, "permissions/%2F/guest", map[string]string{"configure": ".*", "write": ".*", "read": ".*"}, nil)
		t.Run(p.name, func(t *testing.T) { p.first(t, n) })
	}
}

func fiveMinutes(t *testing.T, n *node) {
	curfew, err := binary()
	check(t, err)
	here := strings.NewReplacer("127.0.0.1:5672", n.addr, "http://127.0.0.1:15672", n.http)
	var steps []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section(t, "Five minutes: a retry queue"), -1) {
		steps = append(steps, here.Replace(block[1]))
	}
	require.Len(t, steps, 7, "steps")
	folder := t.TempDir()
	try := func(steps ...string) (string, error) {
		cmd := exec.Command("sh", "-c", "set -eu\n"+strings.Join(steps, "\n"))
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), n.env...)
		cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(curfew)+":"+filepath.Dir(tool("rabbitmqctl"))+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	run := func(steps ...string) string {
		out, err := try(steps...)
		require.NoError(t, err, "%s\n%s", out, strings.Join(steps, "\n"))
		return out
	}
	require.Regexp(t, `(?m)^retry +quorum .* keep +kept `, run(steps[:3]...))

	// The terminal of the first steps still has the variables that they exported.
	exported := regexp.MustCompile(`(?m)^ *export .*$`).FindAllString(strings.Join(steps[:3], ""), -1)
	r := serveAsWritten(t, strings.Join(append(exported, steps[3]), "\n"))
	look := strings.ReplaceAll(steps[4], "127.0.0.1:15673", r.api)
	shows := func(row string) func() bool {
		return func() bool {
			out, err := try(look)
			return err == nil && regexp.MustCompile(`(?m)^retry +quorum +keep +keeping +\S+ +`+row).MatchString(out)
		}
	}
	eventually(t, answerLimit, "the queue to be kept", shows("0 "))
	api, _, _ := strings.Cut(steps[5], "\n") // the terminal still has it
	run(steps[5])
	eventually(t, answerLimit, "the message to be back", func() bool { return strings.Contains(run(api, steps[6]), `"payload":"soon"`) })
	require.NotContains(t, run(api, steps[6]), `"payload":"later"`)
	eventually(t, answerLimit, "the other one to be held", shows("1 "))
}

// TestPageNamesEveryRefusal: the page has each reason for which a queue is not kept, and no other.
func TestPageNamesEveryRefusal(t *testing.T) {
	reasons := map[string]bool{}
	source, err := os.ReadFile("../../monitor/rabbitmq/cluster/decide.go")
	check(t, err)
	for _, match := range regexp.MustCompile(`Code += "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		reasons[match[1]] = match[1] != "by_rule"
	}
	require.Greater(t, len(reasons), 15)
	named := map[string]bool{"by_rule": false}
	text := section(t, "What is refused")
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(text, -1) {
		for _, code := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			named[code[1]] = true
		}
	}
	for _, code := range regexp.MustCompile("pointless: `(\\w+)`.* `(\\w+)`").FindStringSubmatch(text)[1:] {
		named[code] = true
	}
	require.Equal(t, reasons, named)
}

// TestPageNamesTheRightsInRedis: with the rights on the page, a Redis user may do everything that Curfews do there.
func TestPageNamesTheRightsInRedis(t *testing.T) {
	text := section(t, "Replicas and Redis")
	rights := regexp.MustCompile("`(\\+get [^`]*)` on\\s+keys\\s+`(~[^`]*)`").FindStringSubmatch(text)
	require.NotNil(t, rights, text)
	r := testenv.StartRedis(t)
	rule := []any{"ACL", "SETUSER", "curfew", "on", ">secret", rights[2]}
	for _, right := range strings.Fields(rights[1]) {
		rule = append(rule, right)
	}
	check(t, r.Client.Do(t.Context(), rule...).Err())
	client, err := redisstore.NewClient("redis://curfew:secret@" + r.Addr)
	check(t, err)
	t.Cleanup(func() { client.Close() })
	require.ErrorContains(t, client.FlushDB(t.Context()).Err(), "NOPERM")

	group := lease.NewGroup(client, lease.Space{VHost: "/"}, "one")
	_, err = group.Beat(t.Context(), "report")
	check(t, err)
	_, err = group.SetPause(t.Context(), lease.Paused)
	check(t, err)
	check(t, group.Leave(t.Context()))

	one := lease.New(client, lease.Space{VHost: "/"}, "q", "one")
	_, held, err := one.Acquire(t.Context())
	check(t, err)
	require.True(t, held)
	_, err = one.Holder(t.Context())
	check(t, err)
	check(t, one.Release(t.Context()))

	shadows := lease.NewShadows(client, lease.Space{VHost: "/"}, "q", false, func() time.Duration { return 0 }, zap.NewNop())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- shadows.Run(ctx) }()
	shadows.Put([]keeper.Shadow{{Fingerprint: 1, Deadline: deadline.At(time.Now())}})
	eventually(t, answerLimit, "the deadline to be written", func() bool {
		all, err := shadows.Load(t.Context())
		check(t, err)
		return len(all) == 1
	})
	check(t, r.Client.FlushDB(t.Context()).Err())
	select {
	case <-shadows.Lost(): // it may look whether Redis has all
	case <-time.After(answerLimit):
		t.Error("nobody noticed that Redis lost everything")
	}
	stop()
	check(t, <-ended)
}

// steps are the commands of a page's section Try it, with the addresses of a node in place of those of the page.
type steps struct {
	t      *testing.T
	all    []string
	folder string
}

func stepsOf(t *testing.T, n *node, page string) *steps {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	check(t, err)
	_, after, _ := strings.Cut(string(text), "\n## Try it\n")
	below, _, _ := strings.Cut(after, "\n## ")
	here := strings.NewReplacer("127.0.0.1:5672", n.addr, "http://127.0.0.1:15672", n.http, "--rabbitmq-version 3.10", "--rabbitmq-version "+version)
	s := &steps{t: t, folder: t.TempDir()}
	for _, block := range regexp.MustCompile("(?s)   ```sh\n(.*?)```").FindAllStringSubmatch(below, -1) {
		s.all = append(s.all, here.Replace(strings.ReplaceAll("\n"+block[1], "\n   ", "\n")))
	}
	return s
}

// run runs commands in the folder of the page's reader.
func (s *steps) run(commands ...string) string {
	s.t.Helper()
	curfew, err := binary()
	check(s.t, err)
	cmd := exec.Command("sh", "-c", "set -eu\n"+strings.Join(commands, "\n"))
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(curfew)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s\n%s", out, commands)
	return string(out)
}

func delaysPage(t *testing.T, n *node) {
	s := stepsOf(t, n, "rabbitmq-delays.md")
	require.Len(t, s.all, 4, "steps")
	s.run(s.all[0])
	r := serveAsWritten(t, s.all[1])
	eventually(t, answerLimit, "the queue to be held", func() bool { return r.queue("orders.delay").CaughtUp })
	s.run(s.all[2])
	look := strings.ReplaceAll(s.all[3], "127.0.0.1:15673", r.api)
	api, _, _ := strings.Cut(strings.TrimSpace(s.all[2]), "\n") // the terminal still has it
	eventually(t, answerLimit, "soon to be delivered", func() bool { return r.queue("orders.delay").Held == 1 })
	require.Contains(t, s.run(api, look), "eu.new")
	commands := strings.SplitAfter(strings.TrimSpace(look), "\n")
	eventually(t, answerLimit, "all to be there", func() bool {
		all := s.run(api, commands[len(commands)-1])
		return strings.Contains(all, `"payload":"now"`) && strings.Contains(all, `"payload":"soon"`) && strings.Contains(all, `"payload":"later"`)
	})
}

func retriesPage(t *testing.T, n *node) {
	s := stepsOf(t, n, "rabbitmq-retries.md")
	require.Len(t, s.all, 5, "steps")
	s.run(s.all[0])
	s.run(s.all[1])
	r := serveAsWritten(t, "cd "+s.folder+"\n"+s.all[2])
	eventually(t, answerLimit, "the queue to be held", func() bool { return r.queue(waitsIn("jobs")).CaughtUp })
	require.Contains(t, s.run(s.all[3]), "to ann")
	again := strings.NewReplacer("127.0.0.1:15673", r.api, "list retry.delay", "list "+waitsIn("jobs")).Replace(s.all[4])
	api, function, _ := strings.Cut(strings.TrimSpace(s.all[3]), "\n")
	at := strings.Index(function, "fail() ")
	require.Regexp(t, `(?s)to ann.*ann +jobs .* jobs +`, s.run(api, strings.TrimSuffix(strings.TrimSpace(function[at:]), "\nfail"), again))
}
