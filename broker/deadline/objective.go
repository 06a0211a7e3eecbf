package deadline

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Objective is how long messages may wait in a queue. The zero value is none. It is small, since each queue's settings have one.
type Objective struct {
	hundredths uint16 // of a percent; all of them: none expires, however long it waits
	seconds    uint16
}

const (
	noneExpires = "none expires"
	all         = 100_00
)

// ParseObjective reads an objective: "99% consumed within 30s" (or without the word consumed), or "none expires".
func ParseObjective(text string) (Objective, error) {
	words := strings.Fields(text)
	if strings.Join(words, " ") == noneExpires {
		return Objective{hundredths: all}, nil
	}
	if len(words) == 4 && words[1] == "consumed" {
		words = append(words[:1], words[2:]...)
	}
	if len(words) == 3 && words[1] == "within" {
		number, percents := strings.CutSuffix(words[0], "%")
		percent, err := strconv.ParseFloat(number, 64)
		within, errOf := time.ParseDuration(words[2])
		if percents && err == nil && errOf == nil && percent >= 0.01 && percent <= 99.99 && within >= time.Second && within <= 12*time.Hour {
			return Objective{uint16(percent*100 + 0.5), uint16(within / time.Second)}, nil
		}
	}
	return Objective{}, fmt.Errorf("the objective '%s' is neither '%s' nor like '99%% consumed within 30s': a percentage up to 99.99, and whole seconds up to 12h", text, noneExpires)
}

// NoneExpires says that each expiry is a loss, whatever the queue is for.
func (o Objective) NoneExpires() bool { return o.hundredths == all }

// Allowed is the share of the messages that may be consumed later than Within after their entry, or expire; ok is false if the objective is
// not about that.
func (o Objective) Allowed() (share float64, ok bool) {
	return 1 - float64(o.hundredths)/all, o.hundredths != 0 && o.hundredths != all
}

// Within is the time that Allowed is about.
func (o Objective) Within() Millis { return Millis(o.seconds) * 1000 }

// String is the objective as ParseObjective reads it; "" for none.
func (o Objective) String() string {
	switch {
	case o.NoneExpires():
		return noneExpires
	case o.hundredths > 0:
		return strconv.FormatFloat(float64(o.hundredths)/100, 'f', -1, 64) + "% consumed within " + o.Within().Duration().String()
	}
	return ""
}
