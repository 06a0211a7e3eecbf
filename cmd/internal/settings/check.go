package settings

import (
	"errors"
	"fmt"
	"strings"
)

// CheckServe checks that the addresses, the variables about RabbitMQ, and those about the clock fit together. Only serve needs that: a command that calls a
// running Curfew does not. The error is an Error that names each mistake.
func (s *Settings) CheckServe() error {
	const (
		ofBroker   = "it is about Curfew's own broker, which does not run with CURFEW_PRIMARY_URL: "
		ofRabbitMQ = "the value %q is about RabbitMQ, but CURFEW_PRIMARY_URL names none; " +
			"set CURFEW_PRIMARY_URL (amqp:// or amqps://, one or several hosts and a virtual host), or leave it empty"
		stands = "it does not go with a manual clock (CURFEW_CLOCK or --clock), which is for tests: "
	)
	external, manual := s.PrimaryURL != "", s.ManualClock()
	api, watch := s.PrimaryAPIUrl.Redacted(), s.Watch
	var errs []error
	for _, v := range []struct {
		name  string
		wrong bool
		why   string
	}{
		{"CURFEW_AMQPS_ADDR", external && s.AMQPSAddr != "", ofBroker + "AMQP clients connect to that RabbitMQ; unset one of the two"},
		{"CURFEW_HTTP_ON_AMQP", external && s.HTTPOnAMQP, ofBroker + "there is no AMQP address; unset one of the two"},
		{"CURFEW_DEFINITIONS", external && s.Definitions != "", ofBroker + "definitions belong in that RabbitMQ; unset one of the two"},
		{"CURFEW_TTL", external && s.TTL == "off", ofBroker + "that RabbitMQ expires messages; set CURFEW_WATCH=off:* to leave it alone; unset one of the two"},
		{"CURFEW_MONITOR", external && !s.Monitor, ofBroker + "only the monitor runs; unset one of the two"},
		{"CURFEW_PRIMARY_API_URL", !external && api != "", fmt.Sprintf(ofRabbitMQ, api)},
		{"CURFEW_WATCH", !external && watch != "", fmt.Sprintf(ofRabbitMQ, watch)},
		{"CURFEW_DATA_DIR", manual && s.DataDir != "", stands + "its messages are in memory only; unset the variable, or set it to nothing"},
		{"CURFEW_REDIS_URL", manual && s.RedisURL != "", stands + "its schedule is in the process; unset the variable"},
		{"CURFEW_PRIMARY_URL", manual && external, stands + "the clock of RabbitMQ cannot be moved; unset one of the two"},
		{"CURFEW_MONITOR", manual && !s.Monitor, stands + "without the monitor nothing fires; unset one of the two"},
	} {
		if v.wrong {
			errs = append(errs, fmt.Errorf("%s: %s", v.name, v.why))
		}
	}
	if err := errors.Join(append(errs, s.sharedAddresses()...)...); err != nil {
		return Error{err}
	}
	return nil
}

// sharedAddresses has an error for each address that is another one's, too.
func (s *Settings) sharedAddresses() (errs []error) {
	names := map[string]string{} // by address
	for _, v := range variablesOf(s) {
		given := v.field.String()
		if !strings.HasSuffix(v.name, "_ADDR") || given == "" || strings.HasSuffix(given, ":0") || s.PrimaryURL != "" && v.name == "CURFEW_AMQP_ADDR" {
			continue
		}
		address := Reachable(given)
		if other := names[address]; other != "" {
			errs = append(errs, fmt.Errorf("%s: %s is the address of %s, too; set one of them to another port", v.name, given, other))
		}
		names[address] = v.name
	}
	return errs
}
