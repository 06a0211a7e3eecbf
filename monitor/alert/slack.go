package alert

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// slack posts to an incoming webhook (Slack: Incoming webhooks, Block Kit). Such a
// message cannot be changed later: what is over is a message of its own.
type slack struct {
	*poster
	source source
}

// Limits of Block Kit, in characters.
const (
	slackHeader  = 150
	slackSection = 3000
	slackField   = 2000
)

type slackMessage struct {
	Text        string            `json:"text"` // for notifications, and where blocks cannot be shown
	Attachments []slackAttachment `json:"attachments"`
}

type slackAttachment struct {
	Color    string       `json:"color"`
	Fallback string       `json:"fallback"`
	Blocks   []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     *slackText  `json:"text,omitempty"`
	Fields   []slackText `json:"fields,omitempty"`
	Elements []slackText `json:"elements,omitempty"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (s *slack) send(ctx context.Context, n *notification) error {
	return s.postJSON(ctx, s.message(n))
}

var slackColors = map[string]string{"critical": "#b3261e", "error": "#b3261e", "warning": "#c77700", "info": "#3367d6"}

func (s *slack) message(n *notification) slackMessage {
	title := strings.ToUpper(n.status()) + " " + n.key.kind.String()
	color, known := slackColors[n.severity()]
	if n.resolved() || !known {
		color = "#2e7d32"
	}
	summary := escapeSlack(n.summary())
	blocks := []slackBlock{
		{Type: "header", Text: &slackText{"plain_text", cut(title, slackHeader)}},
		{Type: "section", Text: &slackText{"mrkdwn", cut(summary, slackSection)}},
	}
	if fields := s.fields(n); len(fields) > 0 {
		blocks = append(blocks, slackBlock{Type: "section", Fields: fields})
	}
	if top := slackTop(n); top != "" {
		blocks = append(blocks, slackBlock{Type: "section", Text: &slackText{"mrkdwn", cut(top, slackSection)}})
	}
	blocks = append(blocks, slackBlock{Type: "context", Elements: []slackText{{"mrkdwn", cut(s.footer(n), slackField)}}})
	return slackMessage{
		Text:        cut(title+": "+summary, slackSection),
		Attachments: []slackAttachment{{Color: color, Fallback: cut(summary, slackSection), Blocks: blocks}},
	}
}

// fields are the numbers, in two columns.
func (s *slack) fields(n *notification) (fields []slackText) {
	add := func(name, value string) {
		fields = append(fields, slackText{"mrkdwn", "*" + name + "*\n" + escapeSlack(value)})
	}
	if t := n.total; t.Count > 0 {
		add("Messages", fmt.Sprint(t.Count))
		if t.WorstMillis > 0 {
			add("Worst lateness", lateness(t.WorstMillis).String())
		}
		if t.FirstDeadlineAt != 0 {
			add("First deadline", stamp(t.FirstDeadlineAt))
		}
		if t.LastDeadlineAt != 0 {
			add("Last deadline", stamp(t.LastDeadlineAt))
		}
	}
	return fields
}

// slackTop lists the queues with most messages, if there are several.
func slackTop(n *notification) string {
	list := n.offenders()
	if len(list) < 2 {
		return ""
	}
	lines := make([]string, 0, len(list)+1)
	for _, o := range list {
		line := fmt.Sprintf("`%s` of `%s`", escapeSlack(cut(o.queue, 255)), escapeSlack(cut(o.vhost, 255)))
		if o.Count > 0 {
			line = fmt.Sprintf("%d in %s", o.Count, line)
		}
		if o.WorstMillis > 0 {
			line += ", worst " + lateness(o.WorstMillis).String()
		}
		lines = append(lines, "• "+line)
	}
	if more := n.queues() - len(list); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d queues more", more))
	}
	return strings.Join(lines, "\n")
}

func (s *slack) footer(n *notification) string {
	parts := []string{"severity " + n.severity(), "since " + n.startsAt.UTC().Format(time.RFC3339)}
	if s.source.instance != "" {
		parts = append(parts, "instance "+escapeSlack(s.source.instance))
	}
	if s.source.externalURL != "" {
		parts = append(parts, "<"+s.source.externalURL+"|Curfew>")
	}
	if url := s.source.runbook(n.key.kind); url != "" {
		parts = append(parts, "<"+url+"|runbook>")
	}
	return strings.Join(parts, " · ")
}

var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'")

func escapeSlack(text string) string { return slackEscapes.Replace(text) }

// cut shortens text to so many characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return string(runes[:most-1]) + "…"
}
