package commands

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"curfew/broker/deadline"
	"curfew/cmd/internal/cli"
)

// runner runs a command of this program and has it write to out.
type runner func(ctx context.Context, out io.Writer, args []string) error

// topLists are the commands of the first place.
var topLists = [][]string{{"incident", "ls"}, {"queue", "list", "--sort", "risk"}}

// every is how often a place is shown again.
const every = 2 * time.Second

// topCommand is curfew top. options are for tests.
func topCommand(run runner, options ...tea.ProgramOption) *cobra.Command {
	c := &cobra.Command{
		Use:   "top",
		Short: "A full screen: the verdict, what is wrong, all queues; down to consumers, messages, dead letters, replays",
		Long: `A full screen that follows a running Curfew: its verdict, what is wrong, and the queues of all virtual hosts, those that lose most first.
Choose a line and press Enter to see more of it. Everything is also a command of its own; --help of each explains its columns.`,
		Args: cli.NoArguments,
	}
	cli.WithAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		var flags []string
		for _, name := range []string{"url", "user", "password-file", "color"} {
			if f := cmd.Flag(name); f.Changed {
				flags = append(flags, "--"+name+"="+f.Value.String())
			}
		}
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		m := &model{ctx: ctx, run: func(ctx context.Context, out io.Writer, args []string) error {
			return run(ctx, out, slices.Concat(flags, args))
		}, places: []*place{{title: "Incidents and queues", commands: topLists}}}
		if len(options) == 0 && !cli.OnTerminal(cmd.OutOrStdout()) {
			return cli.Usagef("top needs a terminal; curfew status --watch does not")
		}
		_, err := tea.NewProgram(m, append(options, tea.WithContext(ctx), tea.WithOutput(cmd.OutOrStdout()))...).Run()
		if errors.Is(err, tea.ErrProgramKilled) { // the context has ended
			err = nil
		}
		return err
	}
	return c
}

// place is what is shown below the verdict: the output of commands, one below the other.
type place struct {
	title        string
	about        string   // the whole text of its incident; "": none
	incident     string   // the ID of that, which can be acknowledged; "": it is not known
	first        []string // a command that is run once, before the others; what it prints is not shown
	commands     [][]string
	vhost, queue string // of what it is about; "": of more than one
	once         bool   // the commands are not run again
	traffic      bool   // the queues are sorted by what is published to them
	position     string // after a dry run: that of the messages it counted
	cursor       int    // which of the lines that can be chosen
	only         string // lines with this text; "": all
	lines        []cli.Line
}

// deadOnly leaves out what never died: the messages of a queue for work, which also may hold dead letters.
const deadOnly = `--filter=reason != ""`

func of(vhost, queue, what string, commands ...[]string) *place {
	title := queue
	if vhost != "/" {
		title += " in " + vhost
	}
	for i := range commands {
		commands[i] = append(commands[i], "--vhost="+vhost, "--", queue)
	}
	return &place{title: title + what, commands: commands, vhost: vhost, queue: queue}
}

// below is the place that a line of p leads to; nil: it leads nowhere.
func (p *place) below(row map[string]string) *place {
	vhost, queue, seq := row["VHOST"], row["QUEUE"], row["SEQ"]
	switch {
	case seq != "" && p.queue != "":
		to := of(p.vhost, p.queue, ", message "+seq, []string{"dlq", "show"})
		to.commands[0], to.once = append(to.commands[0], seq), true
		return to
	case queue != "" && vhost != "":
		to := of(vhost, queue, "", []string{"consumers"}, []string{"queue", "peek"}, []string{"queue", "show"})
		to.about, to.incident = row["ABOUT"], row["ID"]
		return to
	case row["SEE"] != "":
		return &place{title: row["ID"], incident: row["ID"], about: row["ABOUT"], commands: [][]string{strings.Fields(row["SEE"])[1:]}}
	}
	return nil
}

// model implements tea.Model.
type model struct {
	ctx           context.Context
	run           runner
	places        []*place // the last is shown
	visit         int      // counts them: what was asked for by an earlier visit is not shown
	width, height int
	verdict       []cli.Line // of status
	problem       string     // of the last look; "": none
	typing        bool       // the text of only
	acks          string     // the ID of the incident to acknowledge if the key is pressed again
}

func (m *model) here() *place { return m.places[len(m.places)-1] }

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return nil } // the size of the screen comes first

type (
	// looked is what a visit to a place has found.
	looked struct {
		visit          int
		verdict, lines []cli.Line
		err            error
		refused        bool // the first command was
	}
	// again asks for another look by the same visit.
	again struct{ visit int }
)

// look runs the commands of the place.
func (m *model) look() tea.Cmd {
	visit, first, commands, width := m.visit, m.here().first, m.here().commands, m.width
	m.here().first = nil
	return func() tea.Msg {
		if first != nil {
			if err := m.run(m.ctx, io.Discard, first); err != nil {
				return looked{visit: visit, err: err, refused: true}
			}
		}
		status, all := &cli.Screen{Width: width}, &cli.Screen{Width: width}
		err := m.run(m.ctx, status, []string{"status"})
		if e, is := errors.AsType[cli.Exit](err); is && e.Code == exitUnhealthy {
			err = nil
		}
		for i, args := range commands {
			if i > 0 {
				all.Lines = append(all.Lines, cli.Line{})
			}
			err = errors.Join(err, m.run(m.ctx, all, args))
		}
		return looked{visit, status.Lines, all.Lines, err, false}
	}
}

func (m *model) arrive() tea.Cmd {
	m.visit++
	m.problem, m.typing = "", false
	return m.look()
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		return m, m.arrive()
	case looked:
		if msg.visit != m.visit {
			return m, nil
		}
		p := m.here()
		if m.problem = ""; msg.err != nil {
			m.problem, _, _ = strings.Cut(msg.err.Error(), "\n")
		}
		if len(msg.verdict) > 0 {
			m.verdict = msg.verdict
		}
		if len(msg.lines) > 0 || msg.err == nil {
			p.lines = msg.lines
		}
		if p.once {
			p.position = positionIn(p.lines)
		}
		if about, told := aboutIn(p.lines); told {
			if p.about = about; about == "" { // it is over
				p.incident = ""
			}
		}
		if p.once || msg.refused { // so that the reason stays
			return m, nil
		}
		return m, func() tea.Msg {
			deadline.Sleep(m.ctx, every)
			return again{msg.visit}
		}
	case again:
		if msg.visit == m.visit {
			return m, m.look()
		}
	case tea.KeyPressMsg:
		if m.typing {
			m.typed(msg)
			return m, nil
		}
		return m, m.press(msg.String())
	}
	return m, nil
}

// typed takes a key while the text that lines must have is typed.
func (m *model) typed(key tea.KeyPressMsg) {
	p := m.here()
	switch key.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, p.only = false, ""
	case "backspace":
		if r := []rune(p.only); len(r) > 0 {
			p.only = string(r[:len(r)-1])
		}
	default:
		p.only += key.Text
	}
	p.cursor = 0
}

// press does what a key asks for.
func (m *model) press(key string) tea.Cmd {
	p, acks := m.here(), m.acks
	m.acks = ""
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "up", "k":
		p.cursor--
	case "down", "j":
		p.cursor++
	case "pgup":
		p.cursor -= m.height / 2
	case "pgdown", "space":
		p.cursor += m.height / 2
	case "home", "g":
		p.cursor = 0
	case "end", "G":
		p.cursor = len(p.lines)
	case "/":
		m.typing = true
	case "enter", "right":
		if at := p.chosen(); at >= 0 {
			return m.goTo(p.below(p.lines[at].Row))
		}
	case "esc", "left", "backspace":
		if p.only != "" {
			p.only = ""
		} else if len(m.places) > 1 {
			m.places = m.places[:len(m.places)-1]
			return m.arrive()
		}
	case "a":
		switch id := p.toAcknowledge(); {
		case id == "":
		case acks != id: // it is asked for once
			m.acks = id
		default:
			p.first = []string{"incident", "ack", "--", id}
			return m.arrive()
		}
	case "t":
		if len(m.places) == 1 {
			p.commands, p.cursor = topLists, 0
			if p.traffic = !p.traffic; p.traffic {
				p.commands = [][]string{topLists[0], {"queue", "list", "--sort", "in"}}
			}
			return m.arrive()
		}
	case "d":
		if vhost, queue := p.subject(); queue != "" {
			return m.goTo(of(vhost, queue, ", dead letters", []string{"dlq", "groups", deadOnly}, []string{"dlq", "search", deadOnly}))
		}
	case "r":
		if vhost, queue := p.subject(); queue != "" {
			to := of(vhost, queue, ", what a replay would do", []string{"dlq", "replay", "--dry-run", deadOnly})
			to.once = true
			return m.goTo(to)
		}
	case "y":
		if p.position != "" {
			replay := []string{"dlq", "replay", "--background", deadOnly, "--vhost=" + p.vhost, "--position=" + p.position, "--", p.queue}
			to := &place{title: "Replays", first: replay, commands: [][]string{{"dlq", "replays"}}}
			m.places = m.places[:len(m.places)-1] // what was shown there is out of date
			return m.goTo(to)
		}
	}
	return nil
}

func (m *model) goTo(p *place) tea.Cmd {
	if p == nil {
		return nil
	}
	m.places = append(m.places, p)
	return m.arrive()
}

// subject is the queue that the place or its chosen line is about.
func (p *place) subject() (vhost, queue string) {
	if at := p.chosen(); p.queue == "" && at >= 0 {
		return p.lines[at].Row["VHOST"], p.lines[at].Row["QUEUE"]
	}
	return p.vhost, p.queue
}

// toAcknowledge is the incident that the place or its chosen line is about; "": none.
func (p *place) toAcknowledge() string {
	if at := p.chosen(); at >= 0 && p.lines[at].Row["SEE"] != "" {
		return p.lines[at].Row["ID"]
	}
	return p.incident
}

// shown reports whether a line is shown: all but rows without the text that was typed. It need not be on the screen, where cells are cut.
func (p *place) shown(l *cli.Line) bool {
	if l.Row == nil || p.only == "" {
		return true
	}
	for heading, cell := range l.Row {
		if heading != "SEE" && strings.Contains(strings.ToLower(cell), strings.ToLower(p.only)) {
			return true
		}
	}
	return false
}

// chosen is the index of the line under the cursor, which it keeps within the lines; -1: there are none.
func (p *place) chosen() int {
	var rows []int
	for i := range p.lines {
		if p.lines[i].Row != nil && p.shown(&p.lines[i]) {
			rows = append(rows, i)
		}
	}
	if p.cursor = max(0, min(p.cursor, len(rows)-1)); len(rows) == 0 {
		return -1
	}
	return rows[p.cursor]
}
