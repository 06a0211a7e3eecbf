package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct{ user, operator, want Definition }{
		{Definition{"max-length": int64(5)}, Definition{"max-length": int64(3)}, Definition{"max-length": int64(3)}},
		{Definition{"max-length": int64(3)}, Definition{"max-length": int64(5)}, Definition{"max-length": int64(3)}},
		{Definition{"max-length": int64(5), "expires": int64(7)}, Definition{"message-ttl": int64(9)},
			Definition{"max-length": int64(5), "expires": int64(7), "message-ttl": int64(9)}},
		{Definition{"delivery-limit": int64(-1)}, Definition{"delivery-limit": int64(5)}, Definition{"delivery-limit": int64(5)}},
		{Definition{"delivery-limit": int64(7)}, Definition{"delivery-limit": int64(-1)}, Definition{"delivery-limit": int64(7)}},
		{Definition{"delivery-limit": int64(7)}, Definition{"delivery-limit": int64(5)}, Definition{"delivery-limit": int64(5)}},
		{Definition{"overflow": "drop-head"}, Definition{"overflow": "reject-publish"}, Definition{"overflow": "reject-publish"}},
		{Definition{"queue-version": int64(1)}, Definition{"queue-version": int64(2)}, Definition{"queue-version": int64(2)}},
	} {
		before := len(c.user)
		require.Equal(t, c.want, merge(c.user, c.operator))
		require.Len(t, c.user, before, "what was given is not changed")
	}
	require.Nil(t, Effective(nil, nil))
	require.Equal(t, Definition{"expires": int64(1)}, Effective(nil, &Policy{Definition: Definition{"expires": int64(1)}}))
	require.Equal(t, Definition{"expires": int64(2)}, Effective(&Policy{Definition: Definition{"expires": int64(2)}}, nil))
}

// TestMergeAgainstModel: whatever both set, no limit is above either, and nothing is lost or made up.
func TestMergeAgainstModel(t *testing.T) {
	limits := []string{"message-ttl", "expires", "max-length", "max-length-bytes", "delivery-limit"}
	definitions := rapid.MapOf(rapid.SampledFrom(limits), rapid.Int64Range(1, 9))
	rapid.Check(t, func(t *rapid.T) {
		user, operator := Definition{}, Definition{}
		for key, n := range definitions.Draw(t, "user") {
			user[key] = n
		}
		for key, n := range definitions.Draw(t, "operator") {
			operator[key] = n
		}
		merged := merge(user, operator)
		for _, key := range limits {
			u, hasU := user.Integer(key)
			o, hasO := operator.Integer(key)
			m, has := merged.Integer(key)
			if has != (hasU || hasO) {
				t.Fatalf("%s: there %v, of user %v, of operator %v", key, has, hasU, hasO)
			}
			if hasU && m > u || hasO && m > o || has && m != u && m != o {
				t.Fatalf("%s: %d of %d and %d", key, m, u, o)
			}
		}
	})
}
