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

// Check inspects the server and its settings. It needs INFO and TIME; without
// CONFIG GET it may not know the persistence.
func (s *Store) Check(ctx context.Context) (scheduler.Status, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.checkNode(ctx, s.client)
	}
	var mu sync.Mutex
	var all []scheduler.Status
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		status, err := s.checkNode(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, status)
		return err
	})
	if err != nil {
		return scheduler.Status{}, err
	}
	return worst(all), nil
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
	info := parseInfo(text)
	status := scheduler.Status{
		Version:         info["redis_version"],
		Role:            info["role"],
		MaxmemoryPolicy: info["maxmemory_policy"],
		Persistence:     persistence(ctx, node, info),
		SkewMillis:      deadline.At(clock).Sub((before + after) / 2).Milliseconds(),
	}
	status.Warnings = warn(status)
	return status, nil
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

func persistence(ctx context.Context, node redis.Cmdable, info map[string]string) string {
	if info["aof_enabled"] == "1" {
		return "aof"
	}
	config, err := node.ConfigGet(ctx, "save").Result()
	switch {
	case err != nil:
		return "unknown"
	case config["save"] == "":
		return "none"
	}
	return "rdb"
}

func warn(s scheduler.Status) (warnings []string) {
	if s.Role != "" && s.Role != "master" {
		warnings = append(warnings, "Redis is a replica, which refuses writes: connect to its master, or through Sentinel")
	}
	if s.MaxmemoryPolicy != "" && s.MaxmemoryPolicy != "noeviction" {
		warnings = append(warnings, fmt.Sprintf("Redis may evict the whole schedule at once: its maxmemory-policy is %s, set it to noeviction", s.MaxmemoryPolicy))
	}
	if tooOld(s.Version) {
		warnings = append(warnings, "Redis "+s.Version+" is too old: 6.2 is needed")
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

// worst returns the status with the most warnings, and adds those of all others and the
// greatest skew.
func worst(all []scheduler.Status) (status scheduler.Status) {
	for _, s := range all {
		if status.Version == "" || len(s.Warnings) > len(status.Warnings) {
			s, status = status, s
		}
		if max(s.SkewMillis, -s.SkewMillis) > max(status.SkewMillis, -status.SkewMillis) {
			status.SkewMillis = s.SkewMillis
		}
		for _, w := range s.Warnings {
			if !slices.Contains(status.Warnings, w) {
				status.Warnings = append(status.Warnings, w)
			}
		}
	}
	return status
}
