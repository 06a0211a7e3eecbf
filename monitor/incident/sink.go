package incident

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
)

// logName is the sink that every notification goes to.
const logName = "log"

// The schemes of the sinks that are Curfew's own, each before +http or +https. eventsURL is the
// whole URL of the exchange for events.
const (
	webhookKind      = "webhook"
	alertmanagerKind = "alertmanager"
	exchangeKind     = "amqp"
	eventsURL        = "amqp:curfew.events"
)

// sinkSettings is a sink as it is configured. A sink whose settings stay equal is kept.
type sinkSettings struct {
	name   string
	url    string // a secret
	secret string // signs what a webhook is posted
}

func isExchange(s sinkSettings) bool { return s.url == eventsURL }

// CheckURL returns nil if address is the URL of a sink. Its error repeats no part of the URL but the scheme.
func CheckURL(address string) error {
	s := sinkSettings{url: address}
	return s.check()
}

// SplitURLs splits a list of URLs at its commas. A comma that no scheme follows belongs to the URL.
func SplitURLs(text string) (list []string) {
	for part := range strings.SplitSeq(text, ",") {
		if kindOfSink(strings.TrimSpace(part)) != "" || len(list) == 0 {
			list = append(list, "")
		} else {
			list[len(list)-1] += ","
		}
		list[len(list)-1] += part
	}
	for i, address := range list {
		list[i] = strings.Trim(address, " ,\n")
	}
	return slices.DeleteFunc(list, func(address string) bool { return address == "" })
}

// kindOfSink is the scheme of a sink's URL, as far as the plus sign; "" if it has none.
func kindOfSink(address string) string {
	if kind := scheme.FindStringSubmatch(address); kind != nil {
		return kind[1]
	}
	return ""
}

var scheme = regexp.MustCompile(`^([a-z]+)(\+[a-z]+)?:`)

// check returns what is wrong, or nil.
func (s sinkSettings) check() error {
	kind := kindOfSink(s.url)
	if s.secret != "" && kind != webhookKind {
		return errors.New("secret: only what goes to a webhook is signed")
	}
	switch kind {
	case "":
		if s.url == "" {
			return errors.New("url is missing")
		}
		return fmt.Errorf("url: it has no scheme: want one of %s", strings.Join(sinkKinds(), ", "))
	case webhookKind, alertmanagerKind:
		if !isWebAddress(strings.TrimPrefix(s.url, kind+"+")) {
			return fmt.Errorf("url: want %s+https://host/path or %[1]s+http://host/path", kind)
		}
		return nil
	case exchangeKind:
		if s.url != eventsURL {
			return fmt.Errorf("url: events are published in this Curfew itself, to one exchange: want %s", eventsURL)
		}
		return nil
	case "http", "https":
		return fmt.Errorf("url: say what %s:// is: %s+%[1]s:// for Alertmanager's webhook format, %s+%[1]s:// for an Alertmanager, generic+%[1]s:// for plain text",
			kind, webhookKind, alertmanagerKind)
	}
	if !slices.Contains(sinkKinds(), kind) {
		return fmt.Errorf("url: unknown kind of sink %q: want one of %s", kind, strings.Join(sinkKinds(), ", "))
	}
	_, err := newService(s)
	return err
}

// sinkKinds are the schemes that a sink's URL may begin with.
func sinkKinds() []string {
	services := (&router.ServiceRouter{}).ListServices()
	kinds := slices.DeleteFunc(services, func(kind string) bool { return kind == "logger" }) // the log is a sink already
	slices.Sort(kinds)
	return append([]string{webhookKind, alertmanagerKind, exchangeKind}, kinds...)
}

// newSink makes a sink of settings that have been checked.
func (d *delivery) newSink(s sinkSettings) sink {
	switch kindOfSink(s.url) {
	case webhookKind:
		return &webhook{s.poster(), s.secret}
	case alertmanagerKind:
		return &manager{s.poster(), func() []*notice { return d.firing(s.name) }}
	case exchangeKind:
		return exchangeSink(d.publish)
	}
	made, err := newService(s)
	if err != nil {
		panic("incident: a sink that was checked cannot be made: " + err.Error())
	}
	return made
}

// poster returns a poster to the webhook or the Alertmanager.
func (s sinkSettings) poster() *poster {
	u, _ := url.Parse(strings.TrimPrefix(s.url, kindOfSink(s.url)+"+")) // it was checked
	if kindOfSink(s.url) == alertmanagerKind {
		u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api/v2/alerts") + "/api/v2/alerts"
	}
	return newPoster(u.String())
}
