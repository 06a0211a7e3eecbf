package incident

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"
	parameters "github.com/nicholas-fedor/shoutrrr/pkg/format"
	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"curfew/monitor/printable"
)

// serviceTimeout is how long a service may take. Most give up by themselves after ten seconds.
const serviceTimeout = 30 * time.Second

// maxSummary bounds the summary, in characters. A text with its links then fits into one message of each service.
const maxSummary = 1200

// maxLink bounds a link in a text, in bytes. A longer one, to a queue with a very long name, is replaced by a link to the
// list of alerts.
const maxLink = 300

// service sends alerts as short text to a service that shoutrrr knows: chat, mail, push messages, on-call duty.
type service struct {
	settings sinkSettings
	takes    []string                      // the parameters that it knows
	open     func() (types.Service, error) // for each alert: some keep what they have sent
	busy     chan struct{}                 // holds a token while the library sends
}

// newService makes a service. Its error repeats no part of the URL but the scheme.
func newService(s sinkSettings) (*service, error) {
	library, err := s.open(false)
	if err != nil {
		return nil, fmt.Errorf("url: %s", redact(s.url, err.Error()))
	}
	config := parameters.NewPropKeyResolver(parameters.GetServiceConfig(library))
	return &service{
		settings: s, busy: make(chan struct{}, 1), takes: config.QueryFields(),
		open: func() (types.Service, error) { return s.open(true) },
	}, nil
}

// open opens the service at the URL. A service that logs in does so only if it is to send.
func (s sinkSettings) open(sends bool) (types.Service, error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, errors.New("it is not a URL") // err repeats it
	}
	kind := kindOfSink(s.url)
	library, err := (&router.ServiceRouter{}).NewService(kind)
	if err == nil && strings.Contains(u.Scheme, "+") {
		custom, can := library.(types.CustomURLService)
		if !can {
			return nil, fmt.Errorf("%s cannot be followed by a plus sign and another scheme", kind)
		}
		u, err = custom.GetConfigURLFromCustom(u)
	}
	switch {
	case err != nil:
	case kind == "matrix" && !sends: // its Initialize logs in
		err = parameters.GetServiceConfig(library).SetURL(u)
	default:
		err = library.Initialize(u, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return library, nil
}

// send sends a once. If the service does not answer within serviceTimeout, the alert counts as failed. The library takes
// no context, so the request goes on in the background, and the service may still take it: it may get an alert twice.
func (s *service) send(ctx context.Context, a *notice) error {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("incident: send: the last notification is still being sent: %w", ctx.Err())
	}
	text, params := s.message(a)
	answer := make(chan error, 1)
	go func() {
		defer func() { <-s.busy }()
		defer func() {
			if p := recover(); p != nil { // a service that fails must not take the broker down
				answer <- fmt.Errorf("it panicked: %v", p)
			}
		}()
		library, err := s.open()
		if err == nil {
			err = library.Send(text, &params)
		}
		answer <- s.failure(err)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("incident: send: no answer, though the service may have taken it: %w", ctx.Err())
	}
}

// failure returns an error of the library without its secrets, permanent if trying again is useless.
func (s *service) failure(err error) error {
	if err == nil {
		return nil
	}
	redacted := fmt.Errorf("incident: send: %s", redact(s.settings.url, err.Error()))
	if isPermanent(statusOf(err)) {
		return backoff.Permanent(redacted)
	}
	return redacted
}

// message is a as text, and as the parameters that this service takes.
func (s *service) message(a *notice) (text string, params types.Params) {
	title := a.title()
	since := "since " + printable.Clock(a.Since) + " UTC"
	if a.source.instance != "" {
		since += ", instance " + a.source.instance
	}
	lines := []string{chatMarks.Replace(cut(a.text(), maxSummary)), since}
	if a.Command != "" && a.Ended == nil {
		lines = append(lines, chatMarks.Replace(cut(a.Command, maxLink)))
	}
	for _, link := range []string{a.page(), a.Runbook} {
		if len(link) > maxLink {
			link = a.links()["incidents"]
		}
		if link != "" {
			lines = append(lines, link)
		}
	}
	params = types.Params{}
	kind := kindOfSink(s.settings.url)
	id := "curfew/" + cut(a.source.instance, 64) + "/" + a.ID // an incident's, from its beginning to its end
	if slices.Contains(s.takes, types.TitleKey) && !slices.Contains(titleless, kind) {
		params.SetTitle(title)
	} else {
		lines = slices.Insert(lines, 0, title)
	}
	switch kind {
	case "pagerduty": // an incident there, which ends with the alert
		params["severity"], params["source"], params["client"] = a.severity(), cmp.Or(a.source.instance, "curfew"), "Curfew"
		params["client_url"], params["dedup_key"], params["action"] = a.page(), id, "trigger"
		if a.Ended != nil {
			params["action"] = "resolve"
		}
	case "opsgenie":
		params["alias"], params["priority"] = id, priorities[a.severity()]
		if a.Ended != nil {
			params["priority"] = "P5"
		}
	}
	return strings.Join(lines, "\n"), params
}

// titleless are the services that take a title and do not show it.
var titleless = []string{"ifttt", "matrix", "mattermost"}

// priorities are Opsgenie's.
var priorities = map[string]string{"critical": "P1", "error": "P2", "warning": "P3", "info": "P5"}

// chatMarks replaces the characters of which chats make mentions and links: anybody may have chosen the names in a text.
var chatMarks = strings.NewReplacer("<", "‹", ">", "›", "@", "＠", "](", "] (", "`", "'")

// cut shortens text to a number of characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return string(runes[:most-1]) + "…"
}
