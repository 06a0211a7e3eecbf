package settings

import "fmt"

// UseClock sets what CURFEW_CLOCK is, and leaves it as it is if name is empty. The error is an Error.
func (s *Settings) UseClock(name string) error {
	if name == "" {
		return nil
	}
	if name != "system" && name != manualClock {
		return Error{fmt.Errorf("--clock: %q is invalid: want system or manual", name)}
	}
	s.Clock = name
	s.forgetDataDir()
	return nil
}

const manualClock = "manual"

// ManualClock reports whether the broker's clock stands until it is moved.
func (s *Settings) ManualClock() bool { return s.Clock == manualClock }

// checkClock refuses settings that a manual clock does not go with.
func (s *Settings) checkClock() (errs []error) {
	if !s.ManualClock() {
		return nil
	}
	for _, v := range []struct {
		name string
		set  bool
		why  string
	}{
		{"CURFEW_DATA_DIR", s.DataDir != "", "its messages are in memory only; unset the variable, or set it to nothing"},
		{"CURFEW_REDIS_URL", s.RedisURL != "", "its schedule is in the process; unset the variable"},
		{"CURFEW_PRIMARY_URL", s.PrimaryURL != "", "the clock of a RabbitMQ cannot be moved; unset one of the two"},
		{"CURFEW_MONITOR", !s.Monitor, "without the monitor nothing fires; unset one of the two"},
	} {
		if v.set {
			errs = append(errs, fmt.Errorf("%s: it does not go with a manual clock (CURFEW_CLOCK or --clock), which is for tests: %s", v.name, v.why))
		}
	}
	return errs
}
