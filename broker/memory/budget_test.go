package memory

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoHoldsMostGivesWay(t *testing.T) {
	b := New(100)
	var cut []string
	open := func(user, name string) *Account {
		return b.Open(user, func(error) { cut = append(cut, name) })
	}
	flood1, flood2, small := open("mallory", "flood1"), open("mallory", "flood2"), open("alice", "small")
	require.NoError(t, flood1.Take(40))
	require.NoError(t, flood2.Take(50))
	require.NoError(t, small.Take(10))
	require.Empty(t, cut)

	// Alice needs more than there is: the larger account of the user who holds most is
	// evicted.
	require.NoError(t, small.Take(45))
	require.Equal(t, []string{"flood2"}, cut)
	require.EqualValues(t, 95, b.Used())
	var exceeded *Exceeded
	require.ErrorAs(t, flood2.Take(1), &exceeded, "what has given way takes nothing")
	flood2.Give(50) // as it cleans up: counted already
	flood2.Close()
	require.EqualValues(t, 95, b.Used())

	// Now alice holds most: her request is refused, and she keeps what she has.
	require.ErrorAs(t, small.Take(20), &exceeded)
	require.EqualValues(t, 95, b.Used())
	require.False(t, flood1.Try(10), "no account gives way for what is not essential")
	require.True(t, flood1.Try(5))
	flood1.Close()
	small.Close()
	small.Close()
	require.Zero(t, b.Used())
	require.Equal(t, []string{"flood2"}, cut)
}

func TestOneUserGivesWayToItself(t *testing.T) {
	b := New(100)
	evicted := false
	large := b.Open("u", func(error) { evicted = true })
	small := b.Open("u", func(error) { t.Error("the smaller one gave way") })
	require.NoError(t, large.Take(90))
	require.NoError(t, small.Take(20))
	require.True(t, evicted)
}

func TestNoBound(t *testing.T) {
	a := New(0).Open("u", nil)
	require.NoError(t, a.Take(1<<40))
	a.Close()
	require.True(t, errors.As(a.Take(1), new(*Exceeded)))
}
