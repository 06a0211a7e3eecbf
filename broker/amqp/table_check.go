package amqp

import (
	"errors"
	"fmt"
	"math"
	"time"
)

var errTooDeep = errors.New("amqp: table nested too deep")

// CheckTable reports what AppendTable would panic on, and what exceeds the
// default Limits and so would not be read back.
func CheckTable(t Table) error {
	left := newBudget(Limits{})
	return left.checkTable(t, 1)
}

func (l *budget) checkTable(t Table, depth int) error {
	if depth > l.limits.Depth {
		return errTooDeep
	}
	for key, value := range t {
		if len(key) > maxShortString {
			return fmt.Errorf("amqp: key of %d octets, at most %d", len(key), maxShortString)
		}
		if l.entries--; l.entries < 0 {
			return fmt.Errorf("amqp: table of more than %d entries", l.limits.Entries)
		}
		if err := l.checkValue(value, depth); err != nil {
			return fmt.Errorf("%w, at key %q", err, key)
		}
	}
	return nil
}

func (l *budget) checkValue(value any, depth int) error {
	if l.values--; l.values < 0 {
		return fmt.Errorf("amqp: table of more than %d values", l.limits.Values)
	}
	switch v := value.(type) {
	case Table:
		return l.checkTable(v, depth+1)
	case []any:
		return l.checkArray(v, depth+1)
	case uint64:
		if v > math.MaxInt64 {
			return fmt.Errorf("amqp: %d exceeds a signed 64-bit integer", v)
		}
	case nil, bool, string, []byte, Timestamp, time.Time, Decimal,
		int8, uint8, int16, uint16, int32, uint32, int64, int, float32, float64:
	default:
		return fmt.Errorf("amqp: no field table type for %T", value)
	}
	return nil
}

func (l *budget) checkArray(array []any, depth int) error {
	if depth > l.limits.Depth {
		return errTooDeep
	}
	for _, value := range array {
		if err := l.checkValue(value, depth); err != nil {
			return err
		}
	}
	return nil
}
