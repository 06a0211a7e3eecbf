package integration

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

var opsClient = &http.Client{Timeout: 30 * time.Second}

// fetch answers status and body of one of the ops endpoints; status 0 when nobody answers.
func (c *curfew) fetch(path string) (int, string) {
	resp, err := opsClient.Get(c.ops + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

func (c *curfew) ready() bool {
	status, _ := c.fetch("/readyz")
	return status == http.StatusOK
}

// degraded: up and working, with the Redis schedule away. healthy: nothing to complain of.
func (c *curfew) degraded() bool {
	status, body := c.fetch("/healthz")
	return status == http.StatusOK && strings.Contains(body, `"status":"degraded"`) && strings.Contains(body, "redis")
}

func (c *curfew) healthy() bool {
	status, body := c.fetch("/healthz")
	return status == http.StatusOK && strings.Contains(body, `"status":"ok"`)
}

// metric sums the samples of a metric whose label text contains each of the given parts.
func (c *curfew) metric(name string, labels ...string) float64 {
	c.t.Helper()
	status, body := c.fetch("/metrics")
	if status != http.StatusOK {
		c.t.Fatalf("/metrics answered %d: %s", status, body)
	}
	return sumSamples(body, name, labels)
}

func sumSamples(text, name string, labels []string) (sum float64) {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, value, found := strings.Cut(lines.Text(), " ")
		metric, labelText, _ := strings.Cut(series, "{")
		if !found || metric != name || !containsAll(labelText, labels) {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum += v
		}
	}
	return sum
}

func containsAll(s string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// residentBytes is the process's memory as the kernel counts it.
func (c *curfew) residentBytes() int64 {
	c.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	c.t.Fatal("no VmRSS in /proc/<pid>/status")
	return 0
}

// cpuTime is what the process has used of the processor so far, in steps of 10 ms.
func (c *curfew) cpuTime() time.Duration {
	c.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid))
	if err != nil {
		c.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third of proc(5): user and system time are its 14th and 15th
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
