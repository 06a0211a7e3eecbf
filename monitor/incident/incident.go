package incident

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/printable"
)

// Incident is a condition for as long as it lasts, as users see it.
type Incident struct {
	ID        string     `json:"id"`
	Condition string     `json:"condition"`
	Alertname string     `json:"alertname"` // its name in Alertmanager and the runbooks
	Level     Level      `json:"level"`
	Summary   string     `json:"summary"` // one sentence: which queue, how many, who
	Do        string     `json:"do"`      // what to do
	Command   string     `json:"command"` // that shows more
	Page      string     `json:"page"`    // path of the dashboard's page that shows more
	Runbook   string     `json:"runbook,omitempty"`
	Count     int64      `json:"count"`          // messages that it is about now
	Toll      int64      `json:"toll"`           // messages that expired, were late, parked or held, at the most
	Lost      int64      `json:"lost,omitempty"` // of toll: messages that are gone, at the most
	Queues    int        `json:"queues"`
	Worst     []Affected `json:"worst,omitempty"`        // of the queues: the worst first, at most 20
	Since     time.Time  `json:"since"`                  // when it first began, if it came back
	Back      *time.Time `json:"back,omitempty"`         // when it last came back, after it was over
	Losing    *time.Time `json:"losing_since,omitempty"` // since when messages are lost; absent: none was in the last minute
	Ended     *time.Time `json:"ended,omitempty"`
	Ack       *Ack       `json:"ack,omitempty"`
	Quiet     bool       `json:"quiet,omitempty"`  // nobody is notified: it was acknowledged, or there is maintenance
	Became    string     `json:"became,omitempty"` // the ID of the incident as which it goes on, though it is over
	History   []Entry    `json:"history"`          // what happened to it, at most 50 entries
}

// AcknowledgedBy stands in a line between an incident and who has taken it over.
const AcknowledgedBy = "; acknowledged by "

// Line is the incident in one line: what is wrong, and who has taken it over.
func (i *Incident) Line() string {
	if i.Ack == nil {
		return i.Summary
	}
	return i.Summary + AcknowledgedBy + i.Ack.By
}

// Concern is what the worst that is wrong with a queue is.
type Concern struct {
	Level Level // empty: nothing is wrong
	Place int   // of the queue among those of this level; the first is the worst
	Text  string
	In    *Incident // it must not be changed
}

// Affected is a queue in an incident.
type Affected struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	Count int64  `json:"count"`
	Toll  int64  `json:"toll"` // messages that expired, were late or are held, so far
	Text  string `json:"text"` // what is wrong
}

// Ack says who has taken an incident over. Nobody is notified of it then, until a queue joins that it was not given for.
type Ack struct {
	By      string     `json:"by"`
	At      time.Time  `json:"at"`
	Until   *time.Time `json:"until,omitempty"` // absent: until it is over
	Comment string     `json:"comment,omitempty"`
}

// Entry is something that happened to an incident.
type Entry struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

const (
	maxWorst   = 20
	maxEntries = 50
	// memberFor is how long a queue stays in an incident after it was seen last, at least.
	memberFor = 10 * time.Second
	// maxMembers bounds those that are kept though they are well again, so that they are named when it is over.
	maxMembers = 1000
)

// incident is an Incident with what it is tracked by.
type incident struct {
	keptIncident
	of       *Condition
	members  map[QueueName]Finding // the last of each queue, also of one that is well again
	left     map[string]bool       // Finding.Left of any of them, as they are now
	present  []Finding             // of those that are not, the worst first; at the end those of before
	rule     *rule
	seen     time.Time // when it began, before it was an incident
	found    time.Time // when any of its members was last found
	gone     time.Time // since when none of its members holds; zero: some do
	open     bool
	into     *incident // in which its last queue, moved, goes on; nil: in none
	moved    QueueName
	worst    Finding // of the last ones
	late     time.Duration
	restored bool // from a file, and not seen since
	back     bool // it was over, and nobody has been told yet that it is not
}

// keptIncident is what is kept of an incident over a restart.
type keptIncident struct {
	Incident
	Cause  string            `json:"cause"`
	Who    string            `json:"who,omitempty"`
	Until  time.Time         `json:"until"`   // when it was last known to last
	Labels map[string]string `json:"labels"`  // without severity and instance; they stay the same while it lasts
	Told   int64             `json:"told"`    // the largest count that was told
	ToldAt Level             `json:"told_at"` // and the level; empty: nobody was told
	// Findings are the last of each queue. They are filled in when it is saved.
	Findings []Finding `json:"findings"`
	// Forgotten is what it cost in queues beyond maxMembers.
	Forgotten struct{ Toll, Lost int64 } `json:"forgotten"`
}

// add puts a finding into the incident.
func (i *incident) add(f Finding, now time.Time) {
	f.at, f.Level, f.Joined = now, cmp.Or(f.Level, i.of.Level), cmp.Or(i.members[f.QueueName].Joined, f.Joined, now)
	i.members[f.QueueName], i.left[f.Left], i.found, i.into = f, true, now, nil
}

// refresh works out what the incident shows from its members: those that were seen now, or shortly before.
func (i *incident) refresh(now time.Time) {
	var present []Finding
	toll, lost := i.Forgotten.Toll, i.Forgotten.Lost // of the others
	clear(i.left)
	for q, f := range i.members {
		i.left[f.Left] = true
		if now.Sub(f.at) <= max(i.of.Ends, memberFor) {
			present = append(present, f)
			continue
		}
		toll, lost = toll+f.Toll, lost+f.Lost
		if len(i.members) > maxMembers {
			i.Forgotten.Toll, i.Forgotten.Lost = i.Forgotten.Toll+f.Toll, i.Forgotten.Lost+f.Lost
			delete(i.members, q)
		}
	}
	if i.found.Equal(now) {
		i.gone, i.restored = time.Time{}, false
	} else if i.gone.IsZero() {
		i.gone = now
	}
	if !i.restored && present != nil {
		i.show(present, toll, lost)
	}
}

// past says what it was, once it is over. What was to be done is left out.
func (i *incident) past() {
	s := &i.Incident
	text := sentence(i.of.was(s))
	switch {
	case len(s.Worst) > 0:
		text += ": " + QueueName{s.Worst[0].VHost, s.Worst[0].Queue}.String()
	case i.Cause != "":
		text += ": " + i.Cause
	case i.worst.Text != "":
		text += fmt.Sprintf(" (%q)", i.worst.Text)
	}
	if s.Queues > 1 {
		text += " and " + printable.Plural(int64(s.Queues-1), "other queue")
	}
	if i.Who != "" {
		text += ", by " + i.Who
	}
	if s.Toll > 0 {
		text += ": " + printable.Plural(s.Toll, "message")
	}
	switch {
	case s.Lost > 0 && s.Lost == s.Toll:
		text += " lost"
	case s.Lost > 0:
		text += ", " + printable.Number(s.Lost) + " lost"
	}
	if s.Became != "" {
		text += "; it became incident " + s.Became
	} else if i.restored {
		text += "; it ended while Curfew was not running"
	}
	s.Summary, s.Do, s.Command = text, "", ""
}

// show works out what the incident shows from findings, and from what it has cost besides.
func (i *incident) show(list []Finding, toll, lost int64) {
	slices.SortFunc(list, worstFirst)
	if first := &list[0]; first.slow != nil {
		who := first.slow()
		who.tell(first, i.of)
	}
	s := &i.Incident
	s.Level, s.Count, s.Queues, s.Worst = list[0].Level, 0, 0, nil
	i.late, s.Losing = 0, nil
	for _, f := range list {
		s.Count, toll, lost, i.late = s.Count+f.Count, toll+f.Toll, lost+f.Lost, max(i.late, f.Late)
		if at := f.Losing.UTC(); !f.Losing.IsZero() && (s.Losing == nil || at.Before(*s.Losing)) {
			s.Losing = &at
		}
		if f.Name != "" {
			s.Queues++
			if len(s.Worst) < maxWorst {
				s.Worst = append(s.Worst, Affected{f.VHost, f.Name, f.Count, f.Toll, f.Text})
			}
		}
	}
	if i.ToldAt != "" && i.ToldAt.Rank() < s.Level.Rank() {
		s.Level = i.ToldAt // until it is over: its end goes where its beginning went
	}
	i.present = list
	worst := list[0]
	s.Toll, s.Lost = max(s.Toll, toll), max(s.Lost, lost)
	i.worst, i.Who = worst, worst.Who
	s.Summary, s.Do = i.of.says(worst, s), cmp.Or(worst.Do, i.of.Do)
	if worst.keeping != nil {
		s.Do = strings.TrimSpace(s.Do + " " + worst.keeping())
	}
	more := cmp.Or(worst.Command, i.of.Command)
	s.Command, s.Page = fill(more, worst.QueueName, deadline.Shell), fill(cmp.Or(worst.Page, i.of.Page), worst.QueueName, url.QueryEscape)
	if command, is := strings.CutSuffix(more, " {queue} --vhost {vhost}"); is && worst.Name != "" {
		s.Command = deadline.Command(command, []string{worst.Name}, "--vhost", worst.VHost)
	}
}

// was is what it was, once it is over.
func (c *Condition) was(i *Incident) string {
	switch {
	case i.Toll > 0 || c.Averted == "":
		return c.Was
	case i.Became != "":
		return c.Averted
	}
	return c.Averted + ", and none expired"
}

// says is the summary of an incident.
func (c *Condition) says(worst Finding, s *Incident) string {
	what := sentence(c.What) + ": "
	if worst.Name == "" {
		return what + worst.Text
	}
	text := what + worst.QueueName.String() + ": " + worst.Text
	if s.Queues > 1 && s.Count > worst.Count { // otherwise the others are where its messages are from
		all := printable.Number(s.Count) + " in all"
		if worst.Lost > 0 { // what was dead-lettered elsewhere is not lost
			all = printable.Number(s.Lost) + " lost in all"
		}
		text += fmt.Sprintf("; and %s more, %s", printable.Plural(int64(s.Queues-1), "queue"), all)
	}
	if s.Lost > 0 && worst.Lost == 0 {
		text += "; " + printable.Plural(s.Lost, "message") + " lost before"
	}
	return text
}

// String names a queue and its virtual host.
func (q QueueName) String() string { return name(q.Name) + " (vhost " + name(q.VHost) + ")" }

// name is a name in a text: in quotes if it is not a plain word.
func name(text string) string {
	if quoted := strconv.Quote(text); text == "" || quoted != `"`+text+`"` || strings.ContainsAny(text, " ,;:()") {
		return quoted
	}
	return text
}

// fill puts a queue into a command or a path.
func fill(text string, q QueueName, quote func(string) string) string {
	if q.Name == "" {
		text = strings.NewReplacer(" {queue}", "", " --queue {queue}", "", " --vhost {vhost}", "", "?vhost={vhost}&queue={queue}", "", "?vhost={vhost}&name={queue}", "").Replace(text)
	}
	return strings.NewReplacer("{queue}", quote(q.Name), "{vhost}", quote(q.VHost)).Replace(text)
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// note adds an entry to the history, in a new slice: views keep the one before.
func (i *incident) note(at time.Time, text string) {
	h := append(slices.Clip(i.History), Entry{at.UTC(), text})
	i.History = h[max(len(h)-maxEntries, 0):]
}

// begin makes it an incident.
func (i *incident) begin(now time.Time) {
	i.open = true
	i.Since = cmp.Or(i.Since, i.seen.UTC())
	i.Labels = map[string]string{"alertname": i.of.Alertname()}
	if worst := i.Worst; len(worst) > 0 {
		i.Labels["vhost"] = worst[0].VHost
		if len(worst) == 1 {
			i.Labels["queue"] = worst[0].Queue
		}
	}
	if i.Cause != "" {
		i.Labels["cause"] = i.Cause
	}
	if i.ID != "" {
		at := now.UTC()
		i.Back = &at
		i.note(at, "back: "+i.Summary)
		return
	}
	i.ID = strings.ToLower(rand.Text()[:12])
	i.note(i.Since, "began: "+i.Summary)
}

// format writes labels the way Alertmanager writes a group key.
func format(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+strconv.Quote(labels[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// notice is what sinks are sent: that an incident begins, has grown or got worse, or is over.
type notice struct {
	Incident
	source source
	rule   *rule
	names  map[string]string
	worst  Finding
	late   time.Duration
	at     time.Time
	what   string // begun, joined, grown, worse, over
}

func (t *tracker) notice(i *incident, what string, at time.Time) *notice {
	return &notice{Incident: i.Incident, source: t.source, rule: t.ruleLocked(i), names: i.Labels, worst: i.worst, late: i.late, at: at, what: what}
}

func (n *notice) status() string {
	if n.Ended != nil {
		return "resolved"
	}
	return "firing"
}

func (n *notice) severity() string { return cmp.Or(n.rule.Severity, string(n.Level)) }

// title is the heading of a text.
func (n *notice) title() string {
	what := n.Condition
	if c := ConditionOf(n.Condition); c != nil {
		what = c.What
		if n.Ended != nil {
			what = c.was(&n.Incident)
		}
	}
	if n.Ended != nil {
		return "Over: " + what
	}
	return sentence(n.severity()) + ": " + what
}

// text is one sentence for a person.
func (n *notice) text() string {
	switch n.what {
	case "over":
		return fmt.Sprintf("Over after %s: %s", printable.Span(n.Ended.Sub(n.Since).Truncate(time.Second)), n.Summary)
	case "joined":
		return fmt.Sprintf("Another queue: %s: %s. %s", n.worst.QueueName, n.worst.Text, n.Summary)
	case "grown":
		return "Growing. " + n.Summary
	}
	return n.Summary
}

// labels are those of an incident as it leaves this process.
func (n *notice) labels() map[string]string {
	labels := maps.Clone(n.names)
	labels["severity"] = n.severity()
	if n.source.instance != "" {
		labels["instance"] = n.source.instance
	}
	return labels
}

func (n *notice) annotations() map[string]string {
	m := map[string]string{"summary": n.text(), "do": n.Do, "command": n.Command, "count": strconv.FormatInt(n.Count, 10)}
	if n.worst.Action != "" {
		m["action"] = n.worst.Action
	}
	if n.Queues > 0 {
		m["queues"] = strconv.Itoa(n.Queues)
		var names []string
		for _, q := range n.Worst {
			names = append(names, name(q.VHost)+" "+name(q.Queue))
		}
		m["worst"] = strings.Join(names, ", ")
	}
	if n.worst.FirstAt != 0 {
		m["first_deadline"] = time.UnixMilli(n.worst.FirstAt).UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	if n.late > 0 {
		m["worst_lateness"] = n.late.String()
	}
	for what, page := range n.links() {
		m[what+"_url"] = page
	}
	return m
}

// page is the address of the dashboard's page that says most about an incident. It is "" if the alerts file does not say where the dashboard is.
func (n *notice) page() string {
	if n.source.externalURL == "" {
		return ""
	}
	return strings.TrimSuffix(n.source.externalURL, "/") + cmp.Or(n.Page, "/incidents")
}

// links are the addresses of the pages about an incident, by what they show.
func (n *notice) links() map[string]string {
	list := make(map[string]string)
	if page := n.page(); page != "" {
		list["page"], list["incidents"] = page, strings.TrimSuffix(n.source.externalURL, "/")+"/incidents"
	}
	if n.Runbook != "" {
		list["runbook"] = n.Runbook
	}
	return list
}
