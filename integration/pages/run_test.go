package pages

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// elsewhere are the pages whose blocks need more than a Curfew. They are parsed, and something else runs them.
var elsewhere = map[string]string{
	"docs/beside-rabbitmq.md":         "integration/rabbitmq, with RabbitMQ",
	"docs/rabbitmq-delays.md":         "integration/rabbitmq, with RabbitMQ",
	"docs/rabbitmq-retries.md":        "integration/rabbitmq, with RabbitMQ",
	"deploy/examples/retry/README.md": "integration/rabbitmq, with RabbitMQ",
	"docs/internals/contributing.md":  "whoever works on Curfew",
}

// here are programs that are run.
var here = strings.Fields(`curfew ./bin/curfew bin/curfew curl jq sh
	. [ : cat cd chmod cp cut echo env export false for getent grep head kill ls mkdir mv printf read rm sed seq set shift sleep sort tail tee test tr trap true umask uniq unset wait wc while
	java javac node openssl php python3 ruby redis-cli promtool amtool amqp-consume amqp-publish amqp-get base64 date yes`)

// notHere are programs that need what a test has not: another machine, the internet, a service manager. What is after a colon are the words
// of the program for which that holds, if it is not always.
var notHere = map[string][]string{
	"apt": nil, "apt-get": nil, "dpkg": nil, "dnf": nil, "rpm": nil, "brew": nil, "sudo": nil, "install": nil, "su": nil, "useradd": nil,
	"systemctl": nil, "journalctl": nil, "systemd-analyze": nil, "systemd-creds": nil, "chronyc": nil, "iostat": nil, "df": nil, "du": nil,
	"docker": nil, "podman": nil, "kubectl": nil, "helm": nil, "cosign": nil, "gh": nil, "git": nil, "make": nil,
	"pip": nil, "npm": nil, "gem": nil, "bundle": nil, "composer": nil, "mvn": nil, "dotnet": nil, "gpg": nil, "sha256sum": nil, "tar": nil, "wget": nil,
	"rabbitmqctl": nil, "rabbitmqadmin": nil, "rabbitmq-plugins": nil, "rsync": nil, "ssh": nil, "scp": nil,
	"go": {"get", "mod", "install", "vet"},
}

// whyNot says why a command is not run here; "" if it is. A command that is neither known to run nor not to is an error.
func whyNot(c Command, own map[string]bool) (reason string, err error) {
	if len(c.Words) == 0 || own[c.Words[0]] {
		return "", nil
	}
	name := c.Words[0]
	if strings.HasPrefix(name, "./curfew_") {
		return "it is in the archive of a release", nil
	}
	if words, known := notHere[name]; known && (words == nil || len(c.Words) > 1 && slices.Contains(words, c.Words[1])) {
		return name, nil
	}
	if slices.Contains(c.Words, "./integration/bench") {
		return "it takes long", nil
	}
	if !slices.Contains(here, name) && name != "go" {
		return "", fmt.Errorf("the program %q is in neither list of integration/pages/run_test.go: those that are run, and those that cannot be", name)
	}
	if filepath.Base(name) == "curfew" {
		return whyNotCurfew(c.Words[1:]), nil
	}
	for _, word := range c.Words[1:] {
		switch {
		case strings.HasPrefix(word, "https://") && !address.MatchString(word):
			return name + " asks another machine", nil
		case slices.Contains(changes, name) && strings.HasPrefix(word, "/") && !ownFolder.MatchString(word):
			return name + " changes this machine", nil
		}
	}
	return "", nil
}

// changes are programs that write or delete what they name, tee also for what a command's output goes to.
var (
	changes   = strings.Fields("chmod cp mkdir mv rm sed tee")
	ownFolder = regexp.MustCompile(`^(/dev/null$|/var/lib/curfew|/etc/curfew)`) // the reader has others in their place
)

// placeholder is a name in capitals, or an address that is not on this machine.
var placeholder = regexp.MustCompile(`^[A-Z][A-Z_]+$|^<.*>$|^\.\.\.$|^(https?|amqps?)://([^/@]*@)?[a-z]`)

// whyNotCurfew says why one of Curfew's commands is not run here.
func whyNotCurfew(words []string) string {
	for _, word := range words {
		switch {
		case slices.Contains([]string{"--watch", "-w", "--tail"}, word):
			return "it does not end"
		case placeholder.MatchString(strings.ReplaceAll(word, "localhost", "")):
			return word + " stands for something"
		}
	}
	if len(words) == 0 {
		return ""
	}
	return map[string]string{"demo": "it takes long", "rabbitmq": "it asks RabbitMQ", "store": "it reads the files of a Curfew that does not run"}[words[0]]
}

var counts struct{ shell, sessions, programs, parsed, texts, unchecked, marked atomic.Int32 }

// TestPages does what each page says, block after block. Curfew runs with its defaults.
func TestPages(t *testing.T) {
	t.Run("all", func(t *testing.T) {
		for _, page := range all(t) {
			t.Run(page.Path, func(t *testing.T) {
				t.Parallel()
				follow(t, page)
			})
		}
	})
	t.Logf("run: %d shell blocks, %d sessions with their output, %d programs; parsed: %d blocks, %d of them marked as not run; plain text: %d; neither run nor parsed (C#): %d",
		counts.shell.Load(), counts.sessions.Load(), counts.programs.Load(), counts.parsed.Load(), counts.marked.Load(), counts.texts.Load(), counts.unchecked.Load())
}

// newcomers read these pages, one after the other.
var newcomers = []string{"README.md", "docs/quick-start/python.md", "docs/message-times.md", "docs/recipes/at-risk.md", "docs/policies.md"}

// TestPath follows the pages of a newcomer on one Curfew, in the order of reading: what one page has made is in the way of no other.
func TestPath(t *testing.T) {
	r := newReader(t)
	for _, name := range newcomers {
		i := slices.IndexFunc(all(t), func(p *Page) bool { return p.Path == name })
		require.GreaterOrEqual(t, i, 0, name)
		page := all(t)[i]
		if plan := planOf(t, page); !t.Failed() {
			r.follow(t, page, plan)
		}
	}
}

// follow runs a page.
func follow(t *testing.T, page *Page) {
	plan := planOf(t, page)
	if t.Failed() || !slices.ContainsFunc(plan, func(s step) bool { return s.run }) {
		return
	}
	r := newReader(t)
	if usesOrders(page) {
		r.orders()
	}
	r.follow(t, page, plan)
}

func (r *reader) follow(t *testing.T, page *Page, plan []step) {
	for i, s := range plan {
		language := languages[s.block.Language]
		name := s.block.File
		if name == "" {
			name = language.file
		}
		if name != "" {
			r.save(name, s.block.Text)
		}
		if !s.run {
			continue
		}
		var err error
		var out string
		switch {
		case s.block.Language == "console":
			counts.sessions.Add(1)
			out, err = r.session(s.block.Text)
		case language.run != nil:
			counts.programs.Add(1)
			if startedLater(plan[i+1:], name) {
				continue
			}
			out, err = r.run("'" + strings.Join(append(slices.Clone(language.run), name), "' '") + "'")
		default:
			counts.shell.Add(1)
			out, err = r.run(s.block.Text)
		}
		if err != nil {
			t.Fatalf("%s:%d: %v (make deps installs the programs and clients that pages use)\n%s\nprinted\n%s", page.Path, s.block.Line, err, s.block.Text, out)
		}
	}
}

// step is a block and whether it is run.
type step struct {
	block Block
	run   bool
}

// planOf says what is run of a page. Shell blocks are parsed, and what they name of this repository exists.
func planOf(t *testing.T, page *Page) (plan []step) {
	variables, own := map[string]string{}, map[string]bool{}
	for _, block := range page.Blocks {
		s := step{block: block, run: languages[block.Language].run != nil}
		if block.Language == "sh" || block.Language == "console" {
			text := block.Text
			if block.Language == "console" {
				text = Typed(text)
			}
			script, err := ParseScript(text, variables)
			if err != nil {
				t.Errorf("%s:%d: %v", page.Path, block.Line, err)
				continue
			}
			maps.Copy(own, script.Functions)
			s.run = true
			for _, c := range script.Commands {
				reason, err := whyNot(c, own)
				if err != nil {
					t.Errorf("%s:%d: %v", page.Path, block.Line+c.Line-1, err)
				}
				s.run = s.run && reason == ""
				namesExist(t, fmt.Sprintf("%s:%d", page.Path, block.Line+c.Line-1), c)
			}
		}
		if block.NotRun != "" {
			counts.marked.Add(1)
		}
		if elsewhere[page.Path] != "" || strings.HasPrefix(page.Path, "deploy/runbooks/") || block.NotRun != "" {
			s.run = false
		}
		switch {
		case s.run:
		case block.Language == "text":
			counts.texts.Add(1)
		case block.Language == "csharp":
			counts.unchecked.Add(1)
		default:
			counts.parsed.Add(1)
		}
		plan = append(plan, s)
	}
	return plan
}

// namesExist: targets of make, and files below deploy, are there.
func namesExist(t *testing.T, where string, c Command) {
	t.Helper()
	if len(c.Words) == 0 {
		return
	}
	if c.Words[0] == "make" {
		makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
		require.NoError(t, err)
		for _, word := range c.Words[1:] {
			if !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") {
				assert.Regexp(t, `(?m)^`+regexp.QuoteMeta(word)+`:`, string(makefile), "%s: make has no target %s", where, word)
			}
		}
	}
	for _, word := range c.Words[1:] {
		if strings.HasPrefix(word, "deploy/") {
			_, err := os.Stat(filepath.Join(root, word))
			assert.NoError(t, err, where)
		}
	}
}

// startedLater reports whether a later block starts a program that was saved.
func startedLater(plan []step, name string) bool {
	return slices.ContainsFunc(plan, func(s step) bool {
		return (s.block.Language == "sh" || s.block.Language == "console") && strings.Contains(s.block.Text, name)
	})
}

var ownOrders = regexp.MustCompile(`declare queue orders\s|"name": ?"orders"`)

// usesOrders reports whether a page takes the queue orders for granted: it is there, and the page does not make it.
func usesOrders(page *Page) bool {
	used := false
	for _, block := range page.Blocks {
		here := strings.Contains(block.Text, "orders")
		if here && languages[block.Language].run != nil || ownOrders.MatchString(block.Text) {
			return false
		}
		used = used || here && languages[block.Language].check == nil
	}
	return used
}

// orders makes what pages are about that do not make anything themselves: a queue orders with two messages that wait, and three dead letters
// of it in orders.dead.
func (r *reader) orders() {
	out, err := r.run(`curfew declare queue orders.dead
		curfew declare queue orders --dlq orders.dead
		for n in 1 2 3; do curfew publish orders '{"order": '$n', "customer": {"id": 7}}' --ttl 1ms; done
		until [ "$(curfew queue show orders.dead -o json | jq .messages)" = 3 ]; do sleep 0.1; done
		for n in 4 5; do curfew publish orders '{"order": '$n', "customer": {"id": 7}}' --ttl 1h; done`)
	require.NoError(r.t, err, out)
}

// session types the commands of a session one after the other. What the page shows as their output comes, in this order.
func (r *reader) session(text string) (out string, err error) {
	for _, part := range regexp.MustCompile(`(?m)^\$ `).Split(text, -1)[1:] {
		var commands, shown []string
		for i, line := range strings.Split(strings.TrimRight(part, "\n"), "\n") {
			if more, is := strings.CutPrefix(line, "> "); i == 0 || is && len(shown) == 0 {
				commands = append(commands, more)
				continue
			}
			shown = append(shown, line)
		}
		out, err = r.run(strings.Join(commands, "\n"))
		if err != nil {
			return out, err
		}
		if line := missing(out, shown); line != "" {
			return out, fmt.Errorf("%s does not print, where the page has it: %s", commands[0], line)
		}
	}
	return out, nil
}

var (
	number = regexp.MustCompile(`\d[\d.,:]*`)
	ruled  = regexp.MustCompile(`[-─═]{3,}`)
)

// alike is a line without what differs from run to run: numbers and widths.
func alike(line string) string {
	return strings.Join(strings.Fields(ruled.ReplaceAllString(number.ReplaceAllString(line, "0"), "-")), " ")
}

// missing is the first line of what a page shows that was not printed; "" if all were, in that order.
func missing(printed string, shown []string) string {
	left := strings.Split(printed, "\n")
	for _, line := range shown {
		if want := alike(line); want != "" && want != "..." {
			i := slices.IndexFunc(left, func(have string) bool { return alike(have) == want })
			if i < 0 {
				return line
			}
			left = left[i+1:]
		}
	}
	return ""
}

func TestSession(t *testing.T) {
	session := "$ curfew x \\\n> y\nlived 1.5 s\n\n...\n$ echo\n"
	assert.Equal(t, "curfew x \\\ny\n\n\n\necho\n", Typed(session))
	assert.Empty(t, missing("a\nlived   200 s\nb\nc 7\n", []string{"lived 1.5 s", "...", "c 0"}))
	assert.Equal(t, "lived 1.5 s", missing("c 7\n", []string{"c 1", "lived 1.5 s"}))
}
