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
	share int      // of what is left when the sections before had theirs
	parts string   // what a line is called where some are left out
	keeps bool     // the first lines matter most, not the newest
	order []int    // of the lines, that which matters most first; nil: by keeps

	costs  []int // of the lines that were measured, the one that matters most first
	need   int   // tokens of the whole section; more than there are where it cannot fit
	grant  int
	titled int // tokens of the title
}

// line is an entry with the message that it came from.
type line struct {
	message int
	text    string
}

// listing lists the entries of a ledger as its block shows them.
type listing struct{ *Ledger }

// Text writes the ledger as a block for the prompt that takes at most budget
// tokens by count; it is empty where nothing fits. What the person ordered and the
// files that were changed come first and are the last to be cut; the other
// sections share what is left, and what one does not need goes to the others.
// Where a section is cut the oldest entries go, of the orders first those that are
// wishes for the work at hand, and a line says how many. The text depends on the
// entries alone.
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

// sections returns the parts of the block: those that come before all others, and
// the rest. The order within each is the one in which they stand.
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

// WhichHolds says which of so many directives holds where two conflict; of one there is nothing to say. What conflicts
// is for the model to see: the words alone do not tell.
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

// files returns the files for which at names a message.
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

// line says what failed, and how.
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

// What the block shows of commands: who goes on needs the newest, and what they are about.
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

// measure counts what each section needs. It stops at what no section can get.
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

// at returns the line that matters most but i.
func (s *section) at(i int) string {
	return s.lines[s.place(i)]
}

// place returns where the line that matters most but i stands.
func (s *section) place(i int) int {
	switch {
	case s.order != nil:
		return s.order[i]
	case s.keeps:
		return i
	}
	return len(s.lines) - 1 - i
}

// share grants each section what it needs, or where that is too much its share,
// including what others leave of their shares. It returns what is granted.
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
		if len(open) == before { // nobody leaves anything: all get their shares
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
		return // of orders alone it says something how many there are
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

// leftOut says how many lines are missing.
func (s *section) leftOut(lines int) string {
	if s.keeps || s.order != nil {
		return fmt.Sprintf("(%d more %s not shown)\n", lines, s.parts)
	}
	return fmt.Sprintf("(%d older %s not shown)\n", lines, s.parts)
}
