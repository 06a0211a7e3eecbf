package printable

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 629 * time.Millisecond: "629 ms", 9100 * time.Millisecond: "9.1 s", 90 * time.Second: "1 min 30 s", 26 * time.Hour: "1 d 2 h", -time.Second: "-1 s",
	} {
		assert.Equal(t, want, Span(d))
	}
}
