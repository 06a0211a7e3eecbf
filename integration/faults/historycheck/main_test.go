package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExitCodes(t *testing.T) {
	const start = `{"do":"declared","at":1,"queue":"q"}
{"do":"started","at":2}
{"do":"opened","at":3,"by":"c","queue":"q"}
`
	for name, c := range map[string]struct {
		log  string
		code int
		says string
	}{
		"no rule broken": {start, 0, "no rule is broken"},
		"a rule broken":  {start + `{"do":"delivered","at":4,"by":"c","id":"m","queue":"q","sum":"s"}`, 1, "line 4: invented"},
		"not a log":      {"hello", 2, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			require.NoError(t, os.WriteFile(path, []byte(c.log), 0o600))
			var out bytes.Buffer
			assert.Equal(t, c.code, run([]string{path}, &out, &out))
			assert.Contains(t, out.String(), c.says)
		})
	}
	var out bytes.Buffer
	assert.Equal(t, 2, run(nil, &out, &out))
	assert.Equal(t, 2, run([]string{filepath.Join(t.TempDir(), "none")}, &out, &out))
}
