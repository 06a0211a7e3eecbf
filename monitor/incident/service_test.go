package incident

import (
	"context"
	"curfew/monitor/printable"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/stretchr/testify/require"
)

// TestSinkURLs: what a URL makes, and what is said of one that makes nothing.
func TestSinkURLs(t *testing.T) {
	for _, address := range []string{
		"webhook+https://hooks.example/x", "webhook+http://user:secret@127.0.0.1:9000/x", "alertmanager+http://alertmanager:9093", "amqp:curfew.events",
		"slack://hook:TAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook",
		"teams+https://org.webhook.office.com/webhookb2/11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/IncomingWebhook/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2ESyij_gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05",
		"discord://token-of-it@1234567890", "telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=@channel",
		"pagerduty:///eb243592faa24ba2a5511afdf565c889", "opsgenie://api.opsgenie.com/eb243592-faa2-4ba2-a551q-1afdf565c889",
		"smtp://user:password@mail.example:587/?from=curfew@example.com&to=a@example.com,b@example.com", "ntfy://ntfy.sh/topic", "gotify://gotify.example/AzyoeNS.D4iJLVa",
		"matrix://user:password@matrix.example:8448/?rooms=!roomID", "mattermost://mattermost.example/token", "generic+https://hooks.example/x", "generic://hooks.example/x?template=json",
	} {
		require.NoError(t, CheckURL(address), address)
	}
	for address, want := range map[string]string{
		"":                        "url is missing",
		"hooks.example/token":     "it has no scheme: want one of webhook",
		"https://x.example/token": "say what https:// is",
		"webhook://x/token":       "want webhook+https://host/path or webhook+http://",
		"webhook+ftp://x/token":   "want webhook+https",
		"alertmanager+http:///":   "want alertmanager+https",
		"amqp://host/token":       "want amqp:curfew.events",
		"logger://":               "unknown kind of sink",
		"slack://token":           "slack: ",
		"ntfy+https://x/token":    "cannot be followed by a plus sign",
		"discord://token@":        "discord: ",
		"smtp://u:token@x/":       "smtp: ",
		"ntfy://u:token@x/%zz":    "it is not a URL",
	} {
		err := CheckURL(address)
		require.ErrorContains(t, err, want, address)
		require.NotContains(t, err.Error(), "token", address)
	}
}

func TestURLsAreSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"ntfy://a/b":                 {"ntfy://a/b"},
		"ntfy://a/b, slack://c@d ,":  {"ntfy://a/b", "slack://c@d"},
		"webhook+https://a/b,amqp:x": {"webhook+https://a/b", "amqp:x"},
		"smtp://h/?to=a@x.com,b@x.com,generic+http://c:80/": {"smtp://h/?to=a@x.com,b@x.com", "generic+http://c:80/"},
	} {
		got := SplitURLs(text)
		if len(want) == 0 {
			require.Empty(t, got)
			continue
		}
		require.Equal(t, want, got)
	}
}

// serviceAt is a service of that URL.
func serviceAt(t *testing.T, address string) *service {
	t.Helper()
	s, err := newService(sinkSettings{name: "x", url: address})
	require.NoError(t, err)
	return s
}

// TestServicesAreSentText: over real HTTP, with a title of its own where the service has one.
func TestServicesAreSentText(t *testing.T) {
	k := startTaker(t)
	k.answer = "{}"
	host := strings.TrimPrefix(k.url, "http://")
	require.NoError(t, serviceAt(t, "ntfy://"+host+"/topic?scheme=http").send(t.Context(), hostile()))
	require.NoError(t, serviceAt(t, "generic+"+k.url+"/plain").send(t.Context(), over(hostile())))
	require.NoError(t, serviceAt(t, "generic+"+k.url+"/json?template=json").send(t.Context(), hostile()))
	require.Len(t, k.bodies, 3)
	require.Equal(t, "Warning: messages expire unconsumed", k.requests[0].Header.Get("Title"))
	for i, body := range k.bodies {
		text := string(body)
		if i == 2 {
			var fields map[string]string
			require.NoError(t, json.Unmarshal(body, &fields))
			require.Equal(t, "Warning: messages expire unconsumed", fields["title"])
			text = fields["message"]
		}
		require.Contains(t, text, "essages expire unconsumed: ")
		require.Contains(t, text, "\nsince "+printable.Clock(hostile().Since)+" UTC, instance here\n")
		require.Equal(t, i != 1, strings.Contains(text, "\ncurfew queue show x ‹!channel›\n"), "nothing is to be done about what is over")
		require.Contains(t, text, "\nhttps://runbooks.example/CurfewDeadlineMissed.md")
		require.NotContains(t, text, "<!channel>", "a queue's name mentions nobody")
		require.LessOrEqual(t, utf8.RuneCountInString(text), 2_000, "Discord's limit")
		require.Less(t, len(text), 4_096, "Telegram's limit")
	}
}

// TestTitlesChange: what is over has a title of its own, from a service that has sent one before.
func TestTitlesChange(t *testing.T) {
	k := startTaker(t)
	k.answer = "{}"
	s := serviceAt(t, "ntfy://"+strings.TrimPrefix(k.url, "http://")+"/topic?scheme=http")
	require.NoError(t, s.send(t.Context(), hostile()))
	require.NoError(t, s.send(t.Context(), over(hostile())))
	require.Equal(t, "Warning: messages expire unconsumed", k.requests[0].Header.Get("Title"))
	require.Equal(t, "Over: messages expired unconsumed", k.requests[1].Header.Get("Title"))
}

// TestTitlesAreSent to every service: as a parameter or in the text.
func TestTitlesAreSent(t *testing.T) {
	for _, address := range []string{"ntfy://ntfy.sh/topic", "mattermost://mattermost.example/token", "pagerduty:///eb243592faa24ba2a5511afdf565c889"} {
		text, params := serviceAt(t, address).message(over(hostile()))
		require.True(t, params["title"] == "Over: messages expired unconsumed" || strings.HasPrefix(text, "Over: messages expired unconsumed\n"), address)
	}
}

// TestOnCallServices: what is over resolves what was triggered.
func TestOnCallServices(t *testing.T) {
	duty := serviceAt(t, "pagerduty:///eb243592faa24ba2a5511afdf565c889")
	_, first := duty.message(hostile())
	_, last := duty.message(over(hostile()))
	require.Equal(t, "trigger", first["action"])
	require.Equal(t, "resolve", last["action"])
	require.Equal(t, "warning", first["severity"])
	require.Equal(t, first["dedup_key"], last["dedup_key"])
	for name := range first {
		require.Contains(t, duty.takes, name)
	}
	genie := serviceAt(t, "opsgenie://api.opsgenie.com/eb243592-faa2-4ba2-a551q-1afdf565c889")
	_, first = genie.message(hostile())
	require.Equal(t, "P3", first["priority"])
	require.NotEmpty(t, first["alias"])
	for name := range first {
		require.Contains(t, genie.takes, name)
	}
}

// TestServiceDoesNotTellItsURL: neither when the service refuses nor when it is not there.
func TestServiceDoesNotTellItsURL(t *testing.T) {
	k := startTaker(t)
	k.code, k.answer = http.StatusForbidden, "the t0kenOf-it of /hooks/t0kenOf-it is wrong"
	host := strings.TrimPrefix(k.url, "http://")
	for _, address := range []string{
		"ntfy://name:t0kenOf-it@" + host + "/t0kenOf-it?scheme=http", "generic+" + k.url + "/hooks/t0kenOf-it", "generic+http://127.0.0.1:1/hooks/t0kenOf-it",
		"gotify://127.0.0.1:1/AzyoeNS.D4iJLVa?disabletls=yes", "smtp://name:t0kenOf-it@127.0.0.1:1/?from=a@b.c&to=d@e.f",
	} {
		err := serviceAt(t, address).send(t.Context(), hostile())
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "t0ken", address)
		require.NotContains(t, err.Error(), "AzyoeNS", address)
	}
}

// hanging is a service that comes back when it is let go.
type hanging struct {
	types.Service
	calls chan string
	until chan error
	panic bool
}

func (h hanging) Send(text string, _ *types.Params) error {
	h.calls <- text
	if h.panic {
		panic("no such field")
	}
	return <-h.until
}

// TestServiceThatHangs costs thirty seconds and one goroutine, and one that panics costs nothing.
func TestServiceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceAt(t, "generic://hooks.example/x")
		h := hanging{calls: make(chan string, 10), until: make(chan error)}
		s.open = func() (types.Service, error) { return h, nil }
		started := time.Now()
		require.ErrorIs(t, s.send(t.Context(), hostile()), context.DeadlineExceeded)
		require.Equal(t, serviceTimeout, time.Since(started))
		require.ErrorContains(t, s.send(t.Context(), hostile()), "still being sent")
		require.Len(t, h.calls, 1)
		h.until <- errors.New("late")
		synctest.Wait()
		go func() { h.until <- nil }()
		require.NoError(t, s.send(t.Context(), hostile()))
		h.panic = true
		require.ErrorContains(t, s.send(t.Context(), hostile()), "no such field")
	})
}

// TestEveryServiceIsAKind that may be configured, but the one that only logs.
func TestEveryServiceIsAKind(t *testing.T) {
	kinds := sinkKinds()
	for _, kind := range []string{"slack", "teams", "discord", "pagerduty", "opsgenie", "smtp", "ntfy", "telegram"} {
		require.Contains(t, kinds, kind)
	}
	require.False(t, slices.Contains(kinds, "logger"))
}
