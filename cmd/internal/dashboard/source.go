package dashboard

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/overview"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// errForbidden: the user may not open the dashboard.
var errForbidden = errors.New("this user may not open the dashboard")

// Users are the users who may log in. *catalog.Accounts is one. Safe for concurrent use.
type Users interface {
	// Authenticate returns the user with that name and password. Its error is about these, or
	// is that of ctx.
	Authenticate(ctx context.Context, name, password string, from netip.Addr) (access.User, error)
	// User is false for a user that no longer exists.
	User(name string) (access.User, bool)
}

// viewer returns the user, and whether their tags allow them to open the dashboard.
func viewer(u *access.User) (ui.User, bool) {
	user := ui.User{Actor: operate.Actor{Name: u.Name, Tags: u.Tags, Face: operate.Dashboard}, Stamp: hex.EncodeToString(u.PasswordHash) + " " + strings.Join(u.Tags, ",")}
	user.Admin = user.Has(operate.Rules[operate.ChangeAlerts].Role)
	return user, user.Has(operate.Rules[operate.LookAround].Role)
}

// authenticate returns the user with a name and a password. The error is errForbidden, among others.
func (d *Dashboard) authenticate(r *http.Request, name, password string) (ui.User, error) {
	u, err := d.Users.Authenticate(r.Context(), name, password, operate.AddressOf(r.RemoteAddr))
	user, may := viewer(&u)
	if err == nil && !may {
		err = errForbidden
	}
	return user, err
}

// user is false for a user that no longer exists, or may no longer open the dashboard.
func (d *Dashboard) user(name string) (ui.User, bool) {
	u, ok := d.Users.User(name)
	user, may := viewer(&u)
	return user, ok && may
}

// Monitor is what the dashboard needs of the monitor. *monitor.Monitor is one.
type Monitor = overview.Monitor

// state is the broker's state. Without a broker there is only the time.
func (d *Dashboard) state() operate.State {
	if d.Operations == nil {
		return operate.State{NowMillis: time.Now().UnixMilli(), Started: d.started}
	}
	return d.Operations.State()
}
