package testenv

import (
	"os"
	"strings"
	"testing"
)

// Setenv makes settings ("NAME=value") the only settings of Curfew in the environment until the
// test ends.
func Setenv(t *testing.T, settings ...string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "CURFEW_") || strings.HasPrefix(name, "OTEL_") || strings.HasPrefix(name, "RABBITMQ_DEFAULT_") {
			t.Setenv(name, "") // so that it is restored
			_ = os.Unsetenv(name)
		}
	}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv(name, value)
	}
}
