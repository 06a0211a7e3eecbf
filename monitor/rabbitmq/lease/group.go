package lease

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Group is what the Curfews beside one virtual host know of each other: who lives, and which queues nobody may keep
// until an operator allows it. It is safe for concurrent use.
type Group struct {
	client       redis.UniversalClient
	members, let string // keys
	token        string
}

// View is a Group as a beat found it.
type View struct {
	Members []string          // their names, this one among them, sorted
	LetGo   map[string]string // queues that nobody may keep, with the reason, one word and a sentence
}

// NewGroup makes the group of a virtual host. name is this Curfew's, for people. It does not connect.
func NewGroup(client redis.UniversalClient, vhost, name string) *Group {
	tag := fmt.Sprintf("{curfew:keep:%s}", url.QueryEscape(vhost))
	return &Group{client: client, members: tag + ":members", let: tag + ":let-go", token: name + " " + rand.Text()}
}

// beat notes by Redis's clock that a member lives, and drops those that do not.
// KEYS[1] members; ARGV[1] token, ARGV[2] how long that is valid in ms. Returns the tokens of all members.
var beat = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return redis.call('ZRANGE', KEYS[1], 0, -1)`)

// Beat says that this Curfew lives, which is valid for Length, and returns what is known of all.
func (g *Group) Beat(ctx context.Context) (v View, err error) {
	tokens, err := beat.Run(ctx, g.client, []string{g.members}, g.token, Length.Milliseconds()).StringSlice()
	if err != nil {
		return v, fmt.Errorf("lease: beat: %w", err)
	}
	for _, token := range tokens {
		v.Members = append(v.Members, nameOf(token))
	}
	slices.Sort(v.Members)
	if v.LetGo, err = g.client.HGetAll(ctx, g.let).Result(); err != nil {
		return v, fmt.Errorf("lease: read queues let go: %w", err)
	}
	return v, nil
}

// Leave says that this Curfew ends.
func (g *Group) Leave(ctx context.Context) error {
	if err := g.client.ZRem(ctx, g.members, g.token).Err(); err != nil {
		return fmt.Errorf("lease: leave: %w", err)
	}
	return nil
}

// LetGo says that nobody may keep a queue until an operator allows it.
func (g *Group) LetGo(ctx context.Context, queue, reason string) error {
	if err := g.client.HSet(ctx, g.let, queue, reason).Err(); err != nil {
		return fmt.Errorf("lease: let go: %w", err)
	}
	return nil
}

// Allow ends that. It reports whether the queue was let go.
func (g *Group) Allow(ctx context.Context, queue string) (was bool, err error) {
	n, err := g.client.HDel(ctx, g.let, queue).Result()
	if err != nil {
		return false, fmt.Errorf("lease: allow: %w", err)
	}
	return n > 0, nil
}

// nameOf is the name in a token.
func nameOf(token string) string {
	if at := strings.LastIndexByte(token, ' '); at >= 0 {
		return token[:at]
	}
	return token
}
