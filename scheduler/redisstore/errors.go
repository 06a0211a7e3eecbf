package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrOwned is wrapped by Begin's, Epoch's and Refresh's error when another process
// owns the instance's schedule.
var ErrOwned = errors.New("the schedule is owned by another Curfew")

// errEpoch is wrapped by Claim's error when the schedule is not the one Begin left: it
// was emptied, restored or replaced.
var errEpoch = errors.New("what Redis holds is not what was written to it")

// explain adds to an error what was done and, where an operator is needed, what to do.
func explain(operation, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "EPOCH"):
		return fmt.Errorf("redisstore: %s: %w", operation, errEpoch)
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("redisstore: %s: key %s is not a sorted set: delete or rename it, or choose another CURFEW_INSTANCE: %w", operation, key, err)
	case redis.IsOOMError(err):
		return fmt.Errorf("redisstore: %s: Redis is full: raise its maxmemory: %w", operation, err)
	case redis.IsPermissionError(err), strings.Contains(err.Error(), "user executing the script"): // in a script it has no code of its own
		return fmt.Errorf("redisstore: %s: the Redis user lacks a right: %w", operation, err)
	case redis.IsAuthError(err):
		return fmt.Errorf("redisstore: %s: Redis refuses the credentials: %w", operation, err)
	}
	return fmt.Errorf("redisstore: %s: %w", operation, err)
}

// isReply reports whether err is the server's answer to a command, and not a failure to
// reach it.
func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}
