package deadletters

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// former has, for each name that selected dead letters before there were expressions, an expression that says the same.
var former = map[string]string{
	"reason": `reason == "expired"`, "died_in": `queue == "orders"`, "from_queue": `queue == "orders"`, "exchange": `exchange == "shop"`, "from_exchange": `exchange == "shop"`,
	"key": `routing_key == "a"`, "from_key": `routing_key == "a"`, "since": `died > ago("2h")`, "before": `died < ago("2h")`,
	"message_id": `message_id == "id-7"`, "run": `run == "ID"`, "header": `headers["tenant"] == "a"`, "headers": `headers["tenant"] == "a"`,
	"property": `type == "order.created"`, "properties": `type == "order.created"`, "json": `json.customer.id == 7`, "json_value": `json.customer.id == 7`,
	"body": `body contains "text"`, "pattern": `body matches "error \\d+"`, "seq": `seq in [17, 18]`, "seqs": `seq in [17, 18]`,
}

// Former returns an error that says how to write what a name selected before there were expressions; nil: the name was none of these.
func Former(name string) error {
	if instead := former[strings.ReplaceAll(name, "-", "_")]; instead != "" {
		return fmt.Errorf("%s is a part of the filter now, such as filter=%s", name, instead)
	}
	return nil
}

// UnmarshalJSON accepts a string.
func (f *Filter) UnmarshalJSON(b []byte) error {
	var text string
	var object map[string]json.RawMessage
	if json.Unmarshal(b, &text) == nil {
		*f = Filter(text)
		return nil
	}
	_ = json.Unmarshal(b, &object) // anything else has no names
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if err := Former(name); err != nil {
			return err
		}
	}
	return errors.New(`filter has to be a text, such as "reason == 'expired'"`)
}
