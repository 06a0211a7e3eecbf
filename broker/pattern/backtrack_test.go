package pattern

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/dlclark/regexp2/v2/syntax"
	"github.com/stretchr/testify/require"
)

// pieces are combined into random expressions.
var pieces = []string{"a", "b", "-", ".", "[ab]", "[^a]", `\w`, `\b`, `\B`, "^", "$", "(", "(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", ")", ")", ")", "|",
	"*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", `\1`, `\2`, "(?i)", "(?(1)a|b)", "(?(?=a)a|b)", "ab", `\Aa`, `b\z`, `\Z`}

func random(rng *rand.Rand, of []string, most int) string {
	var text strings.Builder
	for range rng.IntN(most) {
		text.WriteString(of[rng.IntN(len(of))])
	}
	return text.String()
}

// TestAgreesWithLibraries compares backtracking with regexp2 and, where it supports the
// expression, with Go's regexp.
func TestAgreesWithLibraries(t *testing.T) {
	regexp2.SetTimeoutCheckPeriod(time.Millisecond)
	rng := rand.New(rand.NewPCG(1, 2))
	compared, matching := 0, 0
	for range 15_000 {
		expr := random(rng, pieces, 10)
		for options, library := range map[regexp2.RegexOptions]func(string) (bool, error){regexp2.None: regexp2Match(expr), regexp2.RE2: goMatch(expr)} {
			tree, err := compileTree(expr, syntax.RegexOptions(options))
			if library == nil || err != nil {
				continue
			}
			for range 4 {
				name := random(rng, []string{"a", "b", "A", "-", "ü"}, 7)
				got, steps := tree.search(name, matchLimit)
				require.LessOrEqual(t, steps, matchLimit)
				want, err := library(name)
				require.NoError(t, err)
				require.Equal(t, want, got, "%q against %q, options %d", expr, name, options)
				compared++
				if want {
					matching++
				}
			}
		}
	}
	require.Greater(t, compared-matching, 5_000)
	require.Greater(t, matching, 5_000)
}

func regexp2Match(expr string) func(string) (bool, error) {
	if re, err := regexp2.Compile(expr); err == nil {
		return re.MatchString
	}
	return nil
}

func goMatch(expr string) func(string) (bool, error) {
	if re, err := regexp.Compile(expr); err == nil {
		return func(name string) (bool, error) { return re.MatchString(name), nil }
	}
	return nil
}
