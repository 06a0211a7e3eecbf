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
var headHeader = regexp.MustCompile(`header x-amqp-1\.0-head binary [^,]*, `)

// otherThanRabbitMQ is where Curfew differs from RabbitMQ on purpose (docs/amqp10.md).
var otherThanRabbitMQ = map[string]string{
	"1.0 to 0-9-1 another annotation": "body binary 62", // it is dropped
	// Application properties are never what the broker obeys.
	"1.0 to 0-9-1 texts": `header long "xxx... of 300 octets", header text "t", body binary 62`,
	// So the message goes back to AMQP 1.0 as it came.
	"1.0 to 0-9-1 two data sections": `type "amqp-1.0", body binary 005375a00161005375a00162`,
	"0-9-1 to 1.0 amqp-1.0 type":     `durable false, priority 4, annotation x-exchange "", annotation x-routing-key "crossing", value "v"`,
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
