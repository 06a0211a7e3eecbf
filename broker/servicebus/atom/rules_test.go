package atom

import (
	"encoding/xml"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// TestRules: a rule with the true filter is accepted, as the SDKs write it, and others are not.
func TestRules(t *testing.T) {
	for text, problem := range map[string]string{
		`<Filter i:type="TrueFilter"><SqlExpression>1=1</SqlExpression></Filter>`:                                     "",
		`<Filter i:type="TrueFilter"/><Action i:type="EmptyRuleAction"/>`:                                             "",
		`<Filter i:type="SqlFilter"><SqlExpression>1 = 1</SqlExpression></Filter>`:                                    "",
		`<Filter i:type="FalseFilter"><SqlExpression>1=0</SqlExpression></Filter>`:                                    "rule r: only the true filter is supported",
		`<Filter i:type="SqlFilter"><SqlExpression>a=1</SqlExpression></Filter>`:                                      "rule r: only the true filter is supported",
		`<Filter i:type="CorrelationFilter"><Label>l</Label></Filter>`:                                                "rule r: only the true filter is supported",
		`<Filter i:type="TrueFilter"/><Action i:type="SqlRuleAction"><SqlExpression>SET a=1</SqlExpression></Action>`: "rule r: actions are not supported",
		``: "rule r: only the true filter is supported",
	} {
		var e ruleEntry
		require.NoError(t, xml.Unmarshal([]byte(`<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><RuleDescription xmlns="`+busSpace+
			`" xmlns:i="http://www.w3.org/2001/XMLSchema-instance">`+text+`<Name>r</Name></RuleDescription></content></entry>`), &e))
		err := e.Content.Rule.check()
		if problem == "" {
			assert.NoError(t, err, text)
		} else {
			assert.EqualError(t, err, problem, text)
		}
	}
}
