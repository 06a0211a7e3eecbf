package pattern

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		expr, name string
		want       bool
	}{
		{"", "anything", true},
		{".*", "", true},
		{"q", "a queue", true},
		{"^q", "a queue", false},
		{`^(?!amq\.).*`, "amq.topic", false},
		{`^(?!amq\.).*`, "orders", true},
		{`^(\w+)-\1$`, "ab-ab", true},
		{`^(\w+)-\1$`, "ab-ba", false},
		{`a{1500}`, strings.Repeat("a", 1500), true},
		{`^a++b`, "aab", true},
		{`^$`, "", true},
	} {
		p, err := Compile(c.expr)
		require.NoError(t, err, c.expr)
		require.Equal(t, c.want, p.Match(c.name), "%s against %s", c.expr, c.name)
	}
}

// TestError holds the texts and offsets to what Erlang's re says.
func TestError(t *testing.T) {
	for expr, want := range map[string]string{
		"(":         `{"missing )",1}`,
		"(((":       `{"missing )",3}`,
		"x(?=":      `{"missing )",4}`,
		"(?z)":      `{"unrecognized character after (? or (?-",2}`,
		"a)b":       `{"unmatched parentheses",1}`,
		"ab)c)":     `{"unmatched parentheses",2}`,
		`\)[)]()a)`: `{"unmatched parentheses",8}`,
		"a[":        `{"missing terminating ] for character class",2}`,
		"*a":        `{"nothing to repeat",0}`,
		"a|*":       `{"nothing to repeat",2}`,
		"a**":       `{"nothing to repeat",2}`,
		"[z-a]":     `{"range out of order in character class",3}`,
		`a\`:        `{"\\ at end of pattern",2}`,
		`\p{Foo}`:   `{"unknown property name after \\P or \\p",6}`,
	} {
		_, err := Compile(expr)
		require.EqualError(t, err, want, expr)
	}
}

func TestBacktrackingIsBounded(t *testing.T) {
	p, err := Compile(`^(?=(a+)+$)(a+)+$`)
	require.NoError(t, err)
	began := time.Now()
	require.False(t, p.Match(strings.Repeat("a", 200)+"b"))
	require.Less(t, time.Since(began), time.Minute) // unbounded, it takes years
}

func FuzzCompile(f *testing.F) {
	f.Add(`^(?!amq\.).*`, "amq.x")
	f.Add("(", "")
	f.Fuzz(func(t *testing.T, expr, name string) {
		if p, err := Compile(expr); err == nil {
			p.Match(name)
		} else if _, isOurs := err.(*Error); !isOurs {
			t.Fatal(err)
		}
	})
}
