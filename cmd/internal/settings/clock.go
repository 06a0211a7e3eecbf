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
