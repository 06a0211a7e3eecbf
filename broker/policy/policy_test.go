package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decodeJSON reads a policy as the HTTP API gets it.
func decodeJSON(t *testing.T, k Kind, body string) (Policy, error) {
	t.Helper()
	v, err := ParseJSON([]byte(body))
	require.NoError(t, err)
	return Decode(k, "p", v.(map[string]any))
}

// TestRefusals holds the texts to those of RabbitMQ 3.10.8.
func TestRefusals(t *testing.T) {
	for definition, want := range map[string]string{
		`{}`:                                             "no policy provided",
		`{"foo":1}`:                                      `[{<<"foo">>,1}] are not recognised policy settings`,
		`{"foo":1,"bar":"x","expires":5}`:                `[{<<"bar">>,<<"x">>},{<<"foo">>,1}] are not recognised policy settings`,
		`{"max-priority":3}`:                             `[{<<"max-priority">>,3}] are not recognised policy settings`,
		`{"message-ttl":-1}`:                             "-1 is not a valid message TTL",
		`{"message-ttl":"100"}`:                          `<<"100">> is not a valid message TTL`,
		`{"message-ttl":1.5}`:                            "1.5 is not a valid message TTL",
		`{"expires":0}`:                                  "0 is not a valid queue expiry",
		`{"expires":true}`:                               "true is not a valid queue expiry",
		`{"message-ttl":-1,"expires":0}`:                 "0 is not a valid queue expiry",
		`{"overflow":"foo"}`:                             `<<"foo">> is not a valid overflow value`,
		`{"overflow":""}`:                                `<<>> is not a valid overflow value`,
		`{"overflow":{"x":[1,"a",null]}}`:                `#{<<"x">> => [1,<<"a">>,null]} is not a valid overflow value`,
		`{"max-length":-1}`:                              "-1 is not a valid maximum length",
		`{"max-length-bytes":"x"}`:                       `<<"x">> is not a valid maximum length in bytes`,
		`{"max-in-memory-length":-1}`:                    "-1 is not a valid maximum memory in bytes",
		`{"max-in-memory-bytes":-1}`:                     "-1 is not a valid maximum memory in bytes",
		`{"dead-letter-exchange":5}`:                     "5 is not a valid dead letter exchange name",
		`{"dead-letter-routing-key":true}`:               "true is not a valid dead letter routing key",
		`{"dead-letter-strategy":"x"}`:                   `<<"x">> is not a valid dead letter strategy`,
		`{"delivery-limit":"x"}`:                         `<<"x">> is not a valid delivery limit`,
		`{"queue-mode":"foo"}`:                           `<<"foo">> is not a valid queue-mode value`,
		`{"queue-version":3}`:                            "3 is not a valid queue-version value",
		`{"alternate-exchange":null}`:                    "null is not a valid alternate exchange name",
		`{"alternate-exchange":["x"]}`:                   `[<<"x">>] is not a valid alternate exchange name`,
		`{"max-age":"5X"}`:                               `<<"5X">> is not a valid max age`,
		`{"initial-cluster-size":-1}`:                    "-1 is not a valid cluster size",
		`{"queue-master-locator":"x"}`:                   `<<"x">> invalid queue-master-locator value`,
		`{"stream-max-segment-size-bytes":-1}`:           "-1 is not a valid segment size",
		`{"ha-mode":"foo"}`:                              `<<"foo">> is not a valid ha-mode value`,
		`{"ha-mode":"foo","overflow":"x"}`:               `<<"x">> is not a valid overflow value`,
		`{"ha-mode":"exactly"}`:                          `ha-mode="exactly" takes an integer, none given`,
		`{"ha-mode":"exactly","ha-params":0}`:            `ha-mode="exactly" takes an integer, 0 given`,
		`{"ha-sync-mode":"automatic"}`:                   "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown",
		`{"ha-mode":"all","ha-params":1}`:                `ha-mode="all" does not take parameters`,
		`{"ha-mode":"all","ha-sync-mode":"x"}`:           `ha-sync-mode must be "manual" or "automatic", got <<"x">>`,
		`{"ha-mode":"all","ha-sync-batch-size":-1}`:      "ha-sync-batch-size takes an integer greater than 0, -1 given",
		`{"ha-mode":"all","ha-promote-on-shutdown":"x"}`: `ha-promote-on-shutdown must be "always" or "when-synced", got <<"x">>`,
		`{"ha-mode":"nodes","ha-params":[]}`:             `ha-mode="nodes" list must be non-empty`,
		`{"lock-duration":0}`:                            "0 is not a valid lock duration",
		`{"lock-duration":315360000001}`:                 "315360000001 is not a valid lock duration",
		`{"dead-letter-queue":"yes"}`:                    `<<"yes">> is not a valid value of dead-letter-queue, which is true or false`,
		`{"dead-letter-queue":1}`:                        `1 is not a valid value of dead-letter-queue, which is true or false`,
		`{"auto-delete-on-idle":0}`:                      "0 is not a valid idle period",
		`{"auto-delete-on-idle":true}`:                   "true is not a valid idle period",
		`{"max-delivery-count":0}`:                       "0 is not a valid maximum delivery count",
		`{"max-delivery-count":65536}`:                   "65536 is not a valid maximum delivery count",
		`{"federation-upstream-set":"all"}`:              `[{<<"federation-upstream-set">>,<<"all">>}] are not recognised policy settings`,
	} {
		_, err := decodeJSON(t, User, `{"pattern":"^a","definition":`+definition+`}`)
		require.EqualError(t, err, "Validation failed\n\n"+want+"\n", definition)
	}
}

func TestAcceptedSettings(t *testing.T) {
	for _, definition := range []string{
		`{"message-ttl":0}`, `{"message-ttl":400000000000000}`, `{"dead-letter-routing-key":"k"}`, `{"dead-letter-strategy":"at-least-once"}`,
		`{"queue-mode":"lazy"}`, `{"queue-version":2}`, `{"max-age":"5D"}`, `{"queue-leader-locator":"balanced"}`, `{"queue-master-locator":"min-masters"}`,
		`{"ha-mode":"all"}`, `{"ha-mode":"nodes","ha-params":["a@b"]}`, `{"delivery-limit":-1}`, `{"consumer-timeout":60000}`, `{"consumer-disconnected-timeout":1000,"target-group-size":3}`, `{"stream-filter-size-bytes":16}`,
		`{"lock-duration":1,"dead-letter-queue":true,"auto-delete-on-idle":1,"max-delivery-count":65535}`, `{"dead-letter-queue":false}`,
		`{"ha-mode":"exactly","ha-params":2,"ha-sync-mode":"automatic","ha-promote-on-shutdown":"always","ha-promote-on-failure":"always","ha-sync-batch-size":5}`,
	} {
		_, err := decodeJSON(t, User, `{"pattern":"","definition":`+definition+`}`)
		require.NoError(t, err, definition)
	}
}

// TestNamesFitAShortString: a dead letter with a longer key or exchange could not be written, and was lost.
func TestNamesFitAShortString(t *testing.T) {
	for _, key := range []string{"dead-letter-exchange", "dead-letter-routing-key", "alternate-exchange"} {
		longest := strings.Repeat("x", 255)
		_, err := decodeJSON(t, User, `{"pattern":"a","definition":{"`+key+`":"`+longest+`"}}`)
		require.NoError(t, err, key)
		_, err = decodeJSON(t, User, `{"pattern":"a","definition":{"`+key+`":"`+longest+`x"}}`)
		require.ErrorContains(t, err, "is not a valid", key)
	}
}

func TestOperatorPoliciesSetLimitsOnly(t *testing.T) {
	for key, value := range map[string]string{
		"expires": "5", "message-ttl": "5", "max-length": "5", "max-length-bytes": "5", "max-in-memory-length": "5", "max-in-memory-bytes": "5",
		"delivery-limit": "5", "queue-version": "2", "overflow": `"reject-publish"`,
		"auto-delete-on-idle": "5", "max-delivery-count": "5",
	} {
		_, err := decodeJSON(t, Operator, `{"pattern":"a","definition":{"`+key+`":`+value+`}}`)
		require.NoError(t, err, key)
	}
	_, err := decodeJSON(t, Operator, `{"pattern":"a","definition":{"dead-letter-exchange":"z","ha-mode":"all","expires":4}}`)
	require.EqualError(t, err, "Validation failed\n\n[{<<\"dead-letter-exchange\">>,<<\"z\">>},{<<\"ha-mode\">>,<<\"all\">>}] are not recognised policy settings\n")
	for _, own := range []string{`"lock-duration":5`, `"dead-letter-queue":true`} {
		_, err := decodeJSON(t, Operator, `{"pattern":"a","definition":{`+own+`}}`)
		require.ErrorContains(t, err, "not recognised", own)
	}
}

// TestSettingsOfQueuesOnly are refused for exchanges alone; RabbitMQ's are not.
func TestSettingsOfQueuesOnly(t *testing.T) {
	for _, own := range []string{`"lock-duration":5`, `"dead-letter-queue":true`, `"max-delivery-count":5`} {
		_, err := decodeJSON(t, User, `{"pattern":"a","apply-to":"exchanges","definition":{`+own+`}}`)
		require.ErrorContains(t, err, " is not a setting of exchanges", own)
		_, err = decodeJSON(t, User, `{"pattern":"a","apply-to":"all","definition":{`+own+`}}`)
		require.NoError(t, err, own)
	}
	_, err := decodeJSON(t, User, `{"pattern":"a","apply-to":"exchanges","definition":{"max-length":5,"message-ttl":5,"auto-delete-on-idle":5}}`)
	require.NoError(t, err)
}

// TestProblemsTogether: all four fields are looked at, in RabbitMQ's order.
func TestProblemsTogether(t *testing.T) {
	_, err := decodeJSON(t, User, `{"pattern":"(","definition":{"overflow":"x","foo":1},"priority":"x","apply-to":"z"}`)
	require.EqualError(t, err, "Validation failed\n\n<<\"x\">> is not a valid overflow value\n"+
		"apply-to 'z' unrecognised; should be one of: 'queues', 'classic_queues', 'quorum_queues', 'streams', 'exchanges', or 'all'\n"+
		"pattern should be regular expression but is invalid: {\"missing )\",1}\npriority should be a number, actually was <<\"x\">>\n")
	_, err = decodeJSON(t, User, `{"priority":1}`)
	require.EqualError(t, err, "[{key_missing,pattern},{key_missing,definition}]")
	_, err = decodeJSON(t, User, `{"pattern":5,"definition":{"expires":1}}`)
	require.EqualError(t, err, "Validation failed\n\npattern should be a binary but was 5\n")
}

func TestRoundTrip(t *testing.T) {
	p, err := decodeJSON(t, User, `{"pattern":"^a","definition":{"message-ttl":5,"ha-mode":"nodes","ha-params":["a@b"]},"priority":-3,"apply-to":"queues","vhost":"zz"}`)
	require.NoError(t, err)
	b, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"p","pattern":"^a","apply-to":"queues","priority":-3,"definition":{"message-ttl":5,"ha-mode":"nodes","ha-params":["a@b"]}}`, string(b))
	var back Policy
	require.NoError(t, json.Unmarshal(b, &back))
	back, err = Check(User, back)
	require.NoError(t, err)
	require.Equal(t, p.Definition, back.Definition)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"pattern":"^(?!amq\\.).*","definition":{"message-ttl":5},"priority":1}`))
	f.Add([]byte(`{"pattern":"(","definition":{"ha-mode":"nodes","ha-params":[1]},"apply-to":5}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := ParseJSON(b)
		fields, ok := v.(map[string]any)
		if err != nil || !ok {
			return
		}
		p, err := Decode(User, "p", fields)
		if err != nil {
			return
		}
		again, err := Check(User, Policy{Name: "p", Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: p.Definition})
		require.NoError(t, err)
		require.Equal(t, p.Definition, again.Definition)
	})
}
