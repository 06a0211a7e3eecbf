package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/discord"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/rocketchat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/pagerduty"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushover"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"
)

// Attempt is the HTTP transport of one notification. Its requests end with ctx.
type Attempt struct {
	Ctx    context.Context //nolint:containedctx // the library's methods take none
	Base   http.RoundTripper
	Status int // of the last answer; 0: none
}

// RoundTrip implements http.RoundTripper. The request ends with its own context or with ctx,
// whichever ends first.
func (a *Attempt) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	unhook := context.AfterFunc(a.Ctx, func() { cancel(a.Ctx.Err()) })
	answer, err := a.Base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		unhook()
		cancel(err)
		return nil, err
	}
	a.Status = answer.StatusCode
	return answer, nil // its body is read within ctx
}

// ClientSetter gives a service of the library a client for one notification; nil if that
// service makes or shares one that cannot be replaced.
func ClientSetter(library types.Service) func(*http.Client) {
	switch s := library.(type) {
	case *ntfy.Service: // which keeps the titles that it sent in its client, so it needs a new one in any case
		return s.SetHTTPClient
	case *pagerduty.Service:
		return s.SetHTTPClient
	case *discord.Service:
		return func(c *http.Client) { s.HTTPClient = c }
	case *rocketchat.Service:
		return func(c *http.Client) { s.Client = c }
	case *pushover.Service:
		return func(c *http.Client) { s.Client = c }
	}
	return nil
}

// New is the transport of a service whose client can be replaced.
func New(library types.Service) *http.Transport {
	push, isNtfy := library.(*ntfy.Service)
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: isNtfy && push.Config.DisableTLSVerification}, //nolint:gosec // the URL says so
	}
}

// IsPermanent reports whether an answer with this status will be the same next time.
func IsPermanent(status int) bool {
	return status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// statusInText finds a status in an error's text: "... status code: 404 Not Found", "... returned status 400".
var statusInText = regexp.MustCompile(`(?i)status[a-z ]*:? *"?([1-5]\d\d)\b|\b([1-5]\d\d) [A-Z][a-z]`)

// StatusOf returns the HTTP status in an error of the library; 0 if it has none.
func StatusOf(err error) int {
	if answer, is := errors.AsType[jsonclient.Error](err); is {
		return answer.StatusCode
	}
	found := statusInText.FindStringSubmatch(err.Error())
	if found == nil {
		return 0
	}
	status, _ := strconv.Atoi(found[1] + found[2])
	return status
}
