package ledger

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// section is one part of the block.
type section struct {
	title string
	lines []string // oldest first
	share int      // of the budget left by earlier sections
	parts string   // the name of a line for the count of omitted ones
	keeps bool     // the first lines matter most, not the newest
	order []int    // indexes of the lines, the most important first; nil means by keeps

	costs  []int // of the measured lines, the most important first
	need   int   // tokens of the whole section; more than available if it cannot fit
	grant  int
	titled int // tokens of the title
}

// line is an entry with the message that it came from.
type line struct {
	message int
	text    string
}

// listing lists the entries of a ledger in the form of its block.
type listing struct{ *Ledger }

// Text writes the ledger as a block for the prompt that takes at most budget tokens by count; it
// returns "" if no line fits. The person's orders and the changed files come first and are cut
// last; the other sections share the rest, and unused shares go to the others. A cut section drops
// its oldest entries, of the orders first mere wishes for the current work, and a line gives the
// number. The text depends only on the entries.
func (l *Ledger) Text(budget int, count func(string) int) string {
	first, rest := listing{l}.sections()
	for limit := budget; limit > 0; {
		measure(first, limit, count)
		measure(rest, limit, count)
		used := share(first, limit)
		share(rest, limit-used)
		written := write(slices.Concat(first, rest), count)
		size := count(written)
		if size <= budget {
			return written
		}
		limit -= size - budget // lines cost a little more together than one by one
	}
	return ""
}

// LeftOut returns how many typed directives a text of the ledger left out for its budget.
func (l *Ledger) LeftOut(text string) int {
	left := 0
	for _, line := range inOrder(listing{l}.typed()) {
		if !strings.Contains(text, line) {
			left++
		}
	}
	return left
}

// sections returns the parts of the block: those with priority, and the rest, each in the order of
// the text.
func (c listing) sections() (first, rest []*section) {
	first = []*section{
		c.orders(),
		{title: "Open tasks of the list that you keep:", lines: c.openTasks(), share: 40, parts: "tasks", keeps: true},
		{title: "Modified files:", lines: c.files(func(f *File) int {
			if f.Gone {
				return Never
			}
			return f.Modified
		}), share: 40, parts: "modified files"},
	}
	for _, directive := range c.Directives {
		switch directive.Kind {
		case Plan:
			rest = append(rest, &section{
				title: fmt.Sprintf("Plan that the user approved (#%d):", directive.Message), lines: strings.Split(directive.Text, "\n"),
				share: 15, parts: "lines of the plan", keeps: true,
			})
		case Instructions:
			rest = append(rest, &section{
				title: fmt.Sprintf("Instructions in %s (#%d):", directive.Source, directive.Message), lines: strings.Split(directive.Text, "\n"),
				share: 15, parts: "lines of this file", keeps: true,
			})
		case Typed:
		}
	}
	rest = append(
		rest,
		&section{title: "Deleted files:", lines: c.files(func(f *File) int {
			if !f.Gone {
				return Never
			}
			return f.Deleted
		}), share: 10, parts: "deleted files"},
		&section{title: "Open errors:", lines: c.openErrors(), share: 20, parts: "open errors"},
		&section{title: "Decisions:", lines: c.decisions(), share: 25, parts: "decisions"},
		&section{title: "Tried in vain:", lines: c.attempts(), share: 15, parts: "failed attempts"},
		&section{title: "Files that were only read:", lines: c.files(func(f *File) int {
			if f.Modified != Never || f.Deleted != Never {
				return Never
			}
			return f.Read
		}), share: 10, parts: "files"},
		&section{title: "Newest commands:", lines: c.commands(), share: 10, parts: "commands"},
	)
	return withLines(first), withLines(rest)
}

func withLines(sections []*section) []*section {
	return slices.DeleteFunc(sections, func(s *section) bool { return len(s.lines) == 0 })
}

// WhichHolds tells the model which of so many directives applies if two conflict; "" for fewer than
// two. The model must detect conflicts because the words alone do not reveal them.
func WhichHolds(directives int) string {
	if directives < 2 {
		return ""
	}
	return "; where two conflict, the one with the higher number holds"
}

// orders are the typed directives: strong ones matter most, and of those the newest.
func (c listing) orders() *section {
	lines := c.typed()
	s := &section{title: "Directives of the user, word for word" + WhichHolds(len(lines)) + ":", lines: inOrder(lines), share: 60, parts: "directives"}
	for _, strong := range []bool{true, false} {
		for i := range slices.Backward(lines) {
			if isStrong(lines[i].text) == strong {
				s.order = append(s.order, i)
			}
		}
	}
	return s
}

func (c listing) typed() []line {
	var lines []line
	for _, directive := range c.Directives {
		if directive.Kind == Typed {
			lines = append(lines, line{directive.Message, directive.Text})
		}
	}
	return lines
}

// files returns the files for which at returns a message.
func (c listing) files(at func(*File) int) []string {
	var lines []line
	for i := range c.Files {
		if message := at(&c.Files[i]); message != Never {
			name := c.Files[i].Path
			if below, isBelow := strings.CutPrefix(name, c.Base+"/"); isBelow && c.Base != "" {
				name = below
			}
			lines = append(lines, line{message, name})
		}
	}
	return inOrder(lines)
}

func (c listing) openErrors() []string {
	var lines []line
	for i := range c.Errors {
		if e := &c.Errors[i]; e.Open() {
			lines = append(lines, line{e.Message, e.line()})
		}
	}
	return inOrder(lines)
}

// line describes the failure and its error.
func (e *Error) line() string {
	said := e.Tool + " " + e.Subject
	if e.Excerpt != "" {
		said += " → " + e.Excerpt
	}
	return said
}

func (c listing) attempts() []string {
	var lines []line
	for _, attempt := range c.FailedAttempts() {
		lines = append(lines, line{attempt.Message, attempt.Text})
	}
	return inOrder(lines)
}

func (c listing) decisions() []string {
	var lines []line
	for _, decision := range c.Decisions {
		said := decision.Text
		if decision.Role == conversation.User {
			said = "User: " + said
		}
		lines = append(lines, line{decision.Message, said})
	}
	return inOrder(lines)
}

// The limits for commands in the block: the model needs the newest, and their purpose.
const (
	shownCommands  = 8
	shownOfCommand = 100 // characters
)

func (c listing) commands() []string {
	var lines []line
	for _, command := range newest(slices.Clone(c.Commands), shownCommands, func(c *Command) Place { return c.Place }) {
		outcome := "ok"
		if command.Failed {
			outcome = "failed"
		}
		lines = append(lines, line{command.Message, oneLine(command.Text, shownOfCommand) + " → " + outcome})
	}
	return inOrder(lines)
}

func (c listing) openTasks() []string {
	var lines []string
	for i := range c.Tasks {
		if task := &c.Tasks[i]; task.Open() {
			text := task.Text
			if task.ID != "" {
				text = "task " + task.ID + ": " + text
			}
			lines = append(lines, fmt.Sprintf("#%d [%s] %s", task.Message, task.Status, text))
		}
	}
	return lines
}

// inOrder writes lines in the order of their messages.
func inOrder(lines []line) []string {
	slices.SortStableFunc(lines, func(a, b line) int { return a.message - b.message })
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = fmt.Sprintf("#%d %s", line.message, line.text)
	}
	return texts
}

// measure counts each section's need. It stops at limit because no section can get more.
func measure(sections []*section, limit int, count func(string) int) {
	for _, s := range sections {
		if s.titled == 0 {
			s.titled = count(s.title + "\n")
		}
		s.need = s.titled
		for i := 0; i < len(s.lines) && s.need <= limit; i++ {
			if i == len(s.costs) {
				s.costs = append(s.costs, count(s.at(i)+"\n"))
			}
			s.need += s.costs[i]
		}
	}
}

// at returns the i-th most important line.
func (s *section) at(i int) string {
	return s.lines[s.place(i)]
}

// place returns the index of the i-th most important line.
func (s *section) place(i int) int {
	switch {
	case s.order != nil:
		return s.order[i]
	case s.keeps:
		return i
	}
	return len(s.lines) - 1 - i
}

// share grants each section its need, or if that is too much its share, including unused shares of
// others. It returns the granted sum.
func share(sections []*section, budget int) int {
	open, left := slices.Clone(sections), budget
	for len(open) > 0 {
		shares, granted := 0, 0
		for _, s := range open {
			shares += s.share
		}
		before := len(open)
		open = slices.DeleteFunc(open, func(s *section) bool {
			s.grant = left * s.share / shares
			if s.need > s.grant {
				return false
			}
			s.grant = s.need
			granted += s.need
			return true
		})
		if len(open) == before { // no section leaves a rest, so each gets its share
			return budget
		}
		left -= granted
	}
	return budget - left
}

// write puts the sections together, each within its grant.
func write(sections []*section, count func(string) int) string {
	var text strings.Builder
	for _, s := range sections {
		s.write(&text, count)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// write writes the section within its grant.
func (s *section) write(text *strings.Builder, count func(string) int) {
	if s.need <= s.grant {
		text.WriteString(s.title + "\n" + strings.Join(s.lines, "\n") + "\n")
		return
	}
	left := s.grant - s.titled - count(s.leftOut(len(s.lines)))
	if left < 0 {
		return
	}
	kept := 0
	for kept < len(s.costs) && s.costs[kept] <= left {
		left -= s.costs[kept]
		kept++
	}
	if kept == 0 && s.order == nil {
		return // without lines, the count helps only for orders
	}
	places := make([]int, kept)
	for i := range places {
		places[i] = s.place(i)
	}
	slices.Sort(places)
	text.WriteString(s.title + "\n")
	if !s.keeps {
		text.WriteString(s.leftOut(len(s.lines) - kept))
	}
	for _, place := range places {
		text.WriteString(s.lines[place] + "\n")
	}
	if s.keeps {
		text.WriteString(s.leftOut(len(s.lines) - kept))
	}
}

// leftOut returns how many lines are missing.
func (s *section) leftOut(lines int) string {
	if s.keeps || s.order != nil {
		return fmt.Sprintf("(%d more %s not shown)\n", lines, s.parts)
	}
	return fmt.Sprintf("(%d older %s not shown)\n", lines, s.parts)
}
