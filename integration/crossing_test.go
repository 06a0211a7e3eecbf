package integration

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/integration/crossing"
)

// headHeader keeps what a client of AMQP 1.0 has sent, octet by octet: no consumer needs it, and RabbitMQ has another place for it.
var headHeader = regexp.MustCompile(`header x-amqp-1\.0-(head|footer) binary [^,]*, `)

// toCrossing is what a message has at the least.
const toCrossing = `durable false, priority 4, annotation x-exchange "", annotation x-routing-key "crossing"`

// otherThanRabbitMQ is where Curfew differs from RabbitMQ on purpose (docs/amqp10.md).
var otherThanRabbitMQ = map[string]string{
	"1.0 to 0-9-1 another annotation": "body binary 62", // it is dropped
	// Application properties are never what the broker obeys.
	"1.0 to 0-9-1 texts": `header long "xxx... of 300 octets", header text "t", body binary 62`,
	// So the message goes back to AMQP 1.0 as it came.
	"1.0 to 0-9-1 two data sections": `type "amqp-1.0", body binary 005375a00161005375a00162`,
	"0-9-1 to 1.0 amqp-1.0 type":     toCrossing + `, value "v"`,
	// A message is rejected for the reason for which AMQP 0-9-1 refuses it; RabbitMQ ends the session.
	"1.0 to 0-9-1 another's user-id": "refused, amqp:precondition-failed",
	"1.0 to 0-9-1 long user-id":      "refused, amqp:precondition-failed",
	// Its time to live is over, and it has its history in both forms.
	"0-9-1 to 1.0 a dead letter": `durable false, priority 4, annotation x-death [{count int64 1; exchange ""; original-expiration "1"; queue "crossing-dying"; ` +
		`reason "expired"; routing-keys ["crossing-dying"]; time now}], annotation x-exchange "", annotation x-first-death-exchange "", annotation x-first-death-queue "crossing-dying", ` +
		`annotation x-first-death-reason "expired", annotation x-last-death-exchange "", annotation x-last-death-queue "crossing-dying", annotation x-last-death-reason "expired", ` +
		`annotation x-opt-deaths [{string count uint64 1; string exchange ""; string first-time now; string last-time now; string queue "crossing-dying"; string reason "expired"; ` +
		`string routing-keys ["crossing-dying"]; string ttl uint32 1}], annotation x-routing-key "crossing", data ["b"]`,
	// A text of AMQP 1.0 is UTF-8 (§1.6.20). RabbitMQ sends others, which clients may refuse.
	"0-9-1 to 1.0 ids that are not UTF-8":     toCrossing + `, MessageID binary ff, CorrelationID binary fe, data ["b"]`,
	"0-9-1 to 1.0 reply-to that is not UTF-8": toCrossing + `, ReplyTo "/queues/%FF", data ["b"]`,
	"0-9-1 to 1.0 app-id and type that are not UTF-8": `durable false, priority 4, annotation x-basic-type binary ff, ` +
		`annotation x-exchange "", annotation x-routing-key "crossing", data ["b"]`,
	"0-9-1 to 1.0 content type and encoding that are not UTF-8": toCrossing + `, data ["b"]`,
	"0-9-1 to 1.0 keys that are not UTF-8":                      `durable false, priority 4, annotation x-exchange "", annotation x-routing-key "crossing", annotation x-table {}, data ["b"]`,
}

// TestCrossing: a message that is published over one protocol and consumed over the other is what RabbitMQ 4.3.6 makes of it.
func TestCrossing(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	seen, err := crossing.Record(t.Context(), c.url)
	require.NoError(t, err)
	var want []string
	for line := range strings.Lines(crossing.RabbitMQ) {
		if name, _, _ := strings.Cut(line, ": "); otherThanRabbitMQ[name] != "" {
			line = name + ": " + otherThanRabbitMQ[name] + "\n"
		}
		want = append(want, line)
	}
	got := strings.SplitAfter(headHeader.ReplaceAllString(seen, ""), "\n")
	require.Len(t, got, len(want)+1)
	for i, line := range want {
		assert.Equal(t, line, got[i])
	}
}
