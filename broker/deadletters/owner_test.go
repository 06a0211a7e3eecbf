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
	require.NoError(d.t, d.b.Accounts.PutUser(u))
	require.NoError(d.t, d.b.Accounts.SetPermission(access.Permission{User: name, VHost: "/", Write: write, Read: ".*"}))
	return &u
}

// TestARunHasTheRightsOfItsOwnerNow: whoever resumes it, and whenever they change.
func TestARunHasTheRightsOfItsOwnerNow(t *testing.T) {
	d := newDesk(t)
	const letters = 1000 // ten seconds of them
	d.dead(letters)
	d.user("owner", ".*")
	order := deadletters.Request{VHost: "/", Queue: "dlq", User: "owner", Options: deadletters.Options{Rate: 100}}
	permit := func(read string) {
		require.NoError(t, d.b.Accounts.SetPermission(access.Permission{User: "owner", VHost: "/", Write: ".*", Read: read}))
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
	assert.Less(t, moved, letters)

	_, err = r.Resume(run.ID)
	assert.ErrorIs(t, err, deadletters.ErrOwner)
	_, err = r.Start(t.Context(), order)
	assert.ErrorIs(t, err, deadletters.ErrOwner)
	order.DryRun = true
	_, err = r.Start(t.Context(), order)
	assert.ErrorIs(t, err, deadletters.ErrOwner)
	permit(".*")
	require.NoError(t, d.b.Accounts.DeleteUser("owner"))
	_, err = r.Resume(run.ID)
	assert.ErrorContains(t, err, "user 'owner' is deleted; start another replay")
	assert.Len(t, d.bodies(d.q), moved)

	order.DryRun, order.Rate = false, 0.01
	d.user("owner", ".*")
	run, err = r.Start(t.Context(), order)
	require.NoError(t, err)
	r.Close()
	moved = len(d.bodies(d.q)) // the first goes at once
	require.NoError(t, d.b.Accounts.DeleteUser("owner"))
	r = d.runs(dir)
	run = d.wait(r, run.ID, false, run)
	assert.Equal(t, deadletters.Failed, run.State, "it does not go on after a restart either")
	assert.Len(t, d.bodies(d.q), moved)
}
