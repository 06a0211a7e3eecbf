package incident

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cenkalti/backoff/v5"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/discord"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/opsgenie"
	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"
	"github.com/stretchr/testify/require"
)

// TestRefusedNotificationsAreNotRetried: an answer that will be the same next time ends the attempts; after any other there are more.
func TestRefusedNotificationsAreNotRetried(t *testing.T) {
	k := startTaker(t)
	k.answer = "no"
	host := strings.TrimPrefix(k.url, "http://")
	for _, address := range []string{
		"ntfy://" + host + "/topic?scheme=http", "generic+" + k.url + "/plain", "gotify://" + host + "/AzyoeNS.D4iJLVa?disabletls=yes",
		"mattermost://" + host + "/token?disabletls=yes",
	} {
		s := serviceAt(t, address)
		for code, permanent := range map[int]bool{400: true, 401: true, 403: true, 404: true, 408: false, 429: false, 500: false, 503: false} {
			k.code = code
			err := s.send(t.Context(), hostile())
			require.Error(t, err, "%s answers %d", address, code)
			_, is := errors.AsType[*backoff.PermanentError](err)
			require.Equal(t, permanent, is, "%s answers %d: %v", address, code, err)
		}
	}
}

// TestRefusedPostsAreNotRetried: likewise of a webhook.
func TestRefusedPostsAreNotRetried(t *testing.T) {
	for code, permanent := range map[int]bool{307: true, 400: true, 404: true, 408: false, 429: false, 500: false} {
		err := post(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		_, is := errors.AsType[*backoff.PermanentError](err)
		require.Equal(t, permanent, is, "%d: %v", code, err)
	}
}

// TestStatusOfErrors as the library words them.
func TestStatusOfErrors(t *testing.T) {
	for want, errs := range map[int][]error{
		404: {
			fmt.Errorf("x: %w", jsonclient.Error{StatusCode: 404}), fmt.Errorf("%w: %s", discord.ErrUnexpectedStatus, "404 Not Found"),
			errors.New(`failed to send notification to pushover device: "a", response status "404 Not Found"`),
		},
		422: {fmt.Errorf("%w: %d - %s", opsgenie.ErrUnexpectedStatus, 422, "{}"), errors.New("failed to send Signal message: server returned status 422")},
		503: {errors.New("webhook status failure: 503 Service Unavailable")},
		0:   {errors.New("dial tcp 10.0.0.1:404: connect: connection refused"), errors.New("webhook response failure: invalid_token"), io.EOF},
	} {
		for _, err := range errs {
			require.Equal(t, want, statusOf(err), err)
		}
	}
}
