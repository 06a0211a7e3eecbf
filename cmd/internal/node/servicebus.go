package node

import (
	"errors"
	"net"

	"go.uber.org/zap"

	"curfew/broker/servicebus"
)

// serviceBus says who may connect as a client of Azure Service Bus.
func (o *ownBroker) serviceBus() servicebus.Options {
	c := o.n.settings
	keys, _ := servicebus.ParseKeys(c.ServicebusKeys) // the settings have checked it
	plain, _, _ := net.SplitHostPort(c.HTTPAddr)      // the settings have checked these, too
	secure, _, _ := net.SplitHostPort(c.HTTPSAddr)
	return servicebus.Options{Keys: keys, Emulator: c.ServicebusEmulator, User: c.User, Hosts: []string{plain, secure}}
}

// declareEntities makes the entities in the Config.json that the settings name.
func (o *ownBroker) declareEntities() error {
	if o.n.settings.ServicebusConfig == "" {
		return nil
	}
	vh, ok := o.broker.VHost("/")
	if !ok {
		return errors.New("there is no virtual host / for the entities")
	}
	changed, problems := o.n.inputs.entities.Declare(vh)
	if len(changed) > 0 {
		o.n.log.Info("Service Bus's Config.json has changed settings", zap.Strings("entities", changed))
	}
	for _, why := range problems {
		o.n.log.Warn("an entity of Service Bus's Config.json is not as it says", zap.Error(why))
	}
	return nil
}
