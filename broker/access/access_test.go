package access

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The hashes are RabbitMQ 3.10.8's for the password "secret".
func TestVerify(t *testing.T) {
	for algorithm, hash := range map[string]string{
		SHA256: "kI3GCqG+cq65rBQ9tiUUCREygKhmilKrZEWKSz+H0FJ1fk4/",
		SHA512: "kI3GCsQumTxCJVLTejkIVfRZuZl3yfDkqms0Jb0+jaFpFJlTEHTb/NPoMa7RZHea1PGLSu+kWnrWrtxxy0HSg2V/daY=",
		MD5:    "kI3GCjp/4GmDJUepnA1+aCzaba4=",
		"":     "kI3GCjp/4GmDJUepnA1+aCzaba4=", // RabbitMQ takes a hash without algorithm for MD5
	} {
		octets, err := base64.StdEncoding.DecodeString(hash)
		require.NoError(t, err)
		u := &User{Name: "u", PasswordHash: octets, Algorithm: algorithm}
		assert.True(t, Verify(u, "secret"), algorithm)
		assert.False(t, Verify(u, "Secret"), algorithm)
		assert.False(t, Verify(u, ""), algorithm)
	}
	assert.False(t, Verify(nil, "secret"))
	assert.False(t, Verify(nil, "\x00"), "nor the password of the one who stands in for nobody")
	assert.False(t, Verify(&User{Name: "u", Algorithm: SHA256}, ""), "no password, no login")
	assert.False(t, Verify(&User{Name: "u", Algorithm: SHA256}, "\x00"))
}

func TestSetPassword(t *testing.T) {
	var u, v User
	u.SetPassword("secret")
	v.SetPassword("secret")
	assert.Equal(t, SHA256, u.Algorithm)
	assert.Len(t, u.PasswordHash, 36)
	assert.False(t, bytes.Equal(u.PasswordHash, v.PasswordHash), "salted")
	assert.True(t, Verify(&u, "secret"))
	u.SetPassword("")
	assert.Empty(t, u.PasswordHash)
}

func TestUserAsDefinitionsHaveIt(t *testing.T) {
	const text = `{"name":"app","password_hash":"kI3GCtTkLPrJ9N4yeyDyRY9IG7+JghJpVI/ObPnUCVVEJ1EK","hashing_algorithm":"rabbit_password_hashing_sha256","tags":["management"],"limits":{"max-connections":5}}`
	var u User
	require.NoError(t, json.Unmarshal([]byte(text), &u))
	assert.Len(t, u.PasswordHash, 36)
	assert.True(t, slices.Contains(u.Tags, Management))
	assert.False(t, slices.Contains(u.Tags, Administrator))
	back, err := json.Marshal(u)
	require.NoError(t, err)
	assert.JSONEq(t, text, string(back))
	require.NoError(t, u.Check())
}

func TestCheck(t *testing.T) {
	for _, u := range []User{{}, {Name: "u", Algorithm: "rot13"}, {Name: "u", Limits: Limits{"max-queues": 1}}} {
		assert.ErrorIs(t, u.Check(), ErrInvalid)
	}
	assert.NoError(t, Limits{MaxConnections: -1, MaxQueues: 0}.CheckVHost())
	assert.ErrorIs(t, Limits{MaxChannels: 1}.CheckVHost(), ErrInvalid)
}

func TestTags(t *testing.T) {
	assert.Equal(t, []string{"administrator", "x"}, ParseTags(" administrator ,x,"))
	assert.Empty(t, ParseTags(""))
}

func TestLimits(t *testing.T) {
	l := Limits{MaxQueues: 2, MaxConnections: -1, MaxChannels: 0}
	for _, c := range []struct {
		name    string
		count   int
		reached bool
	}{{MaxQueues, 1, false}, {MaxQueues, 2, true}, {MaxConnections, 1000, false}, {MaxChannels, 0, true}, {"none", 1000, false}} {
		_, reached := l.Reached(c.name, c.count)
		assert.Equal(t, c.reached, reached, "%s %d", c.name, c.count)
	}
	_, reached := Limits(nil).Reached(MaxQueues, 1)
	assert.False(t, reached)
}

func TestGrant(t *testing.T) {
	g, err := Compile(Permission{User: "u", VHost: "/", Configure: "", Write: "^app-", Read: "log"}, nil)
	require.NoError(t, err)
	for _, c := range []struct {
		op      Operation
		name    string
		allowed bool
	}{
		{Configure, "anything", false}, {Configure, "", true}, // the server-named one has its name by then
		{Write, "app-1", true}, {Write, "my-app-1", false}, {Read, "catalogue", true}, {Read, "other", false},
	} {
		assert.Equal(t, c.allowed, g.Allows(c.op, c.name), "%v %s", c.op, c.name)
	}
	assert.False(t, (*Grant)(nil).Allows(Read, "x"))
	assert.True(t, g.AllowsTopic(Write, "any", "key"), "no topic permission, no restriction")
	assert.False(t, (*Grant)(nil).AllowsTopic(Write, "any", "key"))
}

func TestTopicPermissions(t *testing.T) {
	g, err := Compile(Permission{User: "a.b", VHost: "v-z"}, []TopicPermission{
		{Exchange: "x", Write: "^{username}\\.", Read: "^[{vhost}]$"},
		{Exchange: "y", Write: "", Read: "{client_id}"},
	})
	require.NoError(t, err)
	assert.True(t, g.RestrictsTopics([]byte("x")))
	assert.False(t, g.RestrictsTopics([]byte("z")))
	for _, c := range []struct {
		op            Operation
		exchange, key string
		allowed       bool
	}{
		{Write, "x", "a.b.c", true}, {Write, "x", "a-b.c", false}, // the name is not an expression
		{Read, "x", "v", true}, {Read, "x", "-", true}, {Read, "x", "w", false}, // nor a range of a class
		{Write, "y", "k", false}, {Write, "y", "", true}, {Read, "y", "{client_id}", true},
	} {
		assert.Equal(t, c.allowed, g.AllowsTopic(c.op, c.exchange, c.key), "%v %s %s", c.op, c.exchange, c.key)
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, p := range []Permission{{Configure: "("}, {Write: "[z-a]"}, {Read: strings.Repeat("a", 1025)}} {
		_, err := Compile(p, nil)
		assert.ErrorIs(t, err, ErrInvalid)
	}
	_, err := Compile(Permission{}, []TopicPermission{{Write: "["}})
	assert.ErrorIs(t, err, ErrInvalid)
}

// guess ends an attempt, after its wait.
func (t *Throttle) guess(from netip.Addr, now *time.Time, wrong bool) (waited, late time.Duration) {
	a := t.Begin(from, *now)
	*now = now.Add(a.Wait)
	return a.Wait, t.End(a, *now, wrong)
}

func TestThrottle(t *testing.T) {
	var th Throttle
	from, now := netip.MustParseAddr("192.0.2.1"), time.Unix(0, 0)
	for range 5 {
		wait, late := th.guess(from, &now, true)
		require.Zero(t, wait+late)
	}
	for _, seconds := range []time.Duration{1, 2, 4, 4, 4} {
		wait, late := th.guess(from, &now, true)
		require.Zero(t, wait, "one after the other")
		require.Equal(t, seconds*time.Second, late)
		now = now.Add(late)
	}
	for range 100 {
		wait, late := th.guess(from, &now, false)
		require.Zero(t, wait+late, "a right password gives its turn back")
	}
	wait, late := th.guess(netip.MustParseAddr("192.0.2.2"), &now, true)
	assert.Zero(t, wait+late, "another address")
	_, late = th.guess(from, &now, true)
	assert.Positive(t, late, "right ones do not make wrong ones forgotten")

	now = now.Add(forgetAfter + 1)
	wait, late = th.guess(from, &now, true)
	assert.Zero(t, wait+late, "a minute later it is forgotten")
}

// TestThrottleAtOnce makes attempts without waiting for the end of earlier ones.
func TestThrottleAtOnce(t *testing.T) {
	var th Throttle
	from, now := netip.MustParseAddr("192.0.2.1"), time.Unix(0, 0)
	for range 5 {
		th.guess(from, &now, true)
	}
	var attempts []Attempt
	for i := range 1000 {
		a := th.Begin(from, now)
		require.Equal(t, min(time.Duration(i)*guessInterval, longestWait), a.Wait)
		attempts = append(attempts, a)
	}
	for _, a := range attempts {
		th.End(a, now, false) // hung up
	}
	assert.Zero(t, th.Begin(from, now).Wait)
}

func TestThrottleTakesAnIPv6NetworkForOne(t *testing.T) {
	var th Throttle
	now := time.Unix(0, 0)
	for i := range 6 {
		th.guess(netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i+1)), &now, true)
	}
	_, late := th.guess(netip.MustParseAddr("2001:db8::ffff"), &now, true)
	assert.Positive(t, late)
	_, late = th.guess(netip.MustParseAddr("2001:db8:0:1::1"), &now, true)
	assert.Zero(t, late)
	th.guess(netip.Addr{}, &now, true) // a pipe has no address
}

// TestThrottleRemembersTheWorst sends attempts from more addresses than are remembered.
func TestThrottleRemembersTheWorst(t *testing.T) {
	var th Throttle
	now := time.Unix(0, 0)
	worst := netip.MustParseAddr("192.0.2.1")
	for range 6 {
		th.guess(worst, &now, true)
	}
	for i := range 20_000 {
		th.guess(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), &now, true)
	}
	_, late := th.guess(worst, &now, true)
	assert.Positive(t, late)
	assert.Less(t, unsafe.Sizeof(set{})*sourceSets, uintptr(450<<10), "as documented")
}

// TestVerifyTakesAsLong counts what is hashed: the time must not reveal that a user exists,
// whatever the algorithm.
func TestVerifyTakesAsLong(t *testing.T) {
	var hashed []string
	kept := maps.Clone(digests)
	defer func() { digests = kept }()
	digests = map[string]func([]byte) []byte{}
	for name, digest := range kept {
		digests[name] = func(b []byte) []byte {
			hashed = append(hashed, name)
			return digest(b)
		}
	}
	var first []string
	for _, u := range []*User{nil, {}, {PasswordHash: Hash("a")}, {PasswordHash: Hash("a"), Algorithm: SHA256}, {PasswordHash: Hash("a"), Algorithm: SHA512}, {PasswordHash: Hash("a"), Algorithm: MD5}} {
		hashed = nil
		Verify(u, "b")
		if first == nil {
			first = hashed
		}
		assert.NotEmpty(t, hashed)
		assert.Equal(t, first, hashed, "%+v", u)
	}
}

// TestExpressionThatIsNotValidGrantsNothing: the error names the first, and the others count.
func TestExpressionThatIsNotValidGrantsNothing(t *testing.T) {
	g, err := Compile(Permission{Configure: "(?<=a)b", Write: ".*", Read: "("}, []TopicPermission{{Exchange: "x", Write: `(a)\1`, Read: "a"}})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "configure permission: look-behind is not supported")
	require.False(t, g.Allows(Configure, "ab"))
	require.True(t, g.Allows(Write, "ab"))
	require.False(t, g.Allows(Read, "("))
	require.True(t, g.RestrictsTopics([]byte("x")))
	require.False(t, g.AllowsTopic(Write, "x", "aa"))
	require.True(t, g.AllowsTopic(Read, "x", "aa"))
	_, err = Compile(Permission{Configure: `^(?!amq\.).*`, Write: ".*", Read: ".*"}, nil)
	require.NoError(t, err)
}
