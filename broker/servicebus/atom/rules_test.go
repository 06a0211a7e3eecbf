package atom

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/servicebus"
)

func TestPathsOfRules(t *testing.T) {
	for path, want := range map[string][2]string{
		"t/Subscriptions/s/Rules":              {"t/Subscriptions/s", ""},
		"t/subscriptions/s/rules/$Default":     {"t/subscriptions/s", "$Default"},
		"t/Subscriptions/rules/Rules/$Default": {"t/Subscriptions/rules", "$Default"},
		"t/Subscriptions/rules":                {},
		"t/Subscriptions/s":                    {},
		"rules/q":                              {},
		"":                                     {},
	} {
		subscription, name, is := cutRules(path)
		assert.Equal(t, want, [2]string{subscription, name}, path)
		assert.Equal(t, want[0] != "", is, path)
	}
}

// TestRules: the filters that are supported, as the SDKs write them, are bindings; others are refused. What is read is what was written.
func TestRules(t *testing.T) {
	properties := func(all string) string {
		return `<Filter i:type="CorrelationFilter"><Label>l</Label><Properties>` + all + `</Properties></Filter>`
	}
	property := func(kind, text string) string {
		return `<KeyValueOfstringanyType><Key>` + kind + `</Key><Value i:type="l28:` + kind + `" xmlns:l28="http://www.w3.org/2001/XMLSchema">` + text + `</Value></KeyValueOfstringanyType>`
	}
	for text, want := range map[string]struct {
		args    amqp.Table
		problem string
	}{
		`<Filter i:type="TrueFilter"><SqlExpression>1=1</SqlExpression></Filter>`:  {},
		`<Filter i:type="TrueFilter"/><Action i:type="EmptyRuleAction"/>`:          {},
		`<Filter i:type="SqlFilter"><SqlExpression>1 = 1</SqlExpression></Filter>`: {},
		`<Filter i:type="FalseFilter"><SqlExpression>1=0</SqlExpression></Filter>`: {args: amqp.Table{"x-match": "any"}},
		`<Filter i:type="CorrelationFilter"><MessageId>7</MessageId></Filter>`:     {args: amqp.Table{"x-match": "all-with-x", "x-sys-MessageId": "7"}},
		properties(property("string", "s") + property("boolean", "true") + property("int", "7") + property("double", "1.5")): {args: amqp.Table{
			"x-match": "all-with-x", "x-sys-Label": "l", "string": "s", "boolean": true, "int": int64(7), "double": 1.5,
		}},
		properties(property("double", "-2")):                                                                          {args: amqp.Table{"x-match": "all-with-x", "x-sys-Label": "l", "double": int64(-2)}},
		properties(property("dateTime", "2001-01-01T01:02:03Z")):                                                      {problem: `properties of the type "dateTime" are not compared`},
		properties(property("int", "many")):                                                                           {problem: `strconv.ParseInt: parsing "many": invalid syntax`},
		properties(strings.ReplaceAll(property("string", "s"), "<Key>", "<Key>x-")):                                   {problem: "the property x-string is not compared: its name begins with x-"},
		`<Filter i:type="CorrelationFilter"/>`:                                                                        {problem: "a correlation filter needs a property"},
		`<Filter i:type="CorrelationFilter"><To>` + strings.Repeat("t", 256) + `</To></Filter>`:                       {problem: "a text has more than 255 octets"},
		`<Filter i:type="SqlFilter"><SqlExpression>a=1</SqlExpression></Filter>`:                                      {args: amqp.Table{"x-sql-filter": "a=1"}},
		`<Filter i:type="TrueFilter"/><Action i:type="SqlRuleAction"><SqlExpression>SET a=1</SqlExpression></Action>`: {problem: "actions are not supported"},
		``: {problem: `the filter "" is not known`},
	} {
		var e entry[rule]
		require.NoError(t, xml.Unmarshal([]byte(`<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><RuleDescription xmlns="`+busSpace+
			`" xmlns:i="http://www.w3.org/2001/XMLSchema-instance">`+text+`<Name>r</Name></RuleDescription></content></entry>`), &e))
		args, err := e.Content.Is.args()
		if want.problem != "" {
			assert.EqualError(t, err, "rule r: "+want.problem, text)
			continue
		}
		require.NoError(t, err, text)
		assert.Equal(t, want.args, args, text)
		require.NotEmpty(t, servicebus.KindOf(args))
		e.Content.Is.Filter = filterOf(args)
		written, err := xml.Marshal(&e)
		require.NoError(t, err)
		var back entry[rule]
		require.NoError(t, xml.Unmarshal(written, &back), "%s", written)
		args, err = back.Content.Is.args()
		require.NoError(t, err, "%s", written)
		assert.Equal(t, want.args, args, "%s", written)
	}
	for n, kind := range map[int64]string{1<<31 - 1: "int", -1 << 31: "int", 1 << 31: "long", -1<<31 - 1: "long"} {
		assert.Equal(t, kind, filterOf(amqp.Table{"x-match": "all-with-x", "n": n}).Properties.All[0].Value.Type, n)
	}
	for _, none := range []amqp.Table{{"x-match": "all", "a": "b"}, {"x-sql-filter": "a=1", "a": "b"}, {"x-match": "all-with-x", "a": nil}} {
		assert.Empty(t, servicebus.KindOf(none))
	}
}
