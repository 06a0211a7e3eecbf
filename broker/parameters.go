package broker

import (
	"maps"

	"curfew/broker/policy"
)

// SetGlobalParameter stores a JSON value, as policy.ParseJSON returns it, under a
// name; to the broker it means nothing (RabbitMQ: Global Parameters). The value is
// not to be changed afterwards.
func (b *Broker) SetGlobalParameter(name string, value any) (created bool, err error) {
	b.changeGlobal(func() {
		_, existed := b.global[name]
		created = !existed
		b.global[name] = policy.Whole(value)
	})
	return created, b.saveDefinitions()
}

// ClearGlobalParameter removes a parameter; false: there is none of that name.
func (b *Broker) ClearGlobalParameter(name string) (existed bool, err error) {
	b.changeGlobal(func() {
		_, existed = b.global[name]
		delete(b.global, name)
	})
	return existed, b.saveDefinitions()
}

// GlobalParameters returns the parameters by name.
func (b *Broker) GlobalParameters() map[string]any {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return maps.Clone(b.global)
}

func (b *Broker) changeGlobal(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.global == nil {
		b.global = map[string]any{}
	}
	change()
	b.saver.changes.Add(1)
}
