package cluster

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v3"

	"curfew/broker/deadline"
)

// watchFile is the format of the file that CURFEW_WATCH may name.
type watchFile struct {
	Queues []watchedQueues `yaml:"queues"`
}

type watchedQueues struct {
	VHost  string `yaml:"vhost"`
	Queue  string `yaml:"queue"`
	Mode   string `yaml:"mode"`
	Budget struct {
		Messages *int   `yaml:"messages"`
		Bytes    string `yaml:"bytes"`
		Holds    *int   `yaml:"holds_per_second"`
	} `yaml:"budget"`
	Assume        string `yaml:"assume"`
	AlertOnExpiry bool   `yaml:"alert_on_expiry"`
	Cancel        string `yaml:"cancel"`
	Exchange      string `yaml:"exchange"`

	Backoff []string `yaml:"backoff"`
	Jitter  string   `yaml:"jitter"`
	Park    string   `yaml:"park"`
}

// ParseWatchFile reads the rules of a file in YAML:
//
//	queues:
//	  - queue: retry-*          # a name, with * for any characters and ? for one
//	    vhost: shop             # left out: that of CURFEW_PRIMARY_URL
//	    mode: keep              # observe (default), keep, delay, retry or off
//	    budget:
//	      messages: 50000       # held at once; 100000 if left out, 1000000 with modes delay and retry
//	      bytes: 512MiB         # of the bodies of the messages held; 1GiB if left out; mode keep only
//	      holds_per_second: 2000 # 5000 if left out; mode keep only
//	    assume: quorum          # classic or quorum; see Rule.Assume
//	    alert_on_expiry: true   # false if left out; see Rule.AlertOnExpiry
//	  - queue: shop.delay
//	    mode: delay
//	    cancel: same_user       # off (default), any or same_user; see Cancel
//	    exchange: shop          # left out: the name of the queue without .delay
//	  - queue: retry.delay
//	    mode: retry
//	    backoff: [1s, 5s, 30s, 2m] # how long a message waits that was rejected once, twice, ...: 1 to 16 waits
//	    jitter: 10%             # by which a wait may be longer; 0% if left out
//	    park: "{queue}.failed"  # where it goes after that; left out: it waits as the last time
//
// Errors name the rule, the key, its value and what is allowed.
func ParseWatchFile(text []byte) (Watch, error) {
	var file watchFile
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(file.Queues) == 0 {
		return nil, errors.New("it has no rule: write a list under the key queues")
	}
	var w Watch
	for i, one := range file.Queues {
		r, err := one.rule()
		if err != nil {
			return nil, fmt.Errorf("queues[%d] (%s): %w", i, one.Queue, err)
		}
		w = append(w, r)
	}
	return w, nil
}

func (q *watchedQueues) rule() (r Rule, err error) {
	r = defaultRule()
	r.VHost, r.Pattern, r.AlertOnExpiry = q.VHost, q.Queue, q.AlertOnExpiry
	if err := checkPattern(q.Queue); err != nil {
		return r, fmt.Errorf("queue: %w", err)
	}
	if r.Mode, err = oneOf("mode", q.Mode, modes...); err != nil {
		return r, err
	}
	r.Exchange, r.Budget.Messages = q.Exchange, r.mostHeld()
	if r.Cancel, err = oneOf("cancel", q.Cancel, "off", CancelAny, CancelSameUser); err != nil {
		return r, err
	}
	if r.Cancel == "off" {
		r.Cancel = CancelOff
	}
	if r.Mode != Delay && (q.Cancel != "" || q.Exchange != "") {
		return r, fmt.Errorf("cancel and exchange are for mode delay, and this is %s", r.Mode)
	}
	if r.Mode.Waits() && (q.Budget.Bytes != "" || q.Budget.Holds != nil) {
		return r, fmt.Errorf("budget.bytes and budget.holds_per_second are for mode keep, and this is %s: all of its messages are held, whatever they are", r.Mode)
	}
	if err := q.backoff(&r); err != nil {
		return r, err
	}
	if err := within("budget.messages", q.Budget.Messages, maxQuorum, &r.Budget.Messages); err != nil {
		return r, err
	}
	if err := within("budget.holds_per_second", q.Budget.Holds, 1_000_000, &r.Budget.Holds); err != nil {
		return r, err
	}
	if q.Budget.Bytes != "" {
		if r.Budget.Bytes, err = parseBytes(q.Budget.Bytes); err != nil {
			return r, fmt.Errorf("budget.bytes: %w", err)
		}
	}
	if r.Assume, err = oneOf("assume", q.Assume, UnknownType, Classic, Quorum); err != nil {
		return r, err
	}
	if r.AlertOnExpiry && r.Mode != Keep {
		return r, fmt.Errorf("alert_on_expiry: true is for mode keep, and this is %s: in an observed queue, every expiry is a miss", r.Mode)
	}
	return r, nil
}

// backoff reads the keys for mode retry.
func (q *watchedQueues) backoff(r *Rule) error {
	given := len(q.Backoff) > 0
	if given != (r.Mode == Retry) || r.Mode != Retry && (q.Jitter != "" || q.Park != "") {
		return fmt.Errorf("backoff, jitter and park are for mode retry, which needs a backoff such as [1s, 5s, 30s, 2m], and this is %s", r.Mode)
	}
	if !given {
		return nil
	}
	steps, ok := deadline.ParseBackoff(strings.Join(q.Backoff, ","))
	if !ok {
		return fmt.Errorf("backoff: %q is invalid: want 1 to %d waits, as in [1s, 5s, 30s, 2m]", q.Backoff, deadline.MaxSteps)
	}
	jitter, err := strconv.ParseUint(strings.TrimSuffix(cmp.Or(q.Jitter, "0"), "%"), 10, 8)
	if err != nil || jitter > 100 {
		return fmt.Errorf("jitter: %q is invalid: want 0%% to 100%%", q.Jitter)
	}
	if q.Park == "{queue}" || len(q.Park) > 255 {
		return fmt.Errorf("park: %q is invalid: want the name of another queue, as in {queue}.failed", q.Park)
	}
	r.Backoff = Backoff{Steps: steps, Jitter: uint8(jitter), Park: q.Park}
	return nil
}

// oneOf returns value if it is among those allowed; if it is empty, the first of them.
func oneOf[T ~string](key, value string, allowed ...T) (T, error) {
	if value == "" {
		return allowed[0], nil
	}
	if slices.Contains(allowed, T(value)) {
		return T(value), nil
	}
	var shown []string
	for _, one := range allowed {
		if one != "" {
			shown = append(shown, string(one))
		}
	}
	return "", fmt.Errorf("%s: %q is invalid: want %s", key, value, strings.Join(shown, " or "))
}

func within(key string, value *int, most int, to *int) error {
	if value == nil {
		return nil
	}
	if *value < 1 || *value > most {
		return fmt.Errorf("%s: %d is invalid: want 1 to %d", key, *value, most)
	}
	*to = *value
	return nil
}

// parseBytes reads a whole number, or one with KiB, MiB or GiB.
func parseBytes(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n < 1 || n > 1<<50 {
		return 0, fmt.Errorf("%q is invalid: want a number of bytes, or of KiB, MiB or GiB, as in 512MiB", text)
	}
	return int64(n), nil
}

// NamesFile reports whether the value of CURFEW_WATCH is the path of a file. A rule for a queue whose name looks like a
// path begins with its mode.
func NamesFile(watch string) bool {
	return strings.HasPrefix(watch, "/") || strings.HasPrefix(watch, ".")
}

// LoadWatch reads the rules from the value of CURFEW_WATCH: rules, or the path of a file with them. If it is empty, every queue
// is observed. Errors name the variable.
func LoadWatch(watch string) (Watch, error) {
	w, err := loadWatch(watch)
	if err != nil {
		return nil, fmt.Errorf("CURFEW_WATCH: %w", err)
	}
	return w, nil
}

func loadWatch(watch string) (Watch, error) {
	if watch == "" {
		return DefaultWatch(), nil
	}
	if !NamesFile(watch) {
		return ParseWatch(watch)
	}
	text, err := os.ReadFile(watch)
	if err != nil {
		return nil, err
	}
	w, err := ParseWatchFile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", watch, err)
	}
	return w, nil
}
