package extract

import (
	"fmt"
	"strings"
)

// changeSymbols is how many of the symbols that a change declares are named.
const changeSymbols = 3

// ChangeOf describes a call that writes a file: how many lines it removes and adds, and which
// symbols it declares. arguments are the call's, as JSON or as a patch.
func ChangeOf(arguments string) string {
	added, escaped := stringOf(arguments, "new_string", "newString", "newText", "new_str", "new_text", "content", "file_text", "new_source")
	removed, _ := stringOf(arguments, "old_string", "oldString", "oldText", "old_str", "old_text")
	plus, minus := linesOf(added), linesOf(removed)
	if !escaped {
		if added = arguments; strings.Contains(arguments, "*** ") {
			plus, minus = strings.Count(arguments, "\n+"), strings.Count(arguments, "\n-")
		}
	}
	if plus+minus == 0 {
		return ""
	}
	var parts []string
	if minus > 0 {
		parts = append(parts, fmt.Sprintf("−%d", minus))
	}
	if plus > 0 {
		parts = append(parts, fmt.Sprintf("+%d", plus))
	}
	return JoinNonEmpty(": ", strings.Join(parts, " ")+" lines", strings.Join(declared(added, escaped), " "))
}

// stringOf returns the first of the named string members of a JSON object, still escaped and
// without its quotes. Since quotes inside strings are escaped, the name in quotes is always a
// member's.
func stringOf(object string, members ...string) (string, bool) {
	for _, member := range members {
		_, value, found := strings.Cut(object, `"`+member+`"`)
		if !found {
			continue
		}
		value = strings.TrimLeft(value, ": \t\r\n")
		if value == "" || value[0] != '"' {
			continue
		}
		end := 1
		for end < len(value) && value[end] != '"' {
			if value[end] == '\\' {
				end++
			}
			end++
		}
		return value[1:min(end, len(value))], true
	}
	return "", false
}

// linesOf counts the lines of a text written as JSON.
func linesOf(text string) int {
	if text == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(text, `\n`), `\n`) + 1
}

// declared returns the first symbols that a piece of source declares.
func declared(source string, escaped bool) []string {
	lineEnd := "\n"
	if escaped {
		lineEnd = `\n`
	}
	var symbols []string
	for line := range strings.SplitSeq(source, lineEnd) {
		if symbol := declaredIn(line); symbol != "" && len(symbols) < changeSymbols {
			symbols = append(symbols, symbol)
		}
	}
	return symbols
}

// declaredIn returns the symbol that a line declares, or "".
func declaredIn(line string) string {
	line = strings.TrimLeft(strings.ReplaceAll(line[:min(len(line), LongestName)], `\t`, " "), " \t+")
	for {
		word, rest, found := strings.Cut(line, " ")
		if !found {
			return ""
		}
		rest = strings.TrimLeft(rest, " ")
		switch word {
		case "export", "default", "public", "private", "protected", "static", "async", "pub", "abstract", "final":
			line = rest
			continue
		case "func", "def", "class", "type", "fn", "function", "interface", "struct", "enum", "trait":
		default:
			return ""
		}
		if word == "func" && strings.HasPrefix(rest, "(") { // a method's receiver
			_, rest, _ = strings.Cut(rest, ") ")
		}
		end := 0
		for end < len(rest) && KindOf[rest[end]]&(isLetter|isDigit|isUnder) != 0 {
			end++
		}
		return rest[:end]
	}
}
