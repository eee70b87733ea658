package top

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// Screen is what a person sees: a bubbletea model. Set the exported fields.
type Screen struct {
	Source *Source
	// Every is the time between the end of a look at the site and the next one.
	Every time.Duration
	// Page gives a page with the present time.
	Page func() *view.Page

	ctx     context.Context
	size    tea.WindowSizeMsg
	picture *Picture
	away    *away // nil = the site answers
	wrong   error // ends the program
	order   int   // in orders
	filter  string
	chosen  string // id of the job that is marked; "" = the first one
	row     int    // where it was last
	reading *text  // nil = the lists are shown
	typing  bool   // keys go to the filter
}

// away says that the site does not answer.
type away struct {
	since cluster.Instant
	why   error
}

// text is the help, or the explanation of a job.
type text struct {
	job   string // "" = help
	words string
	top   int // first line that is shown
}

type (
	looked struct {
		*Picture
		err error
	}
	explained struct {
		job   string
		words string
	}
	due struct{}
)

// Run shows the screen until the person quits or ctx ends. The options name the terminal.
func (s *Screen) Run(ctx context.Context, options ...tea.ProgramOption) error {
	s.ctx = ctx
	_, err := tea.NewProgram(s, append([]tea.ProgramOption{tea.WithContext(ctx), tea.WithFPS(10)}, options...)...).Run()
	switch {
	case s.wrong != nil:
		err = s.wrong
	case ctx.Err() != nil, errors.Is(err, tea.ErrInterrupted):
		err = nil
	}
	return err
}

// Init asks for the first picture.
func (s *Screen) Init() tea.Cmd { return s.look() }

// look asks for a picture.
func (s *Screen) look() tea.Cmd {
	was := s.picture
	return func() tea.Msg {
		p, err := s.Source.Look(s.ctx, was)
		return looked{p, err}
	}
}

// explain asks why a job runs or waits.
func (s *Screen) explain(job string) tea.Cmd {
	return func() tea.Msg {
		x, err := s.Source.Explain(s.ctx, job)
		if err != nil {
			return explained{job, "job " + job + " cannot be explained: " + err.Error()}
		}
		var out bytes.Buffer
		page := s.Page()
		page.Out = &out
		x.Write(page)
		return explained{job, out.String()}
	}
}

// Update takes a key, a new size or an answer of the site.
func (s *Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.size = msg
	case tea.KeyPressMsg:
		return s, s.key(msg)
	case due:
		return s, s.look()
	case looked:
		return s, s.see(msg)
	case explained:
		if s.reading != nil && s.reading.job == msg.job {
			s.reading.words = msg.words
		}
	}
	return s, nil
}

// see takes an answer of the site.
func (s *Screen) see(l looked) tea.Cmd {
	next := tea.Tick(s.Every, func(time.Time) tea.Msg { return due{} })
	var f *failure.Error
	switch {
	case l.err == nil:
		fresh := s.picture == nil || s.picture.Status.Round != l.Status.Round
		s.picture, s.away = l.Picture, nil
		if fresh && s.reading != nil && s.reading.job != "" {
			return tea.Batch(next, s.explain(s.reading.job))
		}
	case errors.As(l.err, &f) && f.Code == failure.Misuse:
		s.wrong = l.err
		return tea.Quit
	case s.away == nil:
		s.away = &away{s.Page().Now, l.err}
	default:
		s.away.why = l.err
	}
	return next
}

// key does what a key asks for.
func (s *Screen) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if name == "ctrl+z" {
		return tea.Suspend
	}
	if s.typing {
		s.edit(name, k.Text)
		return nil
	}
	if s.reading != nil {
		return s.read(name)
	}
	jobs := s.jobs()
	at := s.at(jobs)
	switch name {
	case "q":
		return tea.Quit
	case "?", "h":
		s.reading = &text{words: help}
	case "s":
		s.order = (s.order + 1) % len(orders)
	case "/":
		s.typing = true
	case "esc":
		s.filter = ""
	case "enter":
		if at < len(jobs) {
			s.reading = &text{job: jobs[at].ID, words: "asking ..."}
			return s.explain(jobs[at].ID)
		}
	default:
		at = s.moved(name, at, len(jobs))
		if s.row = at; at < len(jobs) {
			s.chosen = jobs[at].ID
		}
	}
	return nil
}

// edit changes the filter.
func (s *Screen) edit(name, letters string) {
	switch name {
	case "enter":
		s.typing = false
	case "esc":
		s.typing, s.filter = false, ""
	case "backspace":
		if all := []rune(s.filter); len(all) > 0 {
			s.filter = string(all[:len(all)-1])
		}
	default:
		if len(s.filter)+len(letters) <= 32 {
			s.filter += letters
		}
	}
}

// read moves in a text, or leaves it.
func (s *Screen) read(name string) tea.Cmd {
	switch name {
	case "q", "esc", "enter", "?", "h":
		s.reading = nil
	default:
		s.reading.top = s.moved(name, s.reading.top, max(len(s.textLines())-s.size.Height+2, 1))
	}
	return nil
}

// moved gives where a key moves to in a list.
func (s *Screen) moved(name string, at, length int) int {
	page := max(s.size.Height/2, 1)
	switch name {
	case "up", "k":
		at--
	case "down", "j":
		at++
	case "pgup":
		at -= page
	case "pgdown", "space":
		at += page
	case "home", "g":
		at = 0
	case "end", "G":
		at = length
	}
	return max(min(at, length-1), 0)
}

// order is how the jobs are sorted.
type order struct {
	name    string
	compare func(a, b *view.Live) int
}

// orders are what the key s goes through. Pictures have the first one, and jobs that are equal in others stay so.
var orders = []order{
	{"time", byTime},
	{"gpus", func(a, b *view.Live) int { return cmp.Compare(b.GPUs, a.GPUs) }},
	{"tenant", func(a, b *view.Live) int { return cmp.Compare(a.Tenant, b.Tenant) }},
	{"user", func(a, b *view.Live) int { return cmp.Compare(a.User, b.User) }},
	{"waiting", func(a, b *view.Live) int { return cmp.Compare(waits(b), waits(a)) }},
}

// byTime puts leases first, by their ends, then waiting jobs, the longest first.
func byTime(a, b *view.Live) int {
	return cmp.Or(cmp.Compare(waits(a), waits(b)), cmp.Compare(a.Ends, b.Ends), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Key, b.Key))
}

// waits gives 1 for a job that waits.
func waits(j *view.Live) int {
	if j.State == string(cluster.Waiting) {
		return 1
	}
	return 0
}

// jobs gives the jobs that the filter selects, in the chosen order.
func (s *Screen) jobs() []view.Live {
	if s.picture == nil {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(s.picture.Jobs), func(j view.Live) bool {
		return !strings.Contains(j.Tenant, s.filter) && !strings.Contains(j.User, s.filter) && !strings.HasPrefix(j.ID, s.filter)
	})
	slices.SortStableFunc(out, func(a, b view.Live) int { return orders[s.order].compare(&a, &b) })
	return out
}

// at gives the row of the marked job; if it is gone, that of the job in its place.
func (s *Screen) at(jobs []view.Live) int {
	if i := slices.IndexFunc(jobs, func(j view.Live) bool { return j.ID == s.chosen }); i >= 0 {
		return i
	}
	return max(min(s.row, len(jobs)-1), 0)
}
