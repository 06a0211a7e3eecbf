package redisstore

import (
	"context"
	"strings"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// Scan calls fn with every stored shadow, each at least once, in pages that fn may change
// but not keep. A shadow stored or removed during the scan may or may not be included.
// Scan removes members that are not shadows. It ends with fn's first error or its own.
func (s *Store) Scan(ctx context.Context, fn func(page []deadline.Ref) error) error {
	var page []deadline.Ref
	for cursor := uint64(0); ; {
		members, next, err := s.client.ZScan(ctx, s.due, cursor, "", batchLen).Result()
		if err != nil {
			return explain("scan", s.due, err)
		}
		var aliens []any
		page = page[:0]
		for i := 0; i < len(members); i += 2 { // members[i+1] is its score
			shadow, err := scheduler.ParseText(members[i])
			switch {
			case err == nil:
				page = append(page, shadow)
			case !strings.HasPrefix(members[i], epochPrefix):
				aliens = append(aliens, members[i])
			}
		}
		s.discard(ctx, aliens)
		if len(page) > 0 {
			if err := fn(page); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
