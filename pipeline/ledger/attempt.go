package ledger

import (
	"slices"
	"strings"
)

// Attempt is something that was tried and failed, or was reverted.
type Attempt struct {
	Place

	Text string // in one line
}

// FailedAttempts returns the attempts that failed, and the errors that the model stopped working on.
func (l *Ledger) FailedAttempts() []Attempt {
	var all []Attempt
	for i := range l.Errors {
		if e := &l.Errors[i]; e.GivenUp {
			all = append(all, Attempt{Place: e.Place, Text: e.line()})
		}
	}
	return append(all, l.Attempts...)
}

// maxAttempts bounds how many attempts a ledger has; the oldest go first.
const maxAttempts = 60

// inVain are words of a sentence about a failed attempt.
var inVain = cuesOf(
	"didn't work", "did not work", "doesn't work", "does not work", "won't work", "will not work", "isn't working", "is not working",
	"fails because", "failed because", "broke because", "fails since", "failed since", "is not possible because", "isn't possible because",
	"wasn't enough", "was not enough", "made it worse", "dead end", "gave up on", "giving up on", "let me revert", "i'll revert", "i reverted",
	"reverting", "revert to the", "revert that", "rolled back", "rolling back", "back to the original", "abandoned", "abandoning",
)

// unsure are words that cancel the failure in a sentence.
var unsure = cuesOf(
	"if", "whether", "might", "may", "maybe", "perhaps", "could", "would", "should", "let me check", "let me see", "to see", "in case", "unless", "but now",
)

// isAttempt reports whether the model's sentence is about a failed attempt.
func isAttempt(sentence string) bool {
	if len(sentence) < 24 || len(sentence) > decisionCharacters || strings.HasSuffix(sentence, "?") {
		return false
	}
	low := lower(sentence)
	return inVain.in(low) && !unsure.in(low)
}

// addAttempt keeps an attempt; a repeated one moves to its newest place.
func (l *Ledger) addAttempt(place Place, text string) {
	text = oneLine(strings.ReplaceAll(text, "**", ""), decisionCharacters)
	l.Attempts = slices.DeleteFunc(l.Attempts, func(a Attempt) bool { return a.Text == text })
	l.Attempts = append(l.Attempts, Attempt{Place: place, Text: text})
}

// discards returns the command of a call that reverts changes of files, or "".
func discards(call *Call) string {
	if call.line.runner != "" || !strings.Contains(call.line.key, "git ") {
		return ""
	}
	for command := range strings.SplitSeq(call.line.key, "; ") {
		words := strings.Fields(command)
		if len(words) < 3 || words[0] != "git" {
			continue
		}
		rest := words[2:]
		switch words[1] {
		case "checkout":
			if slices.Contains(rest, "--") || slices.Contains(rest, ".") {
				return command
			}
		case "restore":
			if !slices.Contains(rest, "--staged") {
				return command
			}
		case "reset":
			if slices.Contains(rest, "--hard") && !strings.Contains(command, "origin/") && !strings.Contains(command, "upstream") {
				return command
			}
		case "revert":
			if !strings.HasPrefix(rest[0], "--") || rest[0] == "--no-edit" {
				return command
			}
		}
	}
	return ""
}

// The limits of an entry's text, in bytes.
const (
	commandCharacters   = 240
	subjectCharacters   = 200
	excerptCharacters   = 200
	decisionCharacters  = 320
	directiveCharacters = 1200
	planCharacters      = 8 << 10
	fileCharacters      = 16 << 10 // an instruction file; Claude Code warns above 40,000
)

// addCommand notes a command; a repeated one moves to its last run.
func (l *Ledger) addCommand(place Place, call *Call, failed bool) {
	line := oneLine(call.Command, commandCharacters)
	l.Commands = slices.DeleteFunc(l.Commands, func(c Command) bool { return c.Text == line })
	l.Commands = append(l.Commands, Command{Place: place, Text: line, Failed: failed})
}

// addOutcome opens an error for a failed call, and solves the errors that a successful call makes
// up for.
func (l *Ledger) addOutcome(place Place, call *Made) {
	if call.Result == nil {
		return
	}
	if !call.HasFailed {
		l.solve(place, &call.Call)
		return
	}
	if call.foundNothing() {
		return
	}
	e := Error{
		Place: place, Tool: strings.Clone(call.Tool), Subject: oneLine(call.Argument, subjectCharacters),
		Excerpt: excerpt(&call.Call, call.Result), Solved: Never, key: call.subject(l), likeness: strings.Clone(call.line.likeness),
		checks: call.line.checks,
	}
	if len(e.checks) > 0 && !call.line.piped {
		e.tests, e.packages = failingTests(call.Result.Text)
	}
	l.addError(e)
}

// solve closes the errors that a successful call makes up for.
func (l *Ledger) solve(place Place, call *Call) {
	if !anyOpen(l.Errors) {
		return
	}
	key := call.subject(l)
	touched := make([]string, 0, 4)
	for _, names := range [][]string{call.Writes, call.Deletes} {
		for _, name := range names {
			touched = append(touched, l.canonical(name))
		}
	}
	for i := range l.Errors {
		if e := &l.Errors[i]; e.Open() && (call.solves(key, touched, e) || e.pass(call.passed())) {
			e.Solved = place.Message
		}
	}
}

// Follow reads the calls of a turn after the added ones, and updates existing entries: the errors
// that the calls solve, and the state of the tasks.
func (l *Ledger) Follow(turn int, calls []Made) {
	for i := range calls {
		call := &calls[i]
		if call.Result == nil || call.HasFailed {
			continue
		}
		place := Place{Turn: turn, Message: call.Message}
		l.addTasks(place, call)
		l.solve(place, &call.Call)
	}
	giveUp(l.Errors, turn)
}

// anyOpen reports whether one of some errors is open.
func anyOpen(errors []Error) bool {
	return slices.ContainsFunc(errors, func(e Error) bool { return e.Open() })
}

// passed returns the checks that have passed if the call has succeeded.
func (c *Call) passed() []check { return c.line.checks[len(c.line.checks)-c.line.passes:] }

// subject names the thing that must succeed: the checks, the command without unimportant parts, the
// file and whether it is read or changed, or the tool and its argument.
func (c *Call) subject(l *Ledger) string {
	switch {
	case len(c.line.checks) > 0:
		names := make([]string, len(c.line.checks))
		for i := range c.line.checks {
			names[i] = c.line.checks[i].identity()
		}
		return oneLine(strings.Join(names, "; "), 4*subjectCharacters)
	case c.Command != "":
		return "run " + oneLine(c.line.key, 4*subjectCharacters)
	case len(c.Writes)+len(c.Deletes) > 0:
		return "write " + l.canonical(slices.Concat(c.Writes, c.Deletes)[0])
	case len(c.Reads) > 0:
		return "read " + l.canonical(c.Reads[0])
	}
	return strings.Clone(c.Tool) + " " + oneLine(c.Argument, subjectCharacters)
}

// canonical returns the path under which a file is known.
func (l *Ledger) canonical(name string) string {
	name = clean(name)
	if i, known := l.find(name); known {
		return l.Files[i].Path
	}
	return strings.Clone(name)
}

// solves reports whether a successful call makes up for an error: it is the same command, one that
// does the same in another way, or a change of the file.
func (c *Call) solves(key string, touched []string, e *Error) bool {
	if e.key == key {
		return true
	}
	for _, path := range touched {
		if kind, name, _ := strings.Cut(e.key, " "); name == path && (kind == "write" || kind == "read") {
			return true
		}
	}
	return len(e.checks) == 0 && settles(c.line.likeness, e.likeness)
}

// pass notes checks that have passed, and reports whether all failed ones have passed.
func (e *Error) pass(passed []check) bool {
	if len(e.checks) == 0 {
		return false
	}
	for i := range passed {
		if e.passTests(&passed[i]) {
			return true
		}
		e.checks = slices.DeleteFunc(slices.Clone(e.checks), func(failed check) bool { return passed[i].covers(&failed) })
	}
	return len(e.checks) == 0
}

// passTests notes which failed tests a check has passed, and reports whether all of them have.
func (e *Error) passTests(passed *check) bool {
	if passed.kind != tests || len(e.tests)+len(e.packages) == 0 {
		return false
	}
	if passed.filter != "" {
		before := len(e.tests)
		e.tests = slices.DeleteFunc(slices.Clone(e.tests), passed.names)
		return before > 0 && len(e.tests) == 0
	}
	before := len(e.packages)
	e.packages = slices.DeleteFunc(slices.Clone(e.packages), passed.takesIn)
	return before > 0 && len(e.packages) == 0
}

// failingTests returns the failed tests and the packages or files that a test tool names.
func failingTests(output string) (failed, packages []string) {
	if len(output) > maxText {
		return nil, nil
	}
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \r\n")
		switch {
		case strings.HasPrefix(line, "--- FAIL: "):
			name, _, _ := strings.Cut(line[len("--- FAIL: "):], " ")
			failed = append(failed, strings.Clone(name))
		case strings.HasPrefix(line, "FAIL\t"):
			name, _, _ := strings.Cut(line[len("FAIL\t"):], "\t")
			name, _, _ = strings.Cut(name, " ")
			packages = append(packages, strings.Clone(name))
		case strings.HasPrefix(line, "FAILED ") && strings.Contains(line, "::"):
			file, _, _ := strings.Cut(line[len("FAILED "):], "::")
			packages = append(packages, strings.Clone(file))
			rest, _, _ := strings.Cut(line, " - ")
			failed = append(failed, strings.Clone(rest[strings.LastIndex(rest, ":")+1:]))
		case strings.HasPrefix(line, "test ") && strings.HasSuffix(line, " ... FAILED"):
			failed = append(failed, strings.Clone(strings.TrimSuffix(line[len("test "):], " ... FAILED")))
		}
		if len(failed)+len(packages) > maxNames {
			return nil, nil
		}
	}
	return failed, packages
}

// retryTurns is for how many turns a failed edit or command stays open without a retry. Then the
// work has gone another way.
const retryTurns = 8

// giveUp marks the errors that have not been retried for long. Failed checks stay until a check
// passes. Conflicts stay too.
func giveUp(errors []Error, turn int) {
	for i := range errors {
		e := &errors[i]
		if e.Open() && len(e.checks) == 0 && turn-e.Turn >= retryTurns && !isHeldUp(e.likeness) {
			e.GivenUp = true
		}
	}
}

// addError keeps an error; a repeated one keeps its first place in the list. It replaces earlier
// failures of the same checks.
func (l *Ledger) addError(e Error) {
	l.Errors = slices.DeleteFunc(l.Errors, func(before Error) bool {
		return before.Open() && before.key != e.key && len(e.checks) > 0 && before.taken(e.checks)
	})
	for i := range l.Errors {
		if l.Errors[i].key == e.key {
			l.Errors[i] = e
			return
		}
	}
	l.Errors = append(l.Errors, e)
}

// taken reports whether checks include all failed ones.
func (e *Error) taken(by []check) bool {
	return len(e.checks) > 0 && !slices.ContainsFunc(e.checks, func(failed check) bool {
		return !slices.ContainsFunc(by, func(now check) bool { return now.kind == failed.kind && now.covers(&failed) })
	})
}

// trimErrors drops solved errors if there are too many, then the oldest.
func (l *Ledger) trimErrors() {
	if len(l.Errors) <= maxErrors+maxErrors/8 {
		return
	}
	solved := 0
	for i := range l.Errors {
		if !l.Errors[i].Open() {
			solved++
		}
	}
	surplus := min(solved, len(l.Errors)-maxErrors)
	l.Errors = slices.DeleteFunc(l.Errors, func(e Error) bool {
		if e.Open() || surplus == 0 {
			return false
		}
		surplus--
		return true
	})
	l.Errors = newest(l.Errors, maxErrors, func(e *Error) Place { return e.Place })
}
