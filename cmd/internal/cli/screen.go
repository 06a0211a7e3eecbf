package cli

import "strings"

// Screen takes what commands print, for a program that draws it: tables as wide as the screen, in color, and the rows behind their lines.
type Screen struct {
	Width int
	Lines []Line

	open bool // the last line has not ended
}

// Line is a line of output.
type Line struct {
	Text string
	Row  map[string]string // the cells of a table's row by heading, those that are not shown included; nil: it is none
	Head bool              // it has the headings of a table, whose rows follow
}

// Write implements io.Writer.
func (s *Screen) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if !s.open {
			s.Lines = append(s.Lines, Line{})
		}
		end := strings.TrimSuffix(line, "\n")
		s.Lines[len(s.Lines)-1].Text += end
		s.open = end == line
	}
	return len(text), nil
}
