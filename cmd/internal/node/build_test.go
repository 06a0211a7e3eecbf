package node

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBuildOfARelease(t *testing.T) {
	b := BuildOf(Build{Version: "v1.2.3", Revision: "abc-dirty", CommitTime: "2030-01-02T03:04:05Z"})
	assert.Equal(t, Build{Version: "v1.2.3", Revision: "abc-dirty", CommitTime: "2030-01-02T03:04:05Z"}, b)
	commit, dirty := b.Commit()
	assert.Equal(t, "abc", commit)
	assert.True(t, dirty)

	b = BuildOf(Build{}) // of a test
	assert.NotEmpty(t, b.Version)
	assert.Equal(t, "unknown", b.Revision)
}

func TestStampedCommit(t *testing.T) {
	stamp := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2030-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "false"}}
	revision, when := stamped(stamp)
	assert.Equal(t, "abc", revision)
	assert.Equal(t, "2030-01-02T03:04:05Z", when)
	stamp[2].Value = "true"
	revision, _ = stamped(stamp)
	assert.Equal(t, "abc-dirty", revision)
	revision, when = stamped(nil)
	assert.Equal(t, "", revision+when)
}
