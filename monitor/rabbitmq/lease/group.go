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

// Group is what the Curfews beside one virtual host know about each other: which of them live, what each does with the
// queues, and which queues nobody may keep until an operator allows it. It is safe for concurrent use.
type Group struct {
	client                         redis.UniversalClient
	members, reports, let, allowed string // keys
	token                          string
}

// View is a Group at the time of a beat.
type View struct {
	Members []string          // the names of all that live, this one among them, sorted
	Reports []Report          // those of the others
	LetGo   map[string]string // queues that nobody may keep, with the reason, one word and a sentence
	Allowed map[string]string // queues of which an operator has ended that in the last day
}

// Report is what a member last reported.
type Report struct {
	Name string // of the member
	Text string // the argument of its last Beat
}

// NewGroup makes the group of a virtual host. name is the name of this Curfew, for people. It does not connect.
func NewGroup(client redis.UniversalClient, at Space, name string) *Group {
	tag := fmt.Sprintf("{curfew:keep:%s:%s}", url.QueryEscape(at.Cluster), url.QueryEscape(at.VHost)) // begins the keys of the whole virtual host
	return &Group{client: client, members: tag + ":members", reports: tag + ":reports", let: tag + ":let-go", allowed: tag + ":allowed", token: name + " " + rand.Text()}
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
	if v.LetGo, err = g.client.HGetAll(ctx, g.let).Result(); err != nil {
		return v, fmt.Errorf("lease: read queues let go: %w", err)
	}
	if v.Allowed, err = g.client.HGetAll(ctx, g.allowed).Result(); err != nil {
		return v, fmt.Errorf("lease: read queues allowed: %w", err)
	}
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

// letGo says why queue ARGV[1] was let go of, and allow that an operator has ended that: it is not only that the reason is
// gone, since a Redis that has lost its data has none either. allow returns whether there was a reason.
// KEYS[1] reasons, KEYS[2] allowed; ARGV[1] queue, ARGV[2] reason.
var (
	letGo = redis.NewScript(`
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])`)
	allow = redis.NewScript(`
redis.call('HSET', KEYS[2], ARGV[1], '')
redis.call('EXPIREAT', KEYS[2], redis.call('TIME')[1] + 86400)
return redis.call('HDEL', KEYS[1], ARGV[1])`)
)

// LetGo records that nobody may keep a queue until an operator allows it.
func (g *Group) LetGo(ctx context.Context, queue, reason string) error {
	if err := letGo.Run(ctx, g.client, []string{g.let, g.allowed}, queue, reason).Err(); err != nil {
		return fmt.Errorf("lease: let go: %w", err)
	}
	return nil
}

// Allow ends that. It reports whether the queue had been let go.
func (g *Group) Allow(ctx context.Context, queue string) (was bool, err error) {
	n, err := allow.Run(ctx, g.client, []string{g.let, g.allowed}, queue).Int()
	if err != nil {
		return false, fmt.Errorf("lease: allow: %w", err)
	}
	return n > 0, nil
}

// nameOf returns the name in a token.
func nameOf(token string) string {
	if at := strings.LastIndexByte(token, ' '); at >= 0 {
		return token[:at]
	}
	return token
}
