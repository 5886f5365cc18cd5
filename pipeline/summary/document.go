package summary

import (
	"slices"
	"strings"
)

// Version numbers the form of a summary's text.
const Version = 1

// section is one of the sections that a model writes.
type section int

// The sections, in their order.
const (
	goal section = iota
	constraints
	done
	inProgress
	blocked
	decisions
	nextSteps
	critical
	sections // the number of sections
)

// The headings that the program writes after the model's own sections.
const (
	identifiersHeading = "## Identifiers"
	readHeading        = "## Read files"
	modifiedHeading    = "## Modified files"
)

// heading returns the lines that open a section.
func (s section) heading() string {
	return [sections]string{
		"## Goal", "## Constraints & Preferences", "## Progress\n### Done", "### In progress", "### Blocked",
		"## Key decisions", "## Next steps", "## Critical context",
	}[s]
}

// document is a summary split into sections and items. An item is a bullet with its lines.
type document struct {
	items [sections][]string
	has   [sections]bool // the text has the section, even if empty

	identifiers []string // restored by the program
	read        []string // files, from the ledger
	modified    []string
}

// parse splits a text into sections. Items below an unknown heading count as critical context. It
// leaves out the program's own sections, because they are written again.
func parse(text string) *document {
	d := &document{}
	at, skips, fenced := sections, true, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if name, is := headingOf(line); is && !fenced {
			at, skips = sectionOf(name)
			if !skips {
				d.has[at] = true
			}
			continue
		}
		if !skips && strings.TrimSpace(line) != "" {
			d.add(at, line, fenced)
		}
	}
	for s := range d.items {
		d.items[s] = slices.DeleteFunc(d.items[s], saysNothing)
	}
	return d
}

// add takes the next line of a section: a new item, or more of the last one.
func (d *document) add(at section, line string, fenced bool) {
	items := &d.items[at]
	bare := strings.TrimLeft(line, " \t")
	text, isBullet := withoutBullet(bare)
	goesOn := len(*items) > 0 && (fenced || len(bare) < len(line))
	if !isBullet && strings.HasPrefix(bare, "```") && len(*items) > 0 {
		goesOn = true
	}
	if goesOn {
		(*items)[len(*items)-1] += "\n" + line
		return
	}
	*items = append(*items, text)
}

// missing names the first section that a text lacks; "" if it has all.
func (d *document) missing() string {
	for s, has := range d.has {
		if !has {
			heading := section(s).heading()
			return strings.ToLower(strings.TrimLeft(heading[strings.LastIndexByte(heading, '\n')+1:], "# "))
		}
	}
	return ""
}

// String returns the summary's text: always the same for the same items.
func (d *document) String() string {
	var text strings.Builder
	for s := range sections {
		if s > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(s.heading() + "\n")
		writeItems(&text, d.items[s])
	}
	for _, list := range []struct {
		heading string
		items   []string
	}{{identifiersHeading, d.identifiers}, {readHeading, d.read}, {modifiedHeading, d.modified}} {
		if len(list.items) > 0 {
			text.WriteString("\n" + list.heading + "\n")
			writeItems(&text, list.items)
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func writeItems(text *strings.Builder, items []string) {
	if len(items) == 0 {
		text.WriteString("(none)\n")
	}
	for _, item := range items {
		text.WriteString("- " + item + "\n")
	}
}

// settle makes finished items consistent: they are no longer open, and those finished before stay
// finished.
func (d *document) settle(previous *document) {
	known := map[string]bool{}
	for _, item := range d.items[done] {
		known[meaning(item)] = true
	}
	if previous != nil {
		var before []string
		for _, item := range previous.items[done] {
			if !known[meaning(item)] {
				known[meaning(item)] = true
				before = append(before, item)
			}
		}
		d.items[done] = append(before, d.items[done]...)
	}
	for _, open := range []section{inProgress, blocked, nextSteps} {
		d.items[open] = slices.DeleteFunc(d.items[open], func(item string) bool { return known[meaning(item)] })
	}
}

// headingOf returns the name in a heading: a line that starts with #, or is bold as a whole.
func headingOf(line string) (name string, is bool) {
	line = strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(line, "#"):
		line = strings.TrimLeft(line, "#")
	case strings.HasPrefix(line, "**") && strings.HasSuffix(strings.TrimSuffix(line, ":"), "**") && len(line) > 4:
	default:
		return "", false
	}
	line = strings.Trim(line, " *:_\t")
	line = strings.TrimLeft(line, "0123456789.) ")
	line = strings.ReplaceAll(strings.ToLower(line), "&", "and")
	return strings.Join(strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '-' || r == '_' || r == '*' }), " "), true
}

// sectionOf returns the section of a heading; skips drops the section.
func sectionOf(name string) (at section, skips bool) {
	for prefix, s := range map[string]section{
		"goal": goal, "constraint": constraints, "preference": constraints, "done": done, "completed": done, "in progress": inProgress,
		"blocked": blocked, "key decision": decisions, "decision": decisions, "next step": nextSteps, "critical context": critical,
	} {
		if strings.HasPrefix(name, prefix) {
			return s, false
		}
	}
	switch name {
	case "progress", "identifiers", "read files", "modified files", "":
		return sections, true
	default:
		return critical, false
	}
}

// withoutBullet returns a line without the mark of a list, and a checkbox in it.
func withoutBullet(line string) (text string, is bool) {
	for _, mark := range []string{"- ", "* ", "• ", "+ "} {
		if rest, found := strings.CutPrefix(line, mark); found {
			return withoutCheckbox(rest), true
		}
	}
	digits := strings.TrimLeft(line, "0123456789")
	if rest, found := strings.CutPrefix(digits, ". "); found && len(digits) < len(line) {
		return withoutCheckbox(rest), true
	}
	return line, false
}

func withoutCheckbox(text string) string {
	text = strings.TrimSpace(text)
	for _, box := range []string{"[x] ", "[X] ", "[ ] ", "[-] ", "[~] "} {
		if rest, found := strings.CutPrefix(text, box); found {
			return strings.TrimSpace(rest)
		}
	}
	return text
}

// saysNothing reports whether an item marks an empty section.
func saysNothing(item string) bool {
	switch strings.Trim(strings.ToLower(item), " ().*_-–") {
	case "", "none", "n/a", "nothing", "none yet", "nothing yet":
		return true
	default:
		return false
	}
}

// meaning returns a key that is equal for items with the same words.
func meaning(item string) string { return strings.Join(words(item), " ") }
