package deadline

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLabelsAreText: whatever a name is, so that a scrape shows the others, too.
func TestLabelsAreText(t *testing.T) {
	assert.Equal(t, "aufträge", Label("aufträge"))
	assert.Equal(t, `"a\xff"`, Label("a\xff"))
	assert.NotEqual(t, Label("a\xfe"), Label("a\xff"))
}
