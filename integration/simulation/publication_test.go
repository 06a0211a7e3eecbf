package simulation

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
)

// publication is a basic.publish.
type publication struct {
	id            int
	exchange, key string
	props         amqp.Properties
	body          []byte
}

func (p *publication) wire() *broker.Publication {
	return &broker.Publication{
		Exchange: []byte(p.exchange), RoutingKey: []byte(p.key), Properties: p.props.Append(nil), Body: p.body,
	}
}

func (p *publication) keys() []string { return p.entry().routingKeys(true) }

// entry is the message as it enters a queue.
func (p *publication) entry() *entry {
	parsed, err := amqp.ParseProperties(p.props.Append(nil), amqp.Limits{})
	if err != nil {
		panic(err)
	}
	return &entry{id: p.id, body: p.body, props: parsed, exchange: p.exchange, key: p.key}
}

func (p *publication) String() string {
	mode := ""
	if p.props.DeliveryMode == 2 {
		mode = " persistent"
	}
	if p.props.Expiration != "" {
		mode += " expiration=" + p.props.Expiration
	}
	if at, ok := p.props.Headers["x-expires-at"]; ok {
		mode += fmt.Sprint(" x-expires-at=", at)
	}
	if p.props.Priority > 0 {
		mode += fmt.Sprint(" priority=", p.props.Priority)
	}
	for _, name := range []string{"CC", "BCC"} {
		if keys := keyList(p.props.Headers[name]); keys != nil {
			mode += " " + name + "=" + strings.Join(keys, ",")
		}
	}
	if p.props.Headers["x-death"] != nil {
		mode += " with a forged history"
	}
	return fmt.Sprintf("m%d to %q %q%s, %d B", p.id, p.exchange, p.key, mode, len(p.body))
}

// randomPublication draws a publish to one of the named queues or to a fanout, with a body
// of about ten bytes or, rarely, one nearly as large as the largest. nowAt is the present
// time in Unix ms; absolute deadlines are drawn around it.
func randomPublication(rng *rand.Rand, id int, names []string, largest int, nowAt int64) publication {
	p := publication{id: id, key: pick(rng, names), props: amqp.Properties{MessageID: fmt.Sprint("m", id)}}
	if chance(rng, 0.2) {
		p.exchange = pick(rng, []string{"amq.fanout", "amq.direct"})
	}
	padding := rng.IntN(40)
	if chance(rng, 0.3) {
		padding = rng.IntN(largest)
	}
	p.body = []byte(fmt.Sprintf("m%d %s", id, strings.Repeat(".", padding)))
	if chance(rng, 0.5) {
		p.props.DeliveryMode = 2
	}
	if chance(rng, 0.3) {
		p.props.Priority = uint8(rng.IntN(6))
	}
	if chance(rng, 0.6) {
		p.props.Expiration = strconv.FormatInt(randomTTL(rng), 10)
	}
	p.props.Headers = randomHeaders(rng, names)
	if chance(rng, 0.15) {
		if p.props.Headers == nil {
			p.props.Headers = amqp.Table{}
		}
		p.props.Headers["x-expires-at"] = nowAt + randomTTL(rng) - 20
	}
	return p
}

// randomHeaders draws additional keys, a forged death history, both, or nothing.
func randomHeaders(rng *rand.Rand, names []string) amqp.Table {
	h := amqp.Table{}
	if chance(rng, 0.15) {
		h["CC"] = []any{pick(rng, names), pick(rng, names)}
	}
	if chance(rng, 0.07) {
		h["BCC"] = []any{pick(rng, names)}
	}
	if chance(rng, 0.05) {
		h["x-death"] = []any{}
		for _, name := range names {
			h["x-death"] = append(h["x-death"].([]any), amqp.Table{"queue": name, "reason": "expired", "count": int64(1)})
		}
	}
	if len(h) == 0 {
		return nil
	}
	return h
}

// randomTTL in ms: none, a few, less than a second, seconds, hours.
func randomTTL(rng *rand.Rand) int64 {
	switch rng.IntN(10) {
	case 0:
		return 0
	case 1, 2:
		return 1 + rng.Int64N(4)
	case 3, 4, 5:
		return rng.Int64N(300)
	case 6, 7, 8:
		return rng.Int64N(5000)
	}
	return 3_600_000 * (1 + rng.Int64N(5))
}

func chance(rng *rand.Rand, p float64) bool { return rng.Float64() < p }

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }
