package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// Check inspects the server and its settings. It needs INFO and TIME.
func (s *Store) Check(ctx context.Context) (status scheduler.Status, err error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.checkNode(ctx, s.client)
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		one, err := s.checkNode(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		status = worse(status, one)
		return err
	})
	return status, err
}

// worse has the warnings of both, and the greater skew.
func worse(a, b scheduler.Status) scheduler.Status {
	if max(b.SkewMillis, -b.SkewMillis) > max(a.SkewMillis, -a.SkewMillis) {
		a.SkewMillis = b.SkewMillis
	}
	for _, w := range b.Warnings {
		if !slices.Contains(a.Warnings, w) {
			a.Warnings = append(a.Warnings, w)
		}
	}
	return a
}

func (s *Store) checkNode(ctx context.Context, node redis.Cmdable) (scheduler.Status, error) {
	text, err := node.Info(ctx).Result()
	if err != nil {
		return scheduler.Status{}, explain("check: INFO", "", err)
	}
	before := s.now()
	clock, err := node.Time(ctx).Result()
	if err != nil {
		return scheduler.Status{}, explain("check: TIME", "", err)
	}
	after := s.now()
	return scheduler.Status{
		SkewMillis: deadline.At(clock).Sub((before + after) / 2).Milliseconds(),
		Warnings:   warn(parseInfo(text)),
	}, nil
}

// parseInfo reads INFO's lines of name:value.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func warn(info map[string]string) (warnings []string) {
	if role := info["role"]; role != "" && role != "master" {
		warnings = append(warnings, "Redis is a replica, which refuses writes: connect to its master, or through Sentinel")
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		warnings = append(warnings, fmt.Sprintf("Redis may evict the whole schedule at once: its maxmemory-policy is %s, set it to noeviction", policy))
	}
	if version := info["redis_version"]; tooOld(version) {
		warnings = append(warnings, "Redis "+version+" is too old: 6.2 is needed")
	}
	return warnings
}

// tooOld reports whether a server lacks ZRANGE BYSCORE, which came with 6.2.
func tooOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, _ := strconv.Atoi(minor)
	return err == nil && (m < 6 || m == 6 && n < 2)
}
