package conversation

import (
	"slices"
	"strings"

	"palimpsest/pipeline/expression"
)

// longestClockLine is the longest line, in bytes, to search for the time of day, because clients write it in
// a short one.
const longestClockLine = 400

// clockBytes is how much of a text is searched for the time of day, at its beginning and at its end.
const clockBytes = 16 << 10

// A statement of the current date or time. The value after the label is excluded from a history's identity. A
// date that a person writes into a question counts, because it has no such label.
var clock = expression.New(`(?i)` +
	`((?:\b(?:the )?(?:current|today'?s?|local|present|system|server|client|user'?s?)[ _-](?:local |server |system |utc )?` + clockWord +
	`|(?:^|[(\[{*>|-] ?)` + clockWord + `|\btoday(?: is|:| \()|\b(?:it is|it's) now|\bit is|\bit's|\bnow(?: is|:))` +
	`(?: is)?(?: now)?(?:\*\*)?"? ?[:=(]? ?"?)` + clockValue + `(?:(?:,? (?:at |in )?|[T@/]| \()` + clockValue + `)*\)?`)

// clockHints are the words, in lower case, at least one of which occurs in each statement of the date or
// time.
var clockHints = []string{"date", "time", "today", "now", "it is", "it's"}

const (
	clockWord  = `(?:date ?(?:and|&|/)? ?time|date|time|day|timestamp)`
	clockMonth = `(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?`
	clockValue = `(?:\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?` +
		`|\d{1,4}[./]\d{1,2}[./]\d{2,4}` +
		`|(?:mon|tues?|wed(?:nes)?|thur?s?|fri|sat(?:ur)?|sun)(?:day)?\b` +
		`|` + clockMonth + ` \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?|\d{1,2}(?:st|nd|rd|th)?\.? ` + clockMonth + `(?:,? \d{4})?` +
		`|\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]\.?m\b\.?)?(?: ?(?:Z\b|[+-]\d{2}:?\d{2}))?` +
		`|(?:UTC|GMT|[A-Z]{1,3}[SD]T)\b(?:[+-]\d{1,2}(?::?\d{2})?)?|[A-Z][a-z]+/[A-Z][A-Za-z_]+|\d{10}(?:\d{3})?(?:\.\d+)?|\d{4}\b)`
)

// Lasting returns the part of a text of a user or of the system that identifies it when a client sends it
// again. It leaves out reminders, blocks about the environment, and statements of the current date or time,
// because clients update those between requests.
func Lasting(text string) string {
	text = WithoutEnvironment(WithoutReminders(text))
	if len(text) <= 2*clockBytes {
		return withoutClock(text)
	}
	end := len(text) - clockBytes
	return withoutClock(text[:clockBytes]) + text[clockBytes:end] + withoutClock(text[end:])
}

// withoutClock returns a text without statements of the current date or time.
func withoutClock(text string) string {
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if len(line) <= longestClockLine && strings.ContainsAny(line, "0123456789") && hintsAtClock(line) {
			lines[i] = clock.ReplaceAllString(line, "$1")
		}
	}
	return strings.Join(lines, "\n")
}

// hintsAtClock reports whether a line has a word that occurs next to a date or time.
func hintsAtClock(line string) bool {
	line = strings.ToLower(line)
	return slices.ContainsFunc(clockHints, func(hint string) bool { return strings.Contains(line, hint) })
}

// WithoutEnvironment returns a text without its elements about the environment: the time, the state of an editor,
// a directory or a shell.
func WithoutEnvironment(text string) string {
	return withoutElements(text, isEnvironment)
}

// underscores normalizes the names of tags.
var underscores = strings.NewReplacer("-", "_", ".", "_")

// isEnvironment reports whether a tag's name indicates information about the conversation's environment.
func isEnvironment(name string) bool {
	name = underscores.Replace(strings.ToLower(name))
	switch name {
	case "env", "date", "time", "datetime", "timestamp", "now", "today", "user_info", "system_info", "workspace_info", "session_context",
		"editor_state", "editor_context", "editor_info", "ide_state", "ide_context", "open_files", "opened_files", "open_tabs",
		"visible_files", "cursor_position", "git_status", "cwd", "working_directory", "directory_state":
		return true
	}
	return strings.Contains(name, "environment") || strings.HasSuffix(name, "_env") || strings.HasSuffix(name, "reminder") ||
		strings.HasSuffix(name, "_date") || strings.HasSuffix(name, "_time") || strings.HasSuffix(name, "_datetime") || strings.HasSuffix(name, "_timestamp")
}

// The limits for searching a text: of elements without an end, and of tags.
const (
	mostOpen = 32
	mostTags = 20_000
)

// withoutElements returns a text without its <name …>…</name> parts for which isMeant returns true.
func withoutElements(text string, isMeant func(name string) bool) string {
	var kept strings.Builder
	rest, from := text, 0 // rest is text[from:]
	at, open := 0, 0
	endless := "" // the last name without an end in the rest
	for tags := 0; open < mostOpen && tags < mostTags; tags++ {
		i := strings.IndexByte(rest[at:], '<')
		if i < 0 {
			break
		}
		start := at + i
		name, opened := tagName(rest[start+1:])
		if name == "" || name == endless || !isMeant(name) {
			at = start + 1
			continue
		}
		body := start + 1 + opened
		closing := strings.Index(rest[body:], "</"+name+">")
		if closing < 0 {
			at, endless = start+1, name
			open++
			continue
		}
		kept.WriteString(rest[:start])
		from += body + closing + len(name) + len("</>")
		rest, at = text[from:], 0
	}
	if from == 0 {
		return text
	}
	kept.WriteString(rest)
	return kept.String()
}

// longestTag is the longest opening tag with its attributes, in bytes.
const longestTag = 300

// tagName returns the name of the tag at the start of text, after its "<", and the length of the tag
// including its ">"; "" if absent.
func tagName(text string) (name string, length int) {
	n := 0
	for n < len(text) && n < 64 && isNameByte(text[n]) {
		n++
	}
	if n == 0 || n == len(text) {
		return "", 0
	}
	if text[n] != '>' && text[n] != ' ' && text[n] != '\n' {
		return "", 0
	}
	end := strings.IndexByte(text[:min(len(text), longestTag)], '>')
	if end < 0 || text[end-1] == '/' {
		return "", 0
	}
	return text[:n], end + 1
}

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-' || b == '.' || b == ':'
}
