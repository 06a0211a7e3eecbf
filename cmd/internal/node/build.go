package node

import "runtime/debug"

// Build is what the binary was built from.
type Build struct {
	Version  string // the release, or the module version of a `go install`, or devel
	Revision string // the commit, with -dirty if the files differed from it, or unknown
}

// BuildOf reads what the binary was built from. release is the version that the linker has set, or empty.
func BuildOf(release string) Build {
	b := Build{Version: release, Revision: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if b.Version == "" {
		b.Version = "devel"
		if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
	}
	if !ok {
		return b
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	b.Revision += dirty
	return b
}
