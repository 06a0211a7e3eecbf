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

// CheckURL returns nil if address is the URL of a sink. Its error repeats no part of the URL but the scheme.
func CheckURL(address string) error {
	_, err := sinkSettings{url: address}.sink(&delivery{})
	return err
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

// sink makes the sink. Its error says what is wrong with the settings, and repeats no part of the URL but the scheme.
func (s sinkSettings) sink(d *delivery) (sink, error) {
	kind := kindOfSink(s.url)
	address := strings.TrimPrefix(s.url, kind+"+")
	switch {
	case s.secret != "" && kind != webhookKind:
		return nil, errors.New("secret: only what goes to a webhook is signed")
	case s.url == "":
		return nil, errors.New("url is missing")
	case kind == "":
		return nil, fmt.Errorf("url: it has no scheme: want one of %s", strings.Join(sinkKinds(), ", "))
	case (kind == webhookKind || kind == alertmanagerKind) && !isWebAddress(address):
		return nil, fmt.Errorf("url: want %s+https://host/path or %[1]s+http://host/path", kind)
	case kind == webhookKind:
		return &webhook{newPoster(address), s.secret}, nil
	case kind == alertmanagerKind:
		u, _ := url.Parse(address)
		u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api/v2/alerts") + "/api/v2/alerts"
		return &manager{newPoster(u.String()), func() []*notice { return d.firing(s.name) }}, nil
	case s.url == eventsURL:
		return exchangeSink(d.publish), nil
	case kind == exchangeKind:
		return nil, fmt.Errorf("url: events are published in this Curfew itself, to one exchange: want %s", eventsURL)
	case kind == "http" || kind == "https":
		return nil, fmt.Errorf("url: say what %s:// is: %s+%[1]s:// for Alertmanager's webhook format, %s+%[1]s:// for an Alertmanager, generic+%[1]s:// for plain text",
			kind, webhookKind, alertmanagerKind)
	case !slices.Contains(sinkKinds(), kind):
		return nil, fmt.Errorf("url: unknown kind of sink %q: want one of %s", kind, strings.Join(sinkKinds(), ", "))
	}
	return newService(s)
}

// sinkKinds are the schemes that a sink's URL may begin with.
func sinkKinds() []string {
	services := (&router.ServiceRouter{}).ListServices()
	kinds := slices.DeleteFunc(services, func(kind string) bool { return kind == "logger" }) // the log is a sink already
	slices.Sort(kinds)
	return append([]string{webhookKind, alertmanagerKind, exchangeKind}, kinds...)
}
