package pattern

import (
	"regexp"
	"strings"
	"testing"

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

// TestError holds the most common mistake to RabbitMQ's text, and the others to the parser's.
func TestError(t *testing.T) {
	for expr, want := range map[string]string{
		"(":       `{"missing )",1}`,
		"(((":     `{"missing )",3}`,
		"x(?=":    `{"missing )",4}`,
		"a)b":     `{"unexpected )",0}`,
		"a[":      `{"unterminated [] set",0}`,
		"*a":      `{"missing argument to repetition operator",0}`,
		`\p{Foo}`: `{"unknown unicode category, script, or property 'Foo'",0}`,
	} {
		_, err := Compile(expr)
		require.EqualError(t, err, want, expr)
	}
}

// TestStepsAreCounted: a match that would take years is given up, after the same number
// of steps each time.
func TestStepsAreCounted(t *testing.T) {
	for _, expr := range []string{
		`^(?=(a+)+$)(a+)+$`, `(?!z)(\w+\w+)+-$`, `(?=a)(a|a)*(a|a)*(a|a)*(a|a)*c`, `(?!z)(.*)(.*)(.*)(.*)(.*)\5z`,
		`(?!z)(?:a|[^b]|\w)*?c`, `(a{0,600}|a{0,600})*(a{0,600}|a{0,600})*(a{0,600}|a{0,600})*c`, `(?<=c(a+)+)b`,
	} {
		p, err := Compile(expr)
		require.NoError(t, err, expr)
		for _, limit := range []int{1, 1000, 200_000} {
			matched, steps := p.MatchWithin(strings.Repeat("a", 250)+"b", limit)
			require.False(t, matched, expr)
			require.Equal(t, limit+1, steps, expr)
		}
		require.False(t, p.Match(strings.Repeat("a", 250)+"b"), expr)
		first, steps := p.MatchWithin("aaab", matchLimit)
		again, same := p.MatchWithin("aaab", steps)
		require.Equal(t, first, again, expr)
		require.Equal(t, steps, same, expr)
		require.LessOrEqual(t, steps, matchLimit, expr)
		if _, over := p.MatchWithin("aaab", steps-1); p.linear == nil {
			require.Equal(t, steps, over, expr)
		}
	}
}

// TestOrdinaryIsCheap: expressions that policies usually have cost no more steps than
// Go's regexp.
func TestOrdinaryIsCheap(t *testing.T) {
	for _, expr := range []string{
		``, `.*`, `^orders\.`, `^(?!amq\.).*`, `^(?!amq\.)(?!tmp-)[a-z0-9.-]+-(?=prod|test).*$`, `^(orders|billing)\.[a-z]{1,20}\.(?<!x)dlq$`,
		`^[a-z]{1,200}$`, `^(` + strings.Repeat("tenant-17|tenant-18|", 300) + `x)$`,
	} {
		p, err := Compile(expr)
		require.NoError(t, err, expr)
		for _, name := range []string{"", "orders.europe.incoming-prod-1", "amq.gen-JzTY20BRgKO-HjmUJj0wLg", strings.Repeat("abc.", 63)} {
			_, steps := p.MatchWithin(name, matchLimit)
			require.LessOrEqual(t, steps, Cheap, "%.50s against %s", expr, name)
		}
	}
}

// TestLargeIsBacktracked: an expression that is too large for Go's regexp means the same.
func TestLargeIsBacktracked(t *testing.T) {
	for _, expr := range []string{`^[\w-]{1,250}\bx$`, `^(\pL{0,500}|\d{0,500}|x)$`, `(?i)^(STRASSE|ß){1,600}$`, `^(a{1,20}b?){1,40}$`} {
		p, err := Compile(expr)
		require.NoError(t, err, expr)
		for _, name := range []string{"", "x", "a-x", "ax", "12", "ü1", "strasseSS", "STRASSEß", strings.Repeat("a", 250), strings.Repeat("aab", 80)} {
			got, steps := p.MatchWithin(name, matchLimit)
			require.LessOrEqual(t, steps, matchLimit, "%s against %s", expr, name)
			require.Equal(t, regexp.MustCompile(expr).MatchString(name), got, "%s against %s", expr, name)
		}
	}
}

func TestTooLarge(t *testing.T) {
	for expr, want := range map[string]string{
		strings.Repeat("a", maxExpression+1):                            `{"regular expression is too large",0}`,
		strings.Repeat("(", 251) + strings.Repeat(")", 251):             `{"parentheses are too deeply nested",0}`,
		`[(]\(` + strings.Repeat("(?=", 251) + strings.Repeat(")", 251): `{"parentheses are too deeply nested",0}`,
	} {
		_, err := Compile(expr)
		require.EqualError(t, err, want)
	}
	_, err := Compile(strings.Repeat("(", 250) + strings.Repeat(")", 250))
	require.NoError(t, err)
}

func FuzzCompile(f *testing.F) {
	f.Add(`^(?!amq\.).*`, "amq.x")
	f.Add("(", "")
	f.Fuzz(func(t *testing.T, expr, name string) {
		if p, err := Compile(expr); err == nil {
			if _, steps := p.MatchWithin(name, 50_000); steps > 50_001 {
				t.Fatal(steps)
			}
		} else if _, isOurs := err.(*Error); !isOurs {
			t.Fatal(err)
		}
	})
}
