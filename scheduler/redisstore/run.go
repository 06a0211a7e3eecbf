package redisstore

import (
	"cmp"
	"context"

	"github.com/redis/go-redis/v9"
)

// run runs a script on shards in one round trip. It returns the strings that each replied
// with, nil where it failed, and the first error. A server that does
// not know the script, as after a restart or SCRIPT FLUSH, is sent its source.
func (s *Store) run(ctx context.Context, operation string, script *redis.Script, shards []int, args func(i int) []any) ([][]string, error) {
	pipe := s.client.Pipeline()
	sent := make([]*redis.Cmd, len(shards))
	for i, shard := range shards {
		sent[i] = script.EvalSha(ctx, pipe, s.due[shard:shard+1], args(i)...)
	}
	_, err := pipe.Exec(ctx)
	if err != nil && !isReply(err) {
		return nil, explain(operation, "", err)
	}
	replies := make([][]string, len(shards))
	var first error
	for i, cmd := range sent {
		key := s.due[shards[i]]
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			cmd = script.Eval(ctx, s.client, []string{key}, args(i)...)
		}
		reply, err := cmd.StringSlice()
		if err != nil {
			first = cmp.Or(first, explain(operation, key, err))
			continue
		}
		replies[i] = reply
	}
	return replies, first
}

// alien is a member that is not a shadow of its shard: somebody else wrote it, or it was
// written with another number of shards.
type alien struct {
	shard  int
	member string
}

// discard removes aliens, as far as Redis lets it. Those that stay come up again.
func (s *Store) discard(ctx context.Context, aliens []alien) {
	if len(aliens) == 0 {
		return
	}
	pipe := s.client.Pipeline()
	for _, a := range aliens {
		pipe.ZRem(ctx, s.due[a.shard], a.member)
	}
	_, _ = pipe.Exec(ctx)
}

func (s *Store) allShards() []int {
	all := make([]int, len(s.due))
	for i := range all {
		all[i] = i
	}
	return all
}
