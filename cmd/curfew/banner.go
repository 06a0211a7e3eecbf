package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// printBanner tells a person what to point a client to. Its last line is what container test suites
// wait for (Testcontainers: RabbitMQ module).
func printBanner(w io.Writer, c *config, recovered int, amqp []net.Listener, httpAddr, opsAddr net.Addr) {
	ops := "http://" + reachable(opsAddr.String())
	lines := []string{
		"Curfew " + versionText(),
		"  AMQP      " + clientURL(c, amqp[0].Addr()),
		"  Dashboard http://" + reachable(httpAddr.String()) + "/",
		"  API       http://" + reachable(httpAddr.String()) + "/api",
		"  Metrics   " + ops + "/metrics",
		"  Health    " + ops + "/healthz, " + ops + "/readyz",
		"  Schedule  " + scheduleText(c),
		"  Store     " + storeText(c, recovered),
		"  Monitor   " + monitorText(c),
		"  Try       curfew demo",
		"Server startup complete",
	}
	if len(amqp) > 1 {
		lines = slices.Insert(lines, 2, "  AMQPS     amqps://"+reachable(amqp[1].Addr().String())+"/")
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// clientURL shows the password only if everybody knows it.
func clientURL(c *config, addr net.Addr) string {
	u := url.URL{Scheme: "amqp", Host: reachable(addr.String()), Path: "/", User: url.UserPassword(string(c.User), string(c.Password))}
	if c.User != "guest" || c.Password != "guest" {
		u.User = url.UserPassword(string(c.User), "PASSWORD")
	}
	return u.String()
}

func scheduleText(c *config) string {
	switch {
	case !c.Monitor:
		return "none"
	case c.RedisURL == "":
		return "embedded (CURFEW_REDIS_URL is empty)"
	}
	return c.RedisURL.redacted()
}

func storeText(c *config, recovered int) string {
	if c.DataDir == "" {
		return "memory only: messages are lost when Curfew stops"
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		dir = c.DataDir
	}
	return fmt.Sprintf("%s (sync: %s), %d messages recovered", dir, c.StoreSync, recovered)
}

func monitorText(c *config) string {
	if c.TTL == "off" {
		return "nothing to do: no message expires (CURFEW_TTL=off)"
	}
	if !c.Monitor {
		return "off: messages expire only at the head of a queue"
	}
	return "on: deadlines fire when they come"
}
