package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// identityExchange is the exchange whose alternate exchange is the name of the virtual host among all clusters. Nobody can publish to it, since
// it is internal, and the alternate exchange does not exist. Exported definitions have it: whoever imports them into another cluster whose
// Curfews share the Redis deletes it there.
const identityExchange = TapPrefix + "identity"

// Identity returns a random word that the virtual host of the address has in this cluster, whichever node is asked. The first
// Curfew that asks makes it. Curfew needs the permissions for curfew.tap.* for that.
//
// The name of the cluster will not do: each node has its own until somebody sets one, and the id that RabbitMQ 4 has is shown to policymakers
// only. RabbitMQ keeps the arguments that an exchange was declared with first. When it is declared again, it compares the alternate exchange
// alone, and its refusal names the one that it has: so all Curfews end up with the same word, even if they ask at the same time.
func (c *Cluster) Identity(ctx context.Context) (string, error) {
	conn, err := c.ConnectOnce(ctx, "identity")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return "", fmt.Errorf("ask for the identity of the virtual host: %w", err)
	}
	mine := TapPrefix + strings.ToLower(rand.Text()[:16])
	err = ch.ExchangeDeclare(identityExchange, amqp091.ExchangeFanout, true, false, true, false, amqp091.Table{"alternate-exchange": mine})
	refused, _ := errors.AsType[*amqp091.Error](err)
	switch {
	case err == nil:
		return strings.TrimPrefix(mine, TapPrefix), nil
	case refused != nil && refused.Code == amqp091.PreconditionFailed:
		if word := identityIn(refused.Reason); word != "" {
			return word, nil
		}
		return "", fmt.Errorf("exchange %s was not declared by Curfew: delete it (%s)", identityExchange, refused.Reason)
	case refused != nil && refused.Code == amqp091.AccessRefused:
		return "", fmt.Errorf("give Curfew's user the permissions to configure, write and read curfew.tap.*: the exchange %s tells replicas "+
			"that they are beside the same cluster (%s)", identityExchange, refused.Reason)
	}
	return "", fmt.Errorf("ask for the identity of the virtual host: %w", err)
}

// identityIn returns the word in a refusal such as "inequivalent arg 'alternate-exchange' for exchange '…' in vhost '/': received the value
// 'curfew.tap.a' of type 'longstr' but current is the value 'curfew.tap.b' of type 'longstr'"; "": there is none.
func identityIn(text string) string {
	_, current, _ := strings.Cut(text, "but current is")
	_, word, _ := strings.Cut(current, TapPrefix)
	word, _, ok := strings.Cut(word, "'")
	if !ok {
		return ""
	}
	return word
}
