package catalog

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"curfew/broker/access"
)

func TestWhoIsLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := map[string]access.User{Guest: {Name: Guest}, "u": {Name: "u"}}
		for name, u := range users {
			u.SetPassword("right")
			users[name] = u
		}
		find := func(name string) (access.User, bool) { u, ok := users[name]; return u, ok }
		home, away := netip.MustParseAddr("::1"), netip.MustParseAddr("192.0.2.1")
		var g Guard
		for _, x := range []struct {
			name, password string
			from           netip.Addr
			refused        string
		}{
			{"u", "right", away, ""},
			{"u", "wrong", away, "login refused: user 'u': invalid credentials"},
			{"nobody", "right", away, "login refused: user 'nobody': invalid credentials"},
			{Guest, "right", home, ""},
			{Guest, "right", netip.Addr{}, ""},
			{Guest, "right", away, "login refused: user 'guest' can only connect via localhost"},
		} {
			u, err := g.Authenticate(t.Context(), find, x.name, x.password, x.from)
			if x.refused == "" {
				assert.NoError(t, err)
				assert.Equal(t, x.name, u.Name)
				continue
			}
			assert.ErrorIs(t, err, ErrRefused)
			assert.EqualError(t, err, x.refused)
		}
		g.GuestFromAnywhere = true
		_, err := g.Authenticate(t.Context(), find, Guest, "right", away)
		assert.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		for err = nil; err == nil || ctx.Err() == nil; {
			_, err = g.Authenticate(ctx, find, "u", "wrong", away)
		}
		_, err = g.Authenticate(ctx, find, "u", "wrong", away)
		assert.ErrorIs(t, err, context.DeadlineExceeded, "guesses wait, but not longer than the client")
		assert.LessOrEqual(t, time.Since(began), 2*time.Second)
	})
}
