package integration

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// TestClockStories tells ten stories about time by a manual clock, in four languages with a test framework of each. Their programs take five
// seconds in all, starts included, and no more than three times that on a busy machine; waiting for what they are about would take five hours each.
func TestClockStories(t *testing.T) {
	t.Parallel()
	const limit = 15 * time.Second
	modules, err := filepath.Abs("../.cache/node/node_modules")
	check(t, err)
	stories, err := filepath.Abs("clients/stories")
	check(t, err)
	needs(t, "python3-pytest python3-pika", "/usr/bin/python3", "-c", "import pytest, pika")
	needs(t, "the npm packages", "test", "-e", filepath.Join(modules, "jest/bin/jest.js"))
	classes := javaStories(t)
	suites := map[string][]string{
		"pytest": {"/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", stories},
		"Jest":   {"node", filepath.Join(modules, "jest/bin/jest.js"), "--runInBand"},
		"JUnit":  {"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes, "org.junit.platform.console.ConsoleLauncher", "-c", "StoriesTest", "--disable-banner", "--details=none"},
	}
	took := map[string]time.Duration{}
	for attempt := range 3 {
		total := time.Duration(0)
		c, clock := startManual(t)
		for name, command := range suites {
			began := time.Now()
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Dir = stories
			cmd.Env = append(os.Environ(), "AMQP="+c.url+"/%2F", "HTTP="+c.http, fmt.Sprint("RUN=", attempt), "NODE_PATH="+modules, "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s:\n%s", name, out)
			took[name] = min(time.Since(began), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) // others may use the machine
			total += took[name]
		}
		began := time.Now()
		goStories(t, c.url, clock)
		took["Go"] = time.Since(began)
		total += took["Go"]
		t.Logf("%v in all: %v", total, took)
		if total < limit {
			return
		}
	}
	t.Errorf("the stories took more than %v: %v", limit, took)
}

// javaStories compiles the stories and returns the class path.
func javaStories(t *testing.T) string {
	path := filepath.Join(scratch, "stories") + ":" + javaClasses
	for _, jar := range []string{"junit-jupiter-api", "junit-jupiter-engine", "junit-platform-commons", "junit-platform-console", "junit-platform-engine", "junit-platform-launcher",
		"junit-platform-reporting", "opentest4j", "opentest4j-reporting-events", "opentest4j-reporting-schema", "apiguardian-api", "picocli"} {
		path += ":/usr/share/java/" + jar + ".jar"
	}
	needs(t, "default-jdk-headless librabbitmq-client-java junit5", "javac", "-cp", path, "-d", filepath.Join(scratch, "stories"), "clients/stories/StoriesTest.java")
	return path
}

// goStories are the stories of clients/stories/test_stories.py.
func goStories(t *testing.T, url string, clock clockOf) {
	ch := confirmingOn(t, url)
	with := func(to string, more ...any) amqp091.Table {
		args := amqp091.Table{}
		if to != "" {
			args = toQueue(to)
		}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return args
	}
	text := func(body, ttl string) amqp091.Publishing {
		return amqp091.Publishing{Body: []byte(body), Expiration: ttl}
	}
	t.Run("time to live of a message", func(t *testing.T) {
		ch.declare("a.dead", nil)
		ch.declare("a", with("a.dead"))
		ch.publish("a", text("m", "3600000"))
		clock.advance(time.Hour - time.Millisecond)
		require.Empty(t, ch.all("a.dead"))
		clock.advance(time.Millisecond)
		require.Equal(t, []string{"m"}, ch.all("a.dead"))
	})
	t.Run("time to live of a queue", func(t *testing.T) {
		ch.declare("b.dead", nil)
		ch.declare("b", with("b.dead", "x-message-ttl", 60_000))
		ch.publish("b", text("m", ""))
		clock.advance(time.Minute)
		require.Equal(t, []string{"m"}, ch.all("b.dead"))
	})
	t.Run("the lower counts", func(t *testing.T) {
		ch.declare("c.dead", nil)
		ch.declare("c", with("c.dead", "x-message-ttl", 10_000))
		ch.publish("c", text("m", "3600000"))
		clock.advance(10 * time.Second)
		require.Equal(t, []string{"m"}, ch.all("c.dead"))
	})
	t.Run("behind one without a deadline", func(t *testing.T) {
		ch.declare("d.dead", nil)
		ch.declare("d", with("d.dead"))
		ch.publish("d", text("stays", ""))
		ch.publish("d", text("goes", "1000"))
		clock.advance(time.Second)
		require.Equal(t, []string{"goes"}, ch.all("d.dead"))
		require.Equal(t, []string{"stays"}, ch.all("d"))
	})
	t.Run("retry", func(t *testing.T) {
		ch.declare("e", with("e.retry"))
		ch.declare("e.retry", with("e", "x-message-ttl", 30_000))
		ch.publish("e", text("job", ""))
		for attempt := range 3 {
			job, ok, err := ch.Get("e", false)
			check(t, err)
			require.True(t, ok)
			require.Len(t, deathCounts(&job), min(attempt, 1)*2)
			check(t, job.Reject(false))
			require.Empty(t, ch.all("e"))
			clock.advance(30 * time.Second)
		}
		require.Equal(t, []string{"job"}, ch.all("e"))
	})
	t.Run("back-off in one queue", func(t *testing.T) {
		ch.declare("f", nil)
		ch.declare("f.retry", with("f"))
		for _, ttl := range []string{"60000", "1000", "10000"} {
			ch.publish("f.retry", text(ttl, ttl))
		}
		clock.advance(time.Minute)
		require.Equal(t, []string{"1000", "10000", "60000"}, ch.all("f"))
	})
	t.Run("delay", func(t *testing.T) {
		ch.declare("g", nil)
		ch.publish("g", amqp091.Publishing{Body: []byte("later"), Headers: amqp091.Table{"x-delay": 7_200_000}})
		clock.advance(time.Hour)
		require.Empty(t, ch.all("g"))
		clock.advance(time.Hour)
		require.Equal(t, []string{"later"}, ch.all("g"))
	})
	t.Run("lock", func(t *testing.T) {
		ch.declare("h", with("", "x-lock-duration", 30_000))
		ch.publish("h", text("m", ""))
		holder := openChannel(t, dial(t, url))
		_, ok, err := holder.Get("h", false)
		check(t, err)
		require.True(t, ok)
		clock.advance(30 * time.Second)
		check(t, holder.Close())
		again, ok, err := ch.Get("h", true)
		check(t, err)
		require.True(t, ok && again.Redelivered)
	})
	t.Run("unused queue", func(t *testing.T) {
		ch.declare("i", with("", "x-expires", 60_000))
		clock.advance(time.Minute)
		_, status := ask(t, clock.url[:len(clock.url)-len("/api/curfew/clock")], "/api/queues/%2f/i")
		require.Equal(t, http.StatusNotFound, status)
	})
	t.Run("two waits in one advance", func(t *testing.T) {
		ch.declare("j.dead", nil)
		ch.declare("j.2", with("j.dead", "x-message-ttl", 20_000))
		ch.declare("j.1", with("j.2", "x-message-ttl", 10_000))
		ch.publish("j.1", text("m", ""))
		clock.advance(20 * time.Minute)
		require.Equal(t, []string{"m"}, ch.all("j.dead"))
	})
}
