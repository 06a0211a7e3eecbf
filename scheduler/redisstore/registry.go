package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"curfew/scheduler"
)

const (
	// maxPeers is the most instances the registry may name for Peers to read it.
	maxPeers = 256
	// maxShards is the most shards that an entry may have.
	maxShards = 1024
	// maxEntry is how long an entry may be, in bytes.
	maxEntry = 512
	// watchMillis is how long a caller of Watch has the turn.
	watchMillis = 30_000

	oldRegistryKey = "{curfew:instances}" // of older instances, which count in ms
	registryKey    = oldRegistryKey + ":2"
)

func peerText(p scheduler.Peer) string {
	return fmt.Sprintf("%013d|%d|%s", p.BeatAt, p.Shards, p.Owner)
}

// parsePeer refuses what Beat does not write. Whatever follows the shards is the owner.
func parsePeer(name, text string) (p scheduler.Peer, ok bool) {
	parts := strings.SplitN(text, "|", 3)
	if len(parts) < 3 || len(text) > maxEntry || !utf8.ValidString(text) || !validInstance(name) {
		return scheduler.Peer{}, false
	}
	beatAt, errBeat := strconv.ParseInt(parts[0], 10, 64)
	shards, errShards := strconv.Atoi(parts[1])
	p = scheduler.Peer{Name: name, BeatAt: beatAt, Shards: shards, Owner: parts[2]}
	return p, errBeat == nil && errShards == nil && shards >= 1 && shards <= maxShards && peerText(p) == text
}

func validInstance(name string) bool {
	return name != "" && len(name) <= 255 && utf8.ValidString(name) && !strings.ContainsAny(name, "{}")
}

// beatScript records a heartbeat. The field is removed first because a full Redis
// refuses HSET, even of an existing field, unless the script has written before.
//
//	KEYS[1] the registry
//	ARGV[1] the instance; ARGV[2] its shards, a bar, and its owner
//	result  1
var beatScript = redis.NewScript(`
local time = redis.call('TIME')
local at = string.format('%010d%03d', time[1], math.floor(time[2] / 1000))
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], at .. '|' .. ARGV[2])
return 1
`)

// leaveScript removes an instance from the registry, if the process that runs it was
// the last to write the entry.
//
//	KEYS[1] the registry
//	ARGV[1] the instance; ARGV[2] the owner
//	result  1
var leaveScript = redis.NewScript(`
local entry = redis.call('HGET', KEYS[1], ARGV[1])
if entry and string.sub(entry, -#ARGV[2]) == ARGV[2] then
	redis.call('HDEL', KEYS[1], ARGV[1])
end
return 1
`)

// peersScript reads the registry, unless it is larger than anybody needs.
//
//	KEYS[1] the registry
//	ARGV[1] how many instances at most
//	result  instance, entry, instance, entry...; the error CROWD when there are more
var peersScript = redis.NewScript(`
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[1]) then
	return redis.error_reply('CROWD too many instances')
end
return redis.call('HGETALL', KEYS[1])
`)

// forgetScript removes an entry that has not changed.
//
//	KEYS[1] the registry
//	ARGV[1] the instance; ARGV[2] its entry
//	result  1
var forgetScript = redis.NewScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then
	redis.call('HDEL', KEYS[1], ARGV[1])
end
return 1
`)

// Beat tells other instances that this one is alive. It is due every scheduler.RefreshEvery;
// Close tells them that this one has left.
func (s *Store) Beat(ctx context.Context) error {
	s.beaten.Store(true)
	entry := fmt.Sprintf("%d|%s", len(s.due), s.owner)
	err := beatScript.Run(ctx, s.client, []string{registryKey}, s.instance, entry).Err()
	return explainType("beat", registryKey, "hash", err)
}

// leave takes this instance off the registry.
func (s *Store) leave(ctx context.Context) {
	if s.beaten.Load() {
		_ = leaveScript.Run(ctx, s.client, []string{registryKey}, s.instance, s.owner).Err()
	}
}

// Peers returns the other instances, in order of their names. It leaves out entries that
// make no sense; a registry with more than maxPeers is an error.
func (s *Store) Peers(ctx context.Context) ([]scheduler.Peer, error) {
	entries, err := peersScript.Run(ctx, s.client, []string{registryKey}, maxPeers).StringSlice()
	if redis.HasErrorPrefix(err, "CROWD") {
		return nil, fmt.Errorf("redisstore: peers: key %s names more than %d instances: delete it; instances that are alive come back within seconds",
			registryKey, maxPeers)
	}
	if err != nil {
		return nil, explainType("peers", registryKey, "hash", err)
	}
	var peers []scheduler.Peer
	for entry := range slices.Chunk(entries, 2) {
		if p, ok := parsePeer(entry[0], entry[1]); ok && p.Name != s.instance {
			peers = append(peers, p)
		}
	}
	slices.SortFunc(peers, func(a, b scheduler.Peer) int { return strings.Compare(a.Name, b.Name) })
	return peers, nil
}

// Watch reports whether it is this instance's turn to speak for p, which is silent. One
// instance keeps the turn until half a minute after its last call. With a full Redis every
// instance has it.
func (s *Store) Watch(ctx context.Context, p scheduler.Peer) (mine bool, err error) {
	key := fmt.Sprintf("{curfew:%s:0}:watcher", p.Name)
	watcher, err := ownScript.Run(ctx, s.client, []string{key}, s.owner, watchMillis).Text()
	if redis.IsOOMError(err) {
		return true, nil
	}
	return watcher == s.owner, explainType("watch", key, "string", err)
}

// Forget takes p off the registry unless it has beaten since. It comes back with its
// next heartbeat.
func (s *Store) Forget(ctx context.Context, p scheduler.Peer) error {
	err := forgetScript.Run(ctx, s.client, []string{registryKey}, p.Name, peerText(p)).Err()
	return explainType("forget", registryKey, "hash", err)
}
