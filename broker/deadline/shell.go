package deadline

import (
	"slices"
	"strings"
)

// Shell quotes a name for a shell, in commands that are shown to be copied.
func Shell(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-%:=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Command is a command for a shell, with its names and flags. Names stand at its end if one of them begins as a flag does.
func Command(command string, names []string, flags ...string) string {
	words := slices.Concat(names, flags)
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "-") }) {
		words = slices.Concat(flags, []string{"--"}, names)
	}
	for _, word := range words {
		command += " " + Shell(word)
	}
	return command
}
