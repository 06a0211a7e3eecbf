package node

import (
	"fmt"
	"os"

	"go.uber.org/zap"

	"curfew/broker/definitions"
	"curfew/broker/servicebus"
	"curfew/cmd/internal/settings"
	"curfew/monitor/rabbitmq/cluster"
)

// inputs are the files that the settings name, and the RabbitMQ with its rules. They are read before a node opens anything. A
// part that the settings turn off is its zero value.
type inputs struct {
	certs       *certFiles // of the ports for AMQP
	webCerts    *certFiles // of CURFEW_HTTPS_ADDR. Its users log in with a password, so clients are not asked for certificates
	definitions *definitions.Document
	entities    servicebus.Config
	cluster     *cluster.Cluster
	watch       cluster.Watch
}

// Check finds the mistakes in the settings that keep a node from starting, as far as that is possible without a socket, the data
// folder or another server.
func Check(c *settings.Settings) error {
	if err := c.CheckServe(); err != nil {
		return err
	}
	_, err := readInputs(c, zap.NewNop())
	return err
}

func readInputs(c *settings.Settings, log *zap.Logger) (in inputs, err error) {
	if c.HTTPSAddr != "" {
		web := *c
		web.TLSClientAuth = "none"
		if in.webCerts, err = tlsFiles(&web, log); err != nil {
			return in, err
		}
	}
	if c.PrimaryURL == "" {
		if in.certs, err = tlsFiles(c, log); err != nil {
			return in, err
		}
		if in.definitions, err = parsed("CURFEW_DEFINITIONS", c.Definitions, definitions.Parse); err != nil {
			return in, err
		}
		in.entities, err = parsed("CURFEW_SERVICEBUS_CONFIG", c.ServicebusConfig, servicebus.ParseConfig)
		return in, err
	}
	if in.watch, err = c.WatchRules(); err != nil {
		return in, err
	}
	at := c.Primary()
	at.Name, at.Log = "curfew "+c.Instance, log
	if in.cluster, err = cluster.Open(at); err != nil { // it connects to nothing
		return in, settings.Error{Err: fmt.Errorf("CURFEW_PRIMARY_URL, CURFEW_PRIMARY_API_URL: %w", err)}
	}
	return in, nil
}

// parsed is what a file says. No file is named if that is empty.
func parsed[T any](variable, file string, parse func([]byte) (T, error)) (says T, err error) {
	if file == "" {
		return says, nil
	}
	text, err := os.ReadFile(file)
	if err == nil {
		says, err = parse(text)
	}
	if err != nil {
		return says, fmt.Errorf("with %s=%s: %w", variable, file, err)
	}
	return says, nil
}
