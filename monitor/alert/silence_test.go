package alert

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestSilence: a silenced alert is not sent until the silence is over; an alert that was sent
// before is resolved all the same.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.Degraded("told before")
		time.Sleep(2 * time.Second)
		require.Len(t, s.receiver.got(), 1)
		made, err := s.AddSilence(Silence{Queue: "ord*", ExpiresAt: time.Now().Add(time.Hour), Comment: "migration"})
		require.NoError(t, err)
		all, err := s.AddSilence(Silence{Event: "schedule_degraded", ExpiresAt: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		for range 100 {
			s.Record(missed("orders", 1))
			s.Record(missed("mails", 1))
			time.Sleep(30 * time.Second)
		}
		posts := s.receiver.got()
		require.Equal(t, "mails", posts[1].CommonLabels["queue"])
		for _, p := range posts[1:] {
			require.NotContains(t, p.CommonAnnotations["summary"], "orders")
		}
		require.Equal(t, "silenced", s.List()[2].State)
		told := len(posts)
		s.Restored()
		time.Sleep(2 * time.Second)
		require.Equal(t, "resolved", s.receiver.got()[told].Status)
		found, err := s.EndSilence(made.ID)
		require.NoError(t, err)
		require.True(t, found)
		for range 3 {
			s.Record(missed("orders", 1))
			time.Sleep(30 * time.Second)
		}
		require.True(t, slices.ContainsFunc(s.receiver.got(), func(m message) bool {
			return strings.Contains(m.CommonAnnotations["summary"], `in queue "orders"`)
		}))
		require.Len(t, s.Silences(), 1)
		time.Sleep(time.Hour)
		require.Empty(t, s.Silences(), "it has expired")
		found, err = s.EndSilence(all.ID)
		require.NoError(t, err)
		require.False(t, found)
	})
}

func TestSilencesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	open := func() *Alerts {
		a, err := New(Options{Dir: dir})
		require.NoError(t, err)
		return a
	}
	made, err := open().AddSilence(Silence{VHost: "sho?", ExpiresAt: time.Now().Add(time.Hour), Author: "me"})
	require.NoError(t, err)
	again := open()
	require.Equal(t, []string{made.ID}, []string{again.Silences()[0].ID})
	require.True(t, again.silences.cover(key{kind: DeadlineMissed, vhost: "shop"}, time.Now()))
	require.False(t, again.silences.cover(key{kind: DeadlineMissed, vhost: "shops"}, time.Now()))
	_, err = again.EndSilence(made.ID)
	require.NoError(t, err)
	require.Empty(t, open().Silences())
	require.NoError(t, os.WriteFile(filepath.Join(dir, silenceFile), []byte("["), 0o600))
	core, logs := observer.New(zap.ErrorLevel)
	damaged, err := New(Options{Dir: dir, Log: zap.New(core)})
	require.NoError(t, err, "deadlines are not to wait for it")
	require.Empty(t, damaged.Silences())
	require.Equal(t, 1, logs.FilterMessageSnippet("file of silences is damaged").Len())
	require.FileExists(t, filepath.Join(dir, silenceFile+".damaged"))
}

func TestSilencesThatAreRefused(t *testing.T) {
	a, err := New(Options{})
	require.NoError(t, err)
	soon := time.Now().Add(time.Hour)
	for want, m := range map[string]Silence{
		"unknown event":    {Event: "late", ExpiresAt: soon},
		"in the past":      {ExpiresAt: time.Now()},
		"say when it ends": {Queue: "orders"},
		"366 days":         {ExpiresAt: time.Now().Add(2 * maxSilence)},
		"longer than":      {Comment: strings.Repeat("x", maxText+1), ExpiresAt: soon},
	} {
		_, err := a.AddSilence(m)
		require.ErrorContains(t, err, want)
	}
	many := slices.Repeat([]Silence{{ExpiresAt: soon}}, maxSilences)
	a.silences.list.Store(&many)
	_, err = a.AddSilence(Silence{ExpiresAt: soon})
	require.ErrorIs(t, err, errFull)
}

// ask has the handler answer one request.
func ask(t *testing.T, a *Alerts, path string) (answer map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	return answer
}

func TestHandler(t *testing.T) {
	k := startTaker(t)
	a, err := New(Options{URLs: []string{"webhook+" + k.url}, File: settingsFile(t, someRules)})
	require.NoError(t, err)
	t.Cleanup(a.delivery.channels[0].channel.(*outbox).sink.(*webhook).Client.CloseIdleConnections)
	a.Record(missed("orders", 7))
	alerts := ask(t, a, "/alerts")
	first := alerts["alerts"].([]any)[0].(map[string]any)
	require.Equal(t, "pending", first["state"])
	require.Equal(t, `messages expired unconsumed: 7 in queue "orders" of vhost "/"`, first["summary"])
	require.Len(t, alerts["sinks"], 2)
	rules := ask(t, a, "/alerts/rules")["rules"].([]any)
	require.Len(t, rules, 3)
	require.Equal(t, []any{"log"}, rules[0].(map[string]any)["to"])
	require.Equal(t, "default", rules[2].(map[string]any)["name"])

	made, err := a.AddSilence(Silence{Queue: "orders", ExpiresAt: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, "silenced", ask(t, a, "/alerts")["alerts"].([]any)[0].(map[string]any)["state"])
	require.Equal(t, made.ID, ask(t, a, "/silences")["silences"].([]any)[0].(map[string]any)["id"])
}

func TestSendTest(t *testing.T) {
	k := startTaker(t)
	a, err := New(Options{URLs: []string{"webhook+" + k.url}})
	require.NoError(t, err)
	t.Cleanup(a.delivery.channels[0].channel.(*outbox).sink.(*webhook).Client.CloseIdleConnections)
	tested, err := a.SendTest(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []Tested{{Sink: "webhook"}}, tested)
	require.Len(t, k.bodies, 2)
	require.Contains(t, string(k.bodies[0]), "CurfewTest")
	require.Contains(t, string(k.bodies[1]), `"status":"resolved"`)
	_, err = a.SendTest(t.Context(), "mail")
	require.ErrorContains(t, err, `unknown sink "mail"`)
}

func TestSilenceOfNoUTF8IsRefused(t *testing.T) {
	a, err := New(Options{})
	require.NoError(t, err)
	_, err = a.AddSilence(Silence{Queue: "x\xff", ExpiresAt: time.Now().Add(time.Hour)})
	require.ErrorContains(t, err, "UTF-8")
	require.Empty(t, a.Silences())
}
