package node

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// Build is what the binary was built from.
type Build struct {
	Version    string // the release, or the module version of a `go install`, or devel
	Revision   string // the commit, with -dirty if the files differed from it, or unknown
	CommitTime string // RFC 3339, or empty
}

// BuildOf completes what the linker has set by what the go tool wrote into the binary.
func BuildOf(b Build) Build {
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		if b.Revision == "" {
			b.Revision, b.CommitTime = stamped(info.Settings)
		}
	}
	b.Version, b.Revision = cmp.Or(b.Version, "devel"), cmp.Or(b.Revision, "unknown")
	return b
}

// stamped is the commit that the go tool found in the source's folder.
func stamped(settings []debug.BuildSetting) (revision, when string) {
	dirty := false
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.time":
			when = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && revision != "" {
		revision += dirtySuffix
	}
	return revision, when
}

const dirtySuffix = "-dirty"

// Commit is the revision without the suffix -dirty, and whether it had that.
func (b Build) Commit() (commit string, dirty bool) {
	return strings.CutSuffix(b.Revision, dirtySuffix)
}
