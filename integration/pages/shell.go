package pages

import (
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command is one command of a shell script, also one in a pipe, a loop or $( ). Writing to a file counts as the command tee.
type Command struct {
	Line    int      // within the script
	Words   []string // the first is the program; without quotes, with the values of variables that the script has set before
	Assigns []string // names of the variables that stand before it, or alone
}

// Script is what a shell script does.
type Script struct {
	Commands  []Command
	Functions map[string]bool // that it defines
}

// ParseScript reads a POSIX shell script. variables has what earlier scripts have set; what this one sets is added.
func ParseScript(text string, variables map[string]string) (*Script, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, err
	}
	s := &Script{Functions: map[string]bool{}}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.FuncDecl:
			s.Functions[n.Name.Value] = true
		case *syntax.Stmt:
			for _, redirect := range n.Redirs {
				if redirect.Op == syntax.RdrOut || redirect.Op == syntax.AppOut {
					s.Commands = append(s.Commands, Command{Line: int(n.Pos().Line()), Words: append([]string{"tee"}, fields(redirect.Word, variables)...)})
				}
			}
		case *syntax.CallExpr:
			own := maps.Clone(variables)
			if len(n.Args) == 0 {
				own = variables
			}
			c := Command{Line: int(n.Pos().Line()), Assigns: assign(n.Assigns, own)}
			for _, word := range n.Args {
				c.Words = append(c.Words, fields(word, variables)...)
			}
			if len(c.Words) > 0 && c.Words[0] == "export" {
				for _, word := range c.Words[1:] {
					if name, value, is := strings.Cut(word, "="); is {
						variables[name] = value
					}
				}
			}
			s.Commands = append(s.Commands, c)
		}
		return true
	})
	return s, nil
}

// assign notes the values of variables.
func assign(assigns []*syntax.Assign, variables map[string]string) (names []string) {
	for _, a := range assigns {
		if a.Name == nil {
			continue
		}
		names = append(names, a.Name.Value)
		if a.Value != nil {
			variables[a.Name.Value] = strings.Join(fields(a.Value, variables), " ")
		}
	}
	return names
}

// fields is a word without its quotes. An unquoted variable may be several words, or none.
func fields(word *syntax.Word, variables map[string]string) []string {
	var b strings.Builder
	quoted := false
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch p := part.(type) {
			case *syntax.Lit:
				b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
			case *syntax.SglQuoted:
				quoted = true
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				quoted = true
				add(p.Parts)
			case *syntax.ParamExp:
				value, known := variables[p.Param.Value]
				if !known {
					value = "1" // a number is a name as well
				}
				b.WriteString(value)
			default: // what another command prints
				b.WriteString("1")
			}
		}
	}
	add(word.Parts)
	if len(word.Parts) == 1 && !quoted {
		return strings.Fields(b.String())
	}
	return []string{b.String()}
}

// Typed is the commands of a session: what is behind "$ ", and behind "> " where it goes on. The other lines, which are output, are empty.
func Typed(session string) string {
	var commands strings.Builder
	for line := range strings.Lines(session) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			commands.WriteString(command)
		} else if more, is := strings.CutPrefix(line, "> "); is {
			commands.WriteString(more)
		} else {
			commands.WriteString("\n")
		}
	}
	return commands.String()
}
