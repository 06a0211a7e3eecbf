package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// OwnerLease is how long an owner keeps others out after its last call of Refresh or Epoch.
// One of them must be called every scheduler.RefreshEvery.
const (
	OwnerLease = 10 * time.Second
)

// epochPrefix begins the member that marks the sorted set as begun. Its score is
// infinite, so that no claim takes it.
const epochPrefix = "epoch|"

// ownScript takes or renews the ownership. Even a full Redis renews it.
//
//	KEYS[1] the owner's key
//	ARGV[1] who asks; ARGV[2] the lease in ms
//	result  who owns it now
var ownScript = redis.NewScript(`
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
elseif not owner then
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
	owner = ARGV[1]
end
return owner
`)

// releaseScript ends the ownership, if it is ours.
//
//	KEYS[1] the owner's key
//	ARGV[1] who gives it back
//	result  1
var releaseScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then
	redis.call('PEXPIRE', KEYS[1], 0)
end
return 1
`)

// runID is the part of a script that finds out which server process runs it. A
// user may be denied INFO; then it is always "".
const runID = `
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
`

// beginScript marks the sorted set with an epoch in place of any other.
//
//	KEYS[1] the sorted set
//	ARGV[1] the epoch's member
//	result  the server's run id
var beginScript = redis.NewScript(runID + `
for _, old in ipairs(redis.call('ZRANGE', KEYS[1], 'inf', 'inf', 'BYSCORE')) do
	redis.call('ZREM', KEYS[1], old)
end
redis.call('ZADD', KEYS[1], 'inf', ARGV[1])
return run
`)

// epochScript looks for the mark.
//
//	KEYS[1] the sorted set
//	ARGV[1] the epoch's member
//	result  {"1" if it is there, otherwise "0", the server's run id}
var epochScript = redis.NewScript(runID + `
return {redis.call('ZSCORE', KEYS[1], ARGV[1]) and '1' or '0', run}
`)

// Begin takes ownership of the schedule and starts a new epoch, ahead of a
// rebuild. Stored shadows stay. The error wraps ErrOwned when another process owns the
// schedule; a process that was killed owns it for OwnerLease.
func (s *Store) Begin(ctx context.Context) error {
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	epoch := epochPrefix + rand.Text()
	s.setBegun("", "") // or claims would miss the old one during the change
	run, err := beginScript.Run(ctx, s.client, []string{s.due}, epoch).Text()
	if err != nil {
		return explain("begin", s.due, err)
	}
	s.setBegun(epoch, run)
	return nil
}

// Epoch reports whether the schedule is still the one that Begin left: not deleted or
// flushed, and not on a server that has restarted, was restored or has been promoted
// since, which may have lost the last writes. It also renews the ownership as Refresh
// does; ok is false without Begin, and with any error.
func (s *Store) Epoch(ctx context.Context) (ok bool, err error) {
	epoch, run := s.begun()
	if epoch == "" {
		return false, nil
	}
	if err := s.Refresh(ctx); err != nil {
		return false, err
	}
	reply, err := epochScript.Run(ctx, s.client, []string{s.due}, epoch).StringSlice()
	if err != nil {
		return false, explain("epoch", s.due, err)
	}
	return reply[0] == "1" && reply[1] == run, nil
}

// begun returns the epoch of the last Begin, "" without one, and the server process
// it found.
func (s *Store) begun() (epoch, run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch, s.run
}

func (s *Store) setBegun(epoch, run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch, s.run = epoch, run
}

// Refresh renews the ownership for OwnerLease, or takes it if nobody has it. The
// error wraps ErrOwned when another process has it.
func (s *Store) Refresh(ctx context.Context) error {
	owner, err := ownScript.Run(ctx, s.client, []string{s.ownerKey}, s.owner, OwnerLease.Milliseconds()).Text()
	if err != nil {
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			return fmt.Errorf("redisstore: own: key %s is not a string: delete it: %w", s.ownerKey, err)
		}
		return explain("own", s.ownerKey, err)
	}
	if owner != s.owner {
		return fmt.Errorf("redisstore: %w (%s): if that was killed, it lets go within %v; otherwise give each Curfew that uses this Redis a CURFEW_INSTANCE of its own; this one is %q",
			ErrOwned, owner, OwnerLease, s.instance)
	}
	return nil
}
