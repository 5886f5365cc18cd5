package compactionbridge

import (
	"encoding/json"
	"strconv"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/expression"
)

// shown returns the lines of a file that a result shows. Lines with numbers in front of them have
// those numbers; others begin at start. With start 0, only numbered lines of the result belong to
// the file.
func shown(at int, text string, start int) []stretch {
	text = conversation.WithoutReminders(text)
	var seen []stretch
	for part := range strings.SplitSeq(text, "\n") {
		number, rest, ok := numbered(part)
		if !ok {
			continue
		}
		one := line{text: strings.TrimSuffix(rest, "\r"), at: at}
		if last := len(seen) - 1; last >= 0 && seen[last].from+len(seen[last].lines) == number {
			seen[last].lines = append(seen[last].lines, one)
			continue
		}
		seen = append(seen, stretch{from: number, lines: []line{one}})
	}
	if len(seen) > 0 || start == 0 {
		return seen
	}
	if text = strings.TrimRight(text, "\n"); strings.TrimSpace(text) == "" {
		return nil
	}
	return []stretch{{from: start, lines: linesOf(at, text)}}
}

// numbered cuts the number in front of a line off: "   12→" of Claude Code, "12\t"
// of cat -n, "00012| " of opencode.
func numbered(text string) (number int, rest string, ok bool) {
	trimmed := strings.TrimLeft(text, " ")
	digits := 0
	for digits < len(trimmed) && trimmed[digits] >= '0' && trimmed[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits > 8 {
		return 0, "", false
	}
	for _, mark := range [...]string{"→", "\t", "| "} {
		if rest, ok = strings.CutPrefix(trimmed[digits:], mark); ok {
			number, _ = strconv.Atoi(trimmed[:digits]) // digits alone
			return number, rest, number > 0
		}
	}
	return 0, "", false
}

// startOf returns the number of the first line that a read asked for; 0 if unknown.
func startOf(arguments string, partial bool) int {
	if !partial {
		return 1
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return 0
	}
	for _, name := range [...]string{"offset", "start_line"} {
		if number, err := strconv.Atoi(string(members[name])); err == nil {
			return max(number, 1)
		}
	}
	if _, ok := members["limit"]; ok {
		return 1
	}
	return 0
}

var (
	moves  = expression.New(`^cd [^&;|<>]+&& *`)
	prints = expression.New(`^(?:cat|head(?: -n? ?\d+)?|nl -ba|cat -n) +[^ |;&<>]+$`)
	ranges = expression.New(`^sed -n +['"]?(\d+),\d+p['"]? +[^ |;&<>]+$`)
	number = expression.New(`^(?:nl -ba|cat -n) +[^ |;&<>]+ *\| *(?:sed -n +['"]?\d+,\d+p['"]?|head(?: -n? ?\d+)?|tail(?: -n? ?\d+)?)$`)
)

// printed reports whether a shell command only prints a file, and the number of the first line that
// it prints.
func printed(command string) (start int, plain bool) {
	command = strings.TrimSpace(moves.ReplaceAllString(strings.TrimSpace(command), ""))
	if match := ranges.FindStringSubmatch(command); match != nil {
		start, _ = strconv.Atoi(match[1]) // digits alone
		return start, start > 0
	}
	if number.MatchString(command) {
		return 0, true
	}
	return 1, prints.MatchString(command)
}

// outputOf returns a command's output without the client's wrapping.
func outputOf(result string) string {
	if strings.HasPrefix(result, `{"output":`) {
		var wrapped struct {
			Output string `json:"output"`
		}
		if json.Unmarshal([]byte(result), &wrapped) == nil {
			return wrapped.Output
		}
	}
	if head, output, found := strings.Cut(result, "\nOutput:\n"); found && strings.Count(head, "\n") < 8 {
		return output
	}
	return result
}

// rewriters match commands that may change files without naming them.
var rewriters = expression.New(`\b(git (?:checkout|switch|restore|reset|stash|pull|merge|rebase|revert|cherry-pick|apply|am|clean)|` +
	`gofmt -w|goimports -w|go fmt|go generate|cargo fmt|black|ruff (?:format|check --fix)|prettier (?:--write|-w)|eslint [^|;&]*--fix|rustfmt|` +
	`(?:npm|pnpm|yarn|bun|make|mise|just|task)(?: run)? (?:[\w:-]*(?:fmt|format|fix|generate|codegen)[\w:-]*))\b`)

// rewriterIn returns the part of a command that may change files without naming them; "" if absent.
func rewriterIn(command string) string { return rewriters.FindString(command) }
