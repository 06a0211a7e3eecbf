package alert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"curfew/monitor/alert/internal/transport"

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
			require.Equal(t, want, transport.StatusOf(err), err)
		}
	}
}

// TestRequestEndsWithItsNotification where the library takes a client: what was given up does not arrive later.
func TestRequestEndsWithItsNotification(t *testing.T) {
	var ended atomic.Bool
	arrived := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
		ended.Store(true)
	}))
	t.Cleanup(server.Close)
	s := serviceAt(t, "ntfy://"+strings.TrimPrefix(server.URL, "http://")+"/topic?scheme=http")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	require.ErrorContains(t, s.send(ctx, hostile()), "canceled")
	require.Eventually(t, ended.Load, 20*time.Second, time.Millisecond, "the server sees the client go")
	require.Eventually(t, func() bool { return len(s.busy) == 0 }, 20*time.Second, time.Millisecond, "the next notification may be sent")
}

// TestClientsCanBeReplaced of the services for which doc.go says so.
func TestClientsCanBeReplaced(t *testing.T) {
	for address, can := range map[string]bool{
		"ntfy://ntfy.sh/topic": true, "discord://token-of-it@1234567890": true, "pagerduty:///eb243592faa24ba2a5511afdf565c889": true,
		"pushover://shoutrrr:token@user": true, "rocketchat://rocketchat.example/tokenA/tokenB/channel": true, "generic+https://hooks.example/x": false,
	} {
		require.Equal(t, can, serviceAt(t, address).setClient != nil, address)
	}
}
