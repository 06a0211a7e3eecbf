package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report has everything that a run measured.
type report struct {
	Machine string    `json:"machine"`
	Commit  string    `json:"commit"`
	Command string    `json:"command"`
	Began   time.Time `json:"began"`
	Took    string    `json:"took"`
	Stolen  string    `json:"stolen"` // processor time taken by the machine's host
	Quick   bool      `json:"quick,omitempty"`
	Goals   []goal    `json:"goals"`
	Rows    []*row    `json:"rows"`
	Curves  []*curve  `json:"curves"`
	Failed  []string  `json:"failed,omitempty"`

	before processors
}

// goal is a goal that was measured: what was wanted, what was reached, and the comparison
// with a peer or another setting.
type goal struct {
	Goal  string `json:"goal"` // P1
	What  string `json:"what"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Ratio string `json:"ratio,omitempty"`
	Met   bool   `json:"met"`
}

func (r *report) begin(quick bool, only string) {
	r.Began, r.Quick, r.Machine, r.Commit, r.before = time.Now(), quick, machine(), commit(), processorsNow()
	r.Command = "make bench"
	if quick {
		r.Command = "BENCH=quick make bench"
	}
	if only != "" {
		r.Command = "BENCH_ONLY=" + only + " " + r.Command
	}
}

func (r *report) finish() {
	r.Took, r.Stolen = time.Since(r.Began).Round(time.Second).String(), r.before.stolenShare()
}

// row adds an empty row.
func (r *report) row(item, work, side string) *row {
	added := &row{Item: item, Work: work, Side: side}
	r.Rows = append(r.Rows, added)
	return added
}

// goal adds a verdict and prints it.
func (r *report) goal(g goal) {
	r.Goals = append(r.Goals, g)
	fmt.Printf("%s %s: want %s, got %s %s: %s\n", g.Goal, g.What, g.Want, g.Got, g.Ratio, verdict(g.Met))
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "**NOT met**"
}

func machine() string {
	var info unix.Sysinfo_t
	unix.Sysinfo(&info) //nolint:errcheck // zero is reported as such
	model := "unknown processor"
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(cpuinfo)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	system := "Linux"
	release, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(release)) {
		if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			system = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return fmt.Sprintf("%d processors (%s), %d GiB, %s, %s", runtime.NumCPU(), model,
		(info.Totalram*uint64(info.Unit)+1<<29)>>30, system, runtime.Version())
}

func commit() string {
	out, err := exec.Command("git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// save writes goals.md, summary.md, results.json and curves.svg.
func (r *report) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	files := map[string]string{"goals.md": r.goalsMarkdown(), "summary.md": r.markdown(), "results.json": string(data) + "\n"}
	if len(r.Curves) > 0 {
		files["curves.svg"] = plot(r.Curves)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("\nwritten to %s: %s\n", dir, strings.Join(slices.Sorted(maps.Keys(files)), ", "))
	return nil
}
