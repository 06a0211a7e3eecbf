package cluster

import (
	"errors"
	"fmt"
	"testing"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// TestWords: errors as 3.10.8 and 4.3.6 gave them.
func TestWords(t *testing.T) {
	grant := ": grant that with rabbitmqctl set_permissions --vhost / curfew CONFIGURE WRITE READ, which replaces all three patterns (curfew rabbitmq plan --emit rabbitmqctl prints them)"
	for _, one := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("no route to host"), "no route to host"},
		{fmt.Errorf("consume: %w", &amqp091.Error{Code: 403, Reason: "ACCESS_REFUSED - read access to queue 'foo.delay' in vhost '/' refused for user 'curfew'"}),
			"consume: user curfew may not read queue foo.delay in virtual host /" + grant},
		{&amqp091.Error{Code: 403, Reason: "ACCESS_REFUSED - access to exchange 'foo' in vhost '/' refused for user 'curfew'"}, "user curfew may not use exchange foo in virtual host /" + grant},
		{fmt.Errorf("consume: %w", &amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondUnauthorizedAccess, Description: "read access to queue 'foo.delay' in vhost '/' refused for user 'curfew'"}}),
			"consume: user curfew may not read queue foo.delay in virtual host /" + grant},
		{fmt.Errorf("connect: %w", amqp091.ErrCredentials), "connect: username or password not allowed (403)"},
		{fmt.Errorf("AMQP 1.0: %w", &amqp.SessionError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondInternalError, Description: "it broke"}}), "AMQP 1.0: it broke (amqp:internal-error)"},
	} {
		require.Equal(t, one.want, Words(one.err))
	}
}
