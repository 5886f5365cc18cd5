package extract

import (
	"strings"
	"unicode/utf8"
)

// The shares of L1's characters if a tool result ends in a verdict or holds an error further down.
const (
	oneCharacters  = 120 // of a verdict or an error alone
	bothCharacters = 75  // of each, if there are both
)

// The end of a text that is searched for a verdict.
const (
	verdictLines = 12
	verdictBytes = 1500
)

// KeptCharacters is how much of a tool result an excerpt keeps.
const KeptCharacters = 200

// Excerpt is the part of a long text that stays of it.
type Excerpt struct {
	Head   string
	Middle string // the first line with an error; "" if absent, or in head or tail
	Tail   string // from the verdict on; "" if the end is not a verdict
	toEnd  bool   // tail is the end of the text
}

// ExcerptOf returns at most KeptCharacters of a longer text: its beginning, a verdict at the end
// (exit codes, sums of a test run, the last line of a stack trace), and an error in the middle.
func ExcerptOf(text string) Excerpt {
	verdict := VerdictAt(text)
	failure := ErrorIn(text, min(verdict, len(text)))
	characters, limit := KeptCharacters, oneCharacters
	if verdict < len(text) && failure >= 0 {
		limit = bothCharacters
	}
	kept := Excerpt{toEnd: true}
	if verdict < len(text) {
		kept.Tail = strings.TrimRight(text[verdict:], " \r\n\t")
		if cut := CutAt(kept.Tail, limit); cut < len(kept.Tail) {
			kept.Tail, kept.toEnd = kept.Tail[:cut], false
		}
		characters -= utf8.RuneCountInString(kept.Tail)
	}
	if failure >= 0 {
		line, _, _ := strings.Cut(text[failure:], "\n")
		kept.Middle = strings.TrimRight(line[:CutAt(line, limit)], "\r ")
		if failure+len(kept.Middle) <= characters {
			kept.Middle = "" // the beginning has it
		}
		characters -= utf8.RuneCountInString(kept.Middle)
	}
	kept.Head = text[:CutAt(text, characters)]
	if kept.Middle != "" && failure < len(kept.Head) {
		kept.Head = text[:failure]
	}
	if len(kept.Head) > verdict {
		return Excerpt{Head: text[:CutAt(text, KeptCharacters)]}
	}
	return kept
}

// String returns the parts in order, with a mark where something is missing.
func (e Excerpt) String() string {
	text := e.Head + "…"
	if e.Middle != "" {
		text += "\n" + e.Middle + "…"
	}
	if e.Tail != "" {
		text += "\n" + e.Tail
		if !e.toEnd {
			text += "…"
		}
	}
	return text
}

// VerdictAt returns the position of the verdict at the end of a text: the earliest line of a
// verdict from which the end is within reach; len(text) without one.
func VerdictAt(text string) int {
	end := len(strings.TrimRight(text, " \r\n\t"))
	found := len(text)
	for lines, at := 0, end; lines < verdictLines && end-at < verdictBytes && at > 0; lines++ {
		start := strings.LastIndexByte(text[:at], '\n') + 1
		if found < len(text) && end-start > oneCharacters {
			break
		}
		if isVerdict(plain(text[start:at])) {
			found = start
		}
		at = max(0, start-1)
	}
	return found
}

// ErrorIn returns the position of the first line before end that reports an error; -1 without one.
func ErrorIn(text string, end int) int {
	for start := 0; start < end; {
		length := strings.IndexByte(text[start:end], '\n')
		if length < 0 {
			length = end - start
		}
		if line := plain(text[start : start+length]); isError(line) {
			return start
		}
		start += length + 1
	}
	return -1
}

// plain returns a line without leading spaces and colors.
func plain(line string) string {
	for {
		line = strings.TrimLeft(line, " \t\r")
		rest, colored := strings.CutPrefix(line, "\x1b[")
		end := strings.IndexByte(rest, 'm')
		if !colored || end < 0 || end > 8 {
			return line
		}
		line = rest[end+1:]
	}
}

// isVerdict reports whether a line at the end of a tool's output states the outcome.
func isVerdict(line string) bool {
	if line == "" {
		return false
	}
	if isError(line) {
		return true
	}
	var starts []string
	switch line[0] {
	case 'o', 'O', 'P', 'F':
		starts = []string{"ok ", "OK", "PASS", "FAIL", "Finished ", "Process exited"}
	case 'E', 'e', '[', 'r':
		starts = []string{"Exit code", "exit", "[exit", "returncode"}
	case 'C', 'K', 'S', 'D', 'B':
		starts = []string{"Command exited", "Command timed out", "Killed", "Segmentation fault", "Done in ", "BUILD "}
	case 'T', 't', 'm':
		starts = []string{"Tests:", "Test Suites:", "test result:", "make: ***"}
	}
	for _, start := range starts {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	if at := strings.Index(line, "exit"); at >= 0 {
		for _, words := range []string{"exit code", "exit status", "exited with"} {
			if strings.HasPrefix(line[at:], words) {
				return true
			}
		}
	}
	return counts(line)
}

// counts reports whether a line counts successes or failures: "3 failed, 12 passed".
func counts(line string) bool {
	for i := 1; i+1 < len(line); i++ {
		if line[i] != ' ' || line[i-1] < '0' || line[i-1] > '9' {
			continue
		}
		for _, word := range []string{"passed", "failed", "passing", "failing", "error", "warning", "skipped", "problem"} {
			if strings.HasPrefix(line[i+1:], word) {
				return true
			}
		}
	}
	return false
}

// isError reports whether a line of a tool's output reports an error.
func isError(line string) bool {
	if line == "" {
		return false
	}
	var starts []string
	switch line[0] {
	case 'e':
		starts = []string{"error:", "error[", "error TS"}
	case 'E':
		starts = []string{"Error:", "ERROR:", "ERROR ", "E   "}
	case 'f':
		starts = []string{"fatal:", "fatal error:"}
	case 'F':
		starts = []string{"FAILED ", "FATAL"}
	case 'p':
		starts = []string{"panic:"}
	case 'n':
		starts = []string{"npm ERR!", "npm error", "not ok "}
	case '-':
		starts = []string{"--- FAIL"}
	}
	for _, start := range starts {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	name, rest, found := strings.Cut(line, ":")
	if !found || rest == "" || strings.ContainsAny(name, " \t\"'`") {
		return false
	}
	if rest[0] == ' ' && (strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception")) {
		return true
	}
	return isDiagnosis(rest)
}

// isDiagnosis reports whether the text after a file's name and a colon is a compiler's, such as
// "12:5: undefined: x" or "12: error: …".
func isDiagnosis(rest string) bool {
	numbers := 0
	for {
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		if digits == 0 || digits == len(rest) || rest[digits] != ':' {
			break
		}
		numbers++
		rest = rest[digits+1:]
	}
	rest, spaced := strings.CutPrefix(rest, " ")
	if !spaced || numbers == 0 {
		return false
	}
	return numbers == 2 || strings.HasPrefix(rest, "error") || strings.HasPrefix(rest, "fatal error") || strings.HasPrefix(rest, "undefined")
}
