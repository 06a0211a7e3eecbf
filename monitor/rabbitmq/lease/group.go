package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Group is what the Curfews beside one virtual host know about each other: which of them live, what each does with the
// queues, and whether an operator has paused everything. It is safe for concurrent use.
type Group struct {
	client                  redis.UniversalClient
	members, reports, pause string // keys
	token                   string
}

// View is a Group at the time of a beat.
type View struct {
	Members []string // the names of all that live, this one among them, sorted
	Reports []Report // those of the others
	Pause   Pause
}

// Report is what a member last reported.
type Report struct {
	Name string // of the member
	Text string // the argument of its last Beat
}

// NewGroup makes the group of a virtual host. name is the name of this Curfew, for people. It does not connect.
func NewGroup(client redis.UniversalClient, at Space, name string) *Group {
	tag := fmt.Sprintf("{curfew:keep:%s:%s}", url.QueryEscape(at.Cluster), url.QueryEscape(at.VHost)) // begins the keys of the whole virtual host
	return &Group{client: client, members: tag + ":members", reports: tag + ":reports", pause: tag + ":pause", token: name + " " + rand.Text()}
}

// beat notes by Redis's clock that a member lives, with its report, and drops members that have stopped beating. When
// nobody beats, nothing stays behind.
// KEYS[1] members, KEYS[2] reports; ARGV[1] token, ARGV[2] how long the beat is valid in ms, ARGV[3] report. Returns the
// tokens and the reports of all members, each token before its report.
var beat = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
local members = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #members, 2 do
	if tonumber(members[i + 1]) <= now then
		redis.call('ZREM', KEYS[1], members[i])
		redis.call('HDEL', KEYS[2], members[i])
	end
end
redis.call('EXPIREAT', KEYS[1], time[1] + 60)
redis.call('EXPIREAT', KEYS[2], time[1] + 60)
return redis.call('HGETALL', KEYS[2])`)

// Beat announces that this Curfew lives, with its report, and returns what is known about all. A beat is valid for length.
func (g *Group) Beat(ctx context.Context, report string) (v View, err error) {
	all, err := beat.Run(ctx, g.client, []string{g.members, g.reports}, g.token, length.Milliseconds(), report).StringSlice()
	if err != nil {
		return v, fmt.Errorf("lease: beat: %w", err)
	}
	for pair := range slices.Chunk(all, 2) {
		name := nameOf(pair[0])
		v.Members = append(v.Members, name)
		if pair[0] != g.token {
			v.Reports = append(v.Reports, Report{name, pair[1]})
		}
	}
	slices.Sort(v.Members)
	pause, err := g.client.Get(ctx, g.pause).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return v, fmt.Errorf("lease: read whether all is paused: %w", err)
	}
	v.Pause = Pause(pause)
	return v, nil
}

// Leave announces that this Curfew ends.
func (g *Group) Leave(ctx context.Context) error {
	_, err := g.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, g.members, g.token)
		p.HDel(ctx, g.reports, g.token)
		return nil
	})
	if err != nil {
		return fmt.Errorf("lease: leave: %w", err)
	}
	return nil
}

// Pause is what an operator last wanted: "" if Redis does not know, since nobody has paused anything, or it has lost its data.
type Pause string

const (
	Paused  Pause = "paused"
	Resumed Pause = "resumed" // in the last day
)

// SetPause records what an operator wants, and returns what was recorded before.
func (g *Group) SetPause(ctx context.Context, pause Pause) (last Pause, err error) {
	var before *redis.StringCmd
	var lasts time.Duration // 0 is forever
	if pause == Resumed {
		lasts = 24 * time.Hour
	}
	_, err = g.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		before = p.Get(ctx, g.pause)
		p.Set(ctx, g.pause, string(pause), lasts)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("lease: pause: %w", err)
	}
	return Pause(before.Val()), nil
}

// nameOf returns the name in a token.
func nameOf(token string) string {
	if at := strings.LastIndexByte(token, ' '); at >= 0 {
		return token[:at]
	}
	return token
}
