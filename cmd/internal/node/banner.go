package node

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"curfew/broker"
	"curfew/cmd/internal/settings"
)

// printBanner prints the addresses for clients and operators. Test suites with containers wait for
// its last line (Testcontainers: RabbitMQ module).
func (n *Node) printBanner(w io.Writer, s *sockets) {
	c, web, ops := n.settings, "http://"+settings.Reachable(s.web.Addr().String()), "http://"+settings.Reachable(s.ops.Addr().String())
	lines := []string{"Curfew " + n.build.Version}
	for i, l := range s.amqp {
		if i == 0 {
			lines = append(lines, "  AMQP      "+clientURL(c, l.Addr()))
		} else {
			lines = append(lines, "  AMQPS     amqps://"+settings.Reachable(l.Addr().String())+"/")
		}
	}
	lines = append(lines,
		"  Dashboard "+web+"/",
		"  API       "+web+"/api",
		"  Metrics   "+ops+"/metrics",
		"  Health    "+ops+"/healthz, "+ops+"/readyz")
	lines = append(lines, n.primary.describe(web)...)
	fmt.Fprintln(w, strings.Join(append(lines, "Server startup complete"), "\n"))
}

// describe implements primary.
func (o *ownBroker) describe(web string) []string {
	c := o.n.settings
	last := "  Try       curfew demo --against " + web
	if c.ManualClock() {
		last = "  Clock     manual: it stands until curfew clock moves it; for tests only"
	}
	return []string{
		"  Schedule  " + scheduleText(c),
		"  Store     " + storeText(c, o.broker),
		"  Monitor   " + monitorText(c),
		last,
	}
}

// clientURL shows the password only if it is the default.
func clientURL(c *settings.Settings, addr net.Addr) string {
	u := url.URL{Scheme: "amqp", Host: settings.Reachable(addr.String()), Path: "/", User: url.UserPassword(c.User, c.Password)}
	if c.User != "guest" || c.Password != "guest" {
		u.User = url.UserPassword(c.User, "PASSWORD")
	}
	return u.String()
}

func scheduleText(c *settings.Settings) string {
	switch {
	case !c.Monitor:
		return "none"
	case c.RedisURL == "":
		return "embedded (CURFEW_REDIS_URL is empty)"
	}
	return c.RedisURL.Redacted()
}

func storeText(c *settings.Settings, b *broker.Broker) string {
	if c.DataDir == "" {
		return "memory only: messages are lost when Curfew stops"
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		dir = c.DataDir
	}
	found := fmt.Sprintf("%d messages recovered", b.Recovered())
	if b.NewFolder() {
		found = "a new folder: no messages"
	}
	return fmt.Sprintf("%s (sync: %s), %s", dir, c.StoreSync, found)
}

func monitorText(c *settings.Settings) string {
	if c.TTL == "off" {
		return "nothing to do: no message expires (CURFEW_TTL=off)"
	}
	if !c.Monitor {
		return "off: messages expire lazily: when a delivery or a get meets them, and at a start"
	}
	return "on: deadlines fire when they come"
}
