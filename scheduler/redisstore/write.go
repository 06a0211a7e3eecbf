package redisstore

import (
	"cmp"
	"context"
	"fmt"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

const (
	// batchLen is the most members one command names: it holds the server for some
	// 0.2 ms.
	batchLen = 512
	// pageLen is the most members one round trip carries.
	pageLen = 8 * batchLen
)

// verb is a command that names members of a sorted set.
type verb struct {
	name    string
	present bool // touches only members that are present (XX)
	scores  bool // gives each member a score
}

var (
	put    = verb{name: "ZADD", scores: true}
	move   = verb{name: "ZADD", scores: true, present: true}
	remove = verb{name: "ZREM"}
)

// Apply implements scheduler.Store. When Redis is full it still removes.
func (s *Store) Apply(ctx context.Context, add, rem []deadline.Ref) error {
	errAdd := s.write(ctx, put, len(add), func(i int) scheduler.Later {
		return scheduler.Later{Ref: add[i], At: add[i].Deadline}
	})
	if errAdd != nil && !isReply(errAdd) {
		return errAdd
	}
	return cmp.Or(errAdd, s.write(ctx, remove, len(rem), func(i int) scheduler.Later {
		return scheduler.Later{Ref: rem[i], At: rem[i].Deadline}
	}))
}

// Settle implements scheduler.Store.
func (s *Store) Settle(ctx context.Context, done []deadline.Ref, later []scheduler.Later) error {
	errDone := s.write(ctx, remove, len(done), func(i int) scheduler.Later {
		return scheduler.Later{Ref: done[i], At: done[i].Deadline}
	})
	if errDone != nil && !isReply(errDone) {
		return errDone
	}
	return cmp.Or(errDone, s.write(ctx, move, len(later), func(i int) scheduler.Later { return later[i] }))
}

// write sends n members with their scores, a page at a time. If the server refuses a page,
// the others are still sent; the first error is returned.
func (s *Store) write(ctx context.Context, v verb, n int, at func(int) scheduler.Later) (first error) {
	for from := 0; from < n; from += pageLen {
		err := s.writePage(ctx, v, from, min(from+pageLen, n), at)
		first = cmp.Or(first, err)
		if err != nil && !isReply(err) {
			break
		}
	}
	return first
}

func (s *Store) writePage(ctx context.Context, v verb, from, to int, at func(int) scheduler.Later) error {
	texts, err := newTexts(from, to, at)
	if err != nil {
		return err
	}
	pipe := s.client.Pipeline()
	keys := make([]string, 0, len(s.due)+pageLen/batchLen)
	open := make([][]any, len(s.due))
	send := func(shard int) {
		keys = append(keys, s.due[shard])
		pipe.Do(ctx, open[shard]...)
		open[shard] = nil
	}
	for i := from; i < to; i++ {
		shard := s.shardOf(at(i).Queue)
		if open[shard] == nil {
			open[shard] = v.begin(s.due[shard], min(batchLen, to-i))
		}
		open[shard] = v.add(open[shard], &texts[2*(i-from)], &texts[2*(i-from)+1])
		if len(open[shard]) == cap(open[shard]) {
			send(shard)
		}
	}
	for shard, args := range open {
		if args != nil {
			send(shard)
		}
	}
	sent, err := pipe.Exec(ctx)
	for i, cmd := range sent {
		if cmd.Err() != nil {
			return explain(fmt.Sprintf("%s %d members", v.name, to-from), keys[i], cmd.Err())
		}
	}
	return explain(v.name, "", err)
}

// begin opens a command with room for n members.
func (v verb) begin(key string, n int) []any {
	room := 2 + n
	if v.scores {
		room += n
	}
	if v.present {
		return append(make([]any, 0, room+1), v.name, key, "XX")
	}
	return append(make([]any, 0, room), v.name, key)
}

func (v verb) add(args []any, score, member *string) []any {
	if v.scores {
		args = append(args, score)
	}
	return append(args, member)
}

// newTexts returns the score and the member of each, in turn, all cut from one string.
// go-redis gets pointers to them, which saves an allocation for each.
func newTexts(from, to int, at func(int) scheduler.Later) ([]string, error) {
	const width = scheduler.InstantLen + scheduler.TextLen
	buf := make([]byte, 0, width*(to-from))
	for i := from; i < to; i++ {
		later := at(i)
		var err error
		if buf, err = scheduler.AppendInstant(buf, later.At); err != nil {
			return nil, err
		}
		if buf, err = scheduler.AppendText(buf, later.Ref); err != nil {
			return nil, err
		}
	}
	all, texts := string(buf), make([]string, 0, 2*(to-from))
	for ; all != ""; all = all[width:] {
		texts = append(texts, all[:scheduler.InstantLen], all[scheduler.InstantLen:width])
	}
	return texts, nil
}
