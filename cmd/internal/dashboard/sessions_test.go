package dashboard

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSessionsAreBounded(t *testing.T) {
	x := newSessions()
	logIn := func(name string) *http.Request {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", http.NoBody)
		require.NoError(t, x.Begin(w, r, name, "1"))
		r.AddCookie(w.Result().Cookies()[0])
		return r
	}
	first := logIn("first")
	name, stamp := x.Find(first)
	require.Equal(t, "first 1", name+" "+stamp)
	for range maxSessions {
		logIn("other")
	}
	all, err := x.store.All()
	require.NoError(t, err)
	require.Len(t, all, maxSessions)
	name, _ = x.Find(first)
	require.Empty(t, name)
}

// TestSessionsExpire after their time, whether they are used or not.
func TestSessionsExpire(t *testing.T) {
	x := newSessions()
	require.Equal(t, 12*time.Hour, x.manager.Lifetime)
	x.manager.Lifetime = 200 * time.Millisecond
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", http.NoBody)
	began := time.Now()
	require.NoError(t, x.Begin(w, r, "ann", ""))
	r.AddCookie(w.Result().Cookies()[0])
	if name, _ := x.Find(r); time.Since(began) < x.manager.Lifetime { // a busy machine may take longer
		require.Equal(t, "ann", name)
	}
	require.Eventually(t, func() bool {
		name, _ := x.Find(r)
		return name == ""
	}, time.Minute, 20*time.Millisecond)
}
