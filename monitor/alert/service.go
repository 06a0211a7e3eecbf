package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"curfew/monitor/alert/internal/transport"

	"github.com/cenkalti/backoff/v5"
	parameters "github.com/nicholas-fedor/shoutrrr/pkg/format"
	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// serviceTimeout is how long a service may take. Most give up by themselves after ten seconds.
const serviceTimeout = 30 * time.Second

// maxSummary bounds the summary, in characters. A text with its links then fits into one message of each service.
const maxSummary = 1200

// maxLink bounds a link in a text, in bytes. A longer one, to a queue with a very long name, is replaced by a link to the
// list of alerts.
const maxLink = 300

// service sends notifications as short text to a service that shoutrrr knows: chat, mail, push messages, on-call duty.
type service struct {
	settings sinkSettings
	library  types.Service
	takes    []string      // the parameters that it knows
	busy     chan struct{} // holds a token while the library sends, which changes the library's settings
	login    func() error  // before the first notification is sent; nil: there is nothing to do

	setClient func(*http.Client) // before each; nil: the service has its own
	transport *http.Transport    // of these clients
}

// newService makes a service. Its error repeats no part of the URL but the scheme.
func newService(s sinkSettings) (*service, error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, errors.New("url: it is not a URL") // err repeats it
	}
	kind := kindOfSink(s.url)
	library, err := (&router.ServiceRouter{}).NewService(kind)
	if err == nil && strings.Contains(u.Scheme, "+") {
		custom, can := library.(types.CustomURLService)
		if !can {
			return nil, fmt.Errorf("url: %s cannot be followed by a plus sign and another scheme", kind)
		}
		u, err = custom.GetConfigURLFromCustom(u)
	}
	made := &service{settings: s, library: library, busy: make(chan struct{}, 1)}
	if err == nil && kind == "matrix" { // its Initialize logs in
		made.login = func() error { return library.Initialize(u, nil) }
		err = parameters.GetServiceConfig(library).SetURL(u)
	} else if err == nil {
		err = library.Initialize(u, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("url: %s: %s", kind, transport.Redact(s.url, err.Error()))
	}
	config := parameters.NewPropKeyResolver(parameters.GetServiceConfig(library))
	made.takes = config.QueryFields()
	if made.setClient = transport.ClientSetter(library); made.setClient != nil {
		made.transport = transport.New(library)
	}
	return made, nil
}

func (s *service) name() string { return s.settings.name }

// send sends n once. If the service does not answer within serviceTimeout, the notification counts as failed. The
// request is cancelled where the library allows that (transport.ClientSetter); elsewhere it goes on in the background, and the
// service may still take it. So a service may get a notification twice.
func (s *service) send(ctx context.Context, n *notification) error {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("alert: send: the last notification is still being sent: %w", ctx.Err())
	}
	text, params := s.message(n)
	answer := make(chan error, 1)
	go func() { // the library takes no context
		defer func() { <-s.busy }()
		defer func() {
			if p := recover(); p != nil { // a service that fails must not take the broker down
				answer <- fmt.Errorf("it panicked: %v", p)
			}
		}()
		answer <- s.sendTextLocked(ctx, text, &params)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("alert: send: no answer, though the service may have taken it: %w", ctx.Err())
	}
}

// sendTextLocked sends text through the library. It is called with busy held.
func (s *service) sendTextLocked(ctx context.Context, text string, params *types.Params) error {
	if s.login != nil {
		if err := s.login(); err != nil {
			return s.failure(err, 0)
		}
		s.login = nil
	}
	a := &transport.Attempt{Ctx: ctx, Base: s.transport}
	if s.setClient != nil {
		s.setClient(&http.Client{Timeout: serviceTimeout, Transport: a})
	}
	err := s.library.Send(text, params)
	if err != nil {
		return s.failure(err, a.Status)
	}
	return nil
}

// failure is an error of the library without secrets, permanent if trying again is useless.
func (s *service) failure(err error, status int) error {
	if status == 0 {
		status = transport.StatusOf(err)
	}
	redacted := fmt.Errorf("alert: send: %s", transport.Redact(s.settings.url, err.Error()))
	if transport.IsPermanent(status) {
		return backoff.Permanent(redacted)
	}
	return redacted
}

// message is n as text, and as the parameters that this service takes.
func (s *service) message(n *notification) (text string, params types.Params) {
	from := s.settings.source
	title := strings.ToUpper(n.status()) + " " + n.key.kind.String()
	details := "severity " + n.severity() + ", since " + n.startsAt.UTC().Format(time.RFC3339)
	if n.total.WorstMillis > 0 {
		details += ", worst lateness " + lateness(n.total.WorstMillis).String()
	}
	if from.instance != "" {
		details += ", instance " + from.instance
	}
	lines := []string{harmless(cut(n.summary(), maxSummary)), details}
	for _, link := range []string{from.page(n.about()), from.runbook(n.key.kind)} {
		if len(link) > maxLink {
			link = from.page(key{kind: n.key.kind})
		}
		if link != "" {
			lines = append(lines, link)
		}
	}
	params = types.Params{}
	if slices.Contains(s.takes, types.TitleKey) && !slices.Contains(titleless, kindOfSink(s.settings.url)) {
		params.SetTitle(title)
	} else {
		lines = slices.Insert(lines, 0, title)
	}
	switch kindOfSink(s.settings.url) {
	case "pagerduty":
		s.duty(n, params)
	case "opsgenie":
		params["alias"], params["priority"] = from.groupID(n), priorities[n.severity()]
		if n.resolved() {
			params["priority"] = "P5"
		}
	}
	return strings.Join(lines, "\n"), params
}

// titleless are the services that take a title and do not show it.
var titleless = []string{"ifttt", "matrix", "mattermost"}

// duty makes a group one incident of PagerDuty, which ends with the group. A message with a notification of its own is
// an incident of its own, which a person resolves.
func (s *service) duty(n *notification, params types.Params) {
	params["severity"] = n.severity()
	if n.severity() == "none" {
		params["severity"] = "info"
	}
	params["source"], params["client"] = cmp.Or(s.settings.source.instance, "curfew"), "Curfew"
	params["client_url"] = s.settings.source.page(n.about())
	params["dedup_key"], params["action"] = s.settings.source.groupID(n), "trigger"
	if n.resolved() {
		params["action"] = "resolve"
	}
}

// priorities are Opsgenie's.
var priorities = map[string]string{"critical": "P1", "error": "P2", "warning": "P3", "info": "P5", "none": "P5"}

// harmless replaces the characters of which chats make mentions and links: anybody may have chosen the names in a text.
func harmless(text string) string { return chatMarks.Replace(text) }

var chatMarks = strings.NewReplacer("<", "‹", ">", "›", "@", "＠", "](", "] (", "`", "'")

// cut shortens text to a number of characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return string(runes[:most-1]) + "…"
}
