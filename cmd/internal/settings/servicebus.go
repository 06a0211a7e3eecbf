package settings

import "curfew/broker/servicebus"

// serviceBusKeys are shared access keys for servicebus.ParseKeys.
type serviceBusKeys string

func (k *serviceBusKeys) UnmarshalText(text []byte) error {
	*k = serviceBusKeys(text)
	if _, err := servicebus.ParseKeys(string(text)); err != nil {
		return explainedError{err}
	}
	return nil
}
