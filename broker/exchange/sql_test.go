package exchange

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/integration/testenv"
)

var sqlHeaders = amqp.Table{
	"colour": "red", "n": int32(7), "big": int64(math.MaxInt64), "f": 2.5, "nan": math.NaN(), "on": true, "bytes": []byte("b"), "quote": "it's", "a b": "x",
	"at": amqp.Timestamp(1), "long": strings.Repeat("x", maxLike+1), "x-sys-Label": "order.new", "lines": "one\ntwo",
}

// TestSQL: an expression, and its NOT.
func TestSQL(t *testing.T) {
	for text, want := range map[string]truth{
		"1=1": yes, "1 = 0": no, "colour = 'red'": yes, "colour='blue'": no, "COLOUR = 'red'": unknown, "user.colour = 'red'": yes,
		"sys.Label = 'order.new'": yes, "SYS.label LIKE 'order.%'": yes, "[a b] = 'x'": yes, `"a b" <> 'x'`: no, "quote = 'it''s'": yes,
		"n = 7": yes, "n > 6.5": yes, "n >= 7": yes, "n < 7": no, "n <= 7": yes, "n != 7": no, "n <> -7": yes, "f = 2.5": yes, "f < 3": yes, "n = 7e0": yes,
		"big = 9223372036854775807": yes, "big = 9223372036854775806": no, "big < 99999999999999999999": yes, "on = true": yes, "on <> FALSE": yes, "false < on": yes,
		"bytes = 'b'": yes, "nan = nan": unknown, "at = 1": unknown, "at IS NULL": no, "n = '7'": unknown, "none = 1": unknown, "none <> 1": unknown, "n = NULL": unknown,
		"none IS NULL": yes, "colour is not null": yes, "EXISTS(colour)": yes, "exists ( none )": no,
		"colour IN ('blue', 'red')": yes, "n IN (1, 2)": no, "n NOT IN (1, none)": unknown, "colour NOT LIKE 'r_d'": no, "colour LIKE '%e%'": yes, "colour LIKE 'r.d'": no,
		"lines LIKE 'one%'": yes, "long LIKE '%'": unknown, "n LIKE '7'": unknown,
		"NOT colour = 'red' OR n = 7 AND on = true": yes, "NOT (colour = 'red' OR n = 8)": no, "none = 1 AND 1=0": no, "none = 1 OR 1=1": yes, "none = 1 AND 1=1": unknown,
	} {
		for text, want := range map[string]truth{text: want, "NOT (" + text + ")": -want} {
			is, err := parseSQL(text)
			require.NoError(t, err, text)
			assert.Equal(t, want, is(sqlHeaders), text)
		}
	}
	for text, want := range map[string]string{
		"": "octet 1: expected a value", "colour": "octet 7: expected a comparison", "colour = ": "expected a value", "(n = 1": "octet 7: expected )", "n = 1 n": "octet 7: expected an operator",
		"n + 1 = 2": "octet 3: expected a comparison", "n = @p": "octet 5: expected a value", "n = 'x": "octet 5: expected a value", "n IN 1": "octet 6: expected (", "sys.Size > 1": "octet 10: expected user. or sys.",
		"n LIKE m": "expected a pattern", "n NOT = 1": "expected a comparison", "n LIKE 'a' ESCAPE 'b'": "octet 12: expected an operator", "n IS 1": "octet 6: expected NULL", "NOT": "expected a value",
		"n LIKE '\xff'":                     "a pattern in UTF-8",
		strings.Repeat("(", maxSQL) + "1=1": "more than 1024 octets",
	} {
		is, err := parseSQL(text)
		assert.ErrorContains(t, err, want, text)
		assert.Equal(t, unknown, is(sqlHeaders), text)
		assert.ErrorContains(t, CheckArgs(Headers, amqp.Table{SQLArg: text}), want)
	}
}

// TestSQLBinding: a binding compares its other arguments, too.
func TestSQLBinding(t *testing.T) {
	r := New[string](Headers)
	for d, args := range map[string]amqp.Table{
		"sql": {SQLArg: "n > 6"}, "both": {SQLArg: "n > 6", "colour": "red"}, "other": {SQLArg: "n > 6", "colour": "blue"}, "not": {SQLArg: "n > 7", "x-match": "any", "colour": "red"},
	} {
		require.NoError(t, CheckArgs(Headers, args))
		require.True(t, r.Bind(d, "", args))
	}
	assert.ElementsMatch(t, []string{"sql", "both"}, r.Route(nil, func() amqp.Table { return sqlHeaders }, nil, nil))
	_, removed := r.Unbind("sql", "", amqp.Table{SQLArg: "n > 6"})
	assert.True(t, removed)
	assert.Equal(t, []string{"both"}, r.Route(nil, func() amqp.Table { return sqlHeaders }, nil, nil))
}

func FuzzSQL(f *testing.F) {
	f.Add("NOT (colour = 'red') AND n IN (1, 2) OR sys.Label LIKE '%x_' AND [a b] IS NOT NULL")
	f.Fuzz(func(t *testing.T, text string) {
		is, err := parseSQL(text)
		got := is(sqlHeaders)
		if negated, err2 := parseSQL("NOT (" + text + ")"); err == nil && err2 == nil {
			assert.Equal(t, -got, negated(sqlHeaders))
		}
	})
}

// TestLike: a pattern means what the regular expression does that it would be, and is done soon whatever it is.
func TestLike(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(letters string) (text string) {
		for range random.IntN(8) {
			text += string([]rune(letters)[random.IntN(len([]rune(letters)))])
		}
		return text
	}
	for range 20_000 {
		s, pattern := word("abé\n"), word("abé%%_")
		as := regexp.MustCompile("(?s)^" + strings.NewReplacer("%", ".*", "_", ".").Replace(pattern) + "$")
		if got, want := alike(s, pattern), as.MatchString(s); got != want {
			t.Fatalf("%q LIKE %q: %v, not %v", s, pattern, got, want)
		}
	}
	for _, pattern := range []string{"%" + strings.Repeat("_", 1000) + "b", "%" + strings.Repeat("a", 200) + "b", strings.Repeat("%a", 450) + "b"} {
		testenv.Quick(t, 5*time.Millisecond, pattern[:20], func() { alike(strings.Repeat("a", maxLike), pattern) })
	}
}
