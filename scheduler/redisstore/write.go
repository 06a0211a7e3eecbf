package redisstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

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

// Apply implements scheduler.Store. When Redis is full it still removes.
func (s *Store) Apply(ctx context.Context, add, remove []deadline.Ref) error {
	err := s.score(ctx, false, len(add), func(i int) scheduler.Later {
		return scheduler.Later{Ref: add[i], At: add[i].Deadline}
	})
	if err != nil && !isReply(err) {
		return err
	}
	return cmp.Or(err, s.remove(ctx, remove))
}

// Settle implements scheduler.Store.
func (s *Store) Settle(ctx context.Context, done []deadline.Ref, later []scheduler.Later) error {
	err := s.remove(ctx, done)
	if err != nil && !isReply(err) {
		return err
	}
	return cmp.Or(err, s.score(ctx, true, len(later), func(i int) scheduler.Later { return later[i] }))
}

// score gives n members their scores. With present it adds none.
func (s *Store) score(ctx context.Context, present bool, n int, at func(int) scheduler.Later) error {
	return s.write(ctx, "ZADD", n, func(pipe redis.Pipeliner, from, to int) error {
		args := redis.ZAddArgs{XX: present, Members: make([]redis.Z, 0, to-from)}
		for i := from; i < to; i++ {
			later := at(i)
			member, err := scheduler.AppendText(make([]byte, 0, scheduler.TextLen), later.Ref)
			if err := cmp.Or(err, scheduler.CheckInstant(later.At)); err != nil {
				return err
			}
			args.Members = append(args.Members, redis.Z{Score: float64(later.At), Member: member})
		}
		pipe.ZAddArgs(ctx, s.due, args)
		return nil
	})
}

func (s *Store) remove(ctx context.Context, shadows []deadline.Ref) error {
	return s.write(ctx, "ZREM", len(shadows), func(pipe redis.Pipeliner, from, to int) error {
		members := make([]any, 0, to-from)
		for _, shadow := range shadows[from:to] {
			member, err := scheduler.AppendText(make([]byte, 0, scheduler.TextLen), shadow)
			if err != nil {
				return err
			}
			members = append(members, member)
		}
		pipe.ZRem(ctx, s.due, members...)
		return nil
	})
}

// write sends commands for n members, a page at a time. If the server refuses a page, the
// others are still sent; the first error is returned.
func (s *Store) write(ctx context.Context, verb string, n int, add func(pipe redis.Pipeliner, from, to int) error) (first error) {
	for page := 0; page < n; page += pageLen {
		end := min(page+pageLen, n)
		pipe := s.client.Pipeline()
		for from := page; from < end; from += batchLen {
			if err := add(pipe, from, min(from+batchLen, end)); err != nil {
				return cmp.Or(first, err)
			}
		}
		_, err := pipe.Exec(ctx)
		err = explain(fmt.Sprintf("%s %d members", verb, end-page), s.due, err)
		first = cmp.Or(first, err)
		if err != nil && !isReply(err) {
			break
		}
	}
	return first
}
