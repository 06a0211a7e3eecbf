package deadletters_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
	"curfew/broker/deadletters"
)

// user makes a user who may read everything and write what the pattern matches.
func (d *desk) user(name, write string) *access.User {
	d.t.Helper()
	u := access.User{Name: name, Tags: []string{access.Management}}
	require.NoError(d.t, d.b.PutUser(u))
	require.NoError(d.t, d.b.SetPermission(access.Permission{User: name, VHost: "/", Write: write, Read: ".*"}))
	return &u
}

// TestWhoMayHandleARun: its owner and administrators; to others, who may read its queue too, there is no such run.
func TestWhoMayHandleARun(t *testing.T) {
	d := newDesk(t)
	d.dead(20)
	r := d.runs("")
	owner, reader := d.user("owner", ".*"), d.user("reader", ".*")
	watcher := &access.User{Name: "watcher", Tags: []string{access.Monitoring, access.Policymaker}}
	slow := deadletters.Options{Rate: 0.01}
	run, err := r.Start(t.Context(), deadletters.Order{VHost: "/", Queue: "dlq", User: "owner", Options: slow})
	require.NoError(t, err)
	ownerless, err := r.Start(t.Context(), deadletters.Order{VHost: "/", Queue: "dlq", Options: slow})
	require.NoError(t, err)

	for _, by := range []*access.User{reader, watcher, {}} {
		assert.Empty(t, r.List(by))
		for _, id := range []string{run.ID, ownerless.ID, ""} {
			_, err = r.Get(by, id)
			assert.ErrorIs(t, err, deadletters.ErrNoRun)
			_, err = r.Cancel(by, id)
			assert.ErrorIs(t, err, deadletters.ErrNoRun)
			_, err = r.Resume(by, id)
			assert.ErrorIs(t, err, deadletters.ErrNoRun)
		}
	}
	for _, by := range []*access.User{owner, root} {
		got, err := r.Get(by, run.ID)
		require.NoError(t, err)
		assert.Equal(t, deadletters.Running, got.State, "nobody has stopped it")
		_, err = r.Cancel(by, run.ID)
		require.NoError(t, err)
		got, err = r.Resume(by, run.ID)
		require.NoError(t, err)
		assert.Equal(t, "owner", got.User, "it stays whose it was")
	}
	assert.Len(t, r.List(owner), 1)
	assert.Len(t, r.List(root), 2)
	_, err = r.Get(owner, ownerless.ID)
	assert.ErrorIs(t, err, deadletters.ErrNoRun, "what nobody owns is the administrators'")
}

// TestARunHasTheRightsOfItsOwnerNow: whoever resumes it, and whenever they change.
func TestARunHasTheRightsOfItsOwnerNow(t *testing.T) {
	d := newDesk(t)
	d.dead(20)
	d.user("owner", ".*")
	order := deadletters.Order{VHost: "/", Queue: "dlq", User: "owner", Options: deadletters.Options{Rate: 100}}
	permit := func(read string) {
		require.NoError(t, d.b.SetPermission(access.Permission{User: "owner", VHost: "/", Write: ".*", Read: read}))
	}
	dir := t.TempDir()
	r := d.runs(dir)
	run, err := r.Start(t.Context(), order)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(d.bodies(d.q)) > 0 }, time.Minute, time.Millisecond)
	permit("^q$")
	run = d.wait(r, run.ID, false, run)
	assert.Equal(t, deadletters.Failed, run.State)
	assert.Contains(t, run.Error, "user 'owner' may not read queue 'dlq' in vhost '/'")
	moved := len(d.bodies(d.q))
	assert.Less(t, moved, 20)

	_, err = r.Resume(root, run.ID)
	assert.ErrorIs(t, err, deadletters.ErrOwner)
	_, err = r.Start(t.Context(), order)
	assert.ErrorIs(t, err, deadletters.ErrOwner)
	order.DryRun = true
	_, err = r.Start(t.Context(), order)
	assert.ErrorIs(t, err, deadletters.ErrOwner)
	permit(".*")
	require.NoError(t, d.b.DeleteUser("owner"))
	_, err = r.Resume(root, run.ID)
	assert.ErrorContains(t, err, "user 'owner' is deleted; start another replay")
	assert.Len(t, d.bodies(d.q), moved)

	order.DryRun, order.Rate = false, 0.01
	d.user("owner", ".*")
	run, err = r.Start(t.Context(), order)
	require.NoError(t, err)
	r.Close()
	moved = len(d.bodies(d.q)) // the first goes at once
	require.NoError(t, d.b.DeleteUser("owner"))
	r = d.runs(dir)
	run = d.wait(r, run.ID, false, run)
	assert.Equal(t, deadletters.Failed, run.State, "it does not go on after a restart either")
	assert.Len(t, d.bodies(d.q), moved)
}
