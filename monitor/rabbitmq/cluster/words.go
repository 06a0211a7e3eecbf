package cluster

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
)

// refused is what RabbitMQ says of a missing permission, over both protocols; before 3.11 without the kind of access.
var refused = regexp.MustCompile(`(?:(\w+) )?access to (\w+) '(.*?)' in vhost '(.*?)' refused for user '(.*?)'`)

// Words is an error for an operator: what RabbitMQ has said without the frame around it and, if the user may not do something, what allows that.
func Words(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if e, ok := errors.AsType[*amqp091.Error](err); ok {
		text = strings.ReplaceAll(text, e.Error(), inWords(e.Reason, e.Code))
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		text = strings.ReplaceAll(text, e.Error(), inWords(e.Description, e.Condition))
	}
	return text
}

func inWords(reason string, code any) string {
	m := refused.FindStringSubmatch(reason)
	if m == nil {
		return fmt.Sprintf("%s (%v)", strings.TrimSpace(reason), code)
	}
	kind, what, name, vhost, user := m[1], m[2], m[3], m[4], m[5]
	if kind == "" {
		kind = "use"
	}
	return fmt.Sprintf("user %s may not %s %s %s in virtual host %s: grant that with %s, which replaces all three patterns (curfew rabbitmq plan --emit rabbitmqctl prints them)",
		user, kind, what, name, vhost, deadline.Command("rabbitmqctl set_permissions", nil, "--vhost", vhost, user, "CONFIGURE", "WRITE", "READ"))
}
