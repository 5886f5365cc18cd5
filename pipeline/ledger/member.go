package ledger

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// members yields the members of a JSON object, with their values as sent. It trusts the text to be
// JSON and stops if it is not. It decodes no strings, because most of a call's arguments are long
// strings that aren't needed here.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		at := skipSpace(object, 0)
		if at == len(object) || object[at] != '{' {
			return
		}
		for at++; ; {
			at = skipSpace(object, at)
			if at < len(object) && object[at] == ',' {
				at = skipSpace(object, at+1)
			}
			if at == len(object) || object[at] != '"' {
				return
			}
			name := object[at:stringEnd(object, at)]
			at = skipSpace(object, at+len(name))
			if at == len(object) || object[at] != ':' {
				return
			}
			at = skipSpace(object, at+1)
			end := valueEnd(object, at)
			if !yield(strings.Trim(name, `"`), strings.TrimSpace(object[at:end])) {
				return
			}
			at = end
		}
	}
}

func skipSpace(text string, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// stringEnd returns the end of the JSON string that begins at from.
func stringEnd(text string, from int) int {
	for at := from + 1; ; {
		quote := strings.IndexByte(text[at:], '"')
		if quote < 0 {
			return len(text)
		}
		at += quote + 1
		escapes := 0
		for at-2-escapes > from && text[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// valueEnd returns the end of the JSON value that begins at from.
func valueEnd(text string, from int) int {
	depth := 0
	for at := from; at < len(text); at++ {
		switch text[at] {
		case '"':
			at = stringEnd(text, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
		case ',':
			if depth == 0 {
				return at
			}
		}
	}
	return len(text)
}

// decoded decodes a JSON string; "" if the value is not a string.
func decoded(value string) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if inside := value[1 : len(value)-1]; strings.IndexByte(inside, '\\') < 0 {
		return inside
	}
	var whole string
	if json.Unmarshal([]byte(value), &whole) != nil {
		return ""
	}
	return whole
}

// decodedList decodes a JSON string, a list of strings, or a list of objects with a string under
// one of the names.
func decodedList(value string, names ...string) []string {
	if value == "" || value[0] != '[' {
		if one := decoded(value); one != "" {
			return []string{one}
		}
		return nil
	}
	var elements []json.RawMessage
	if json.Unmarshal([]byte(value), &elements) != nil {
		return nil
	}
	var all []string
	for _, element := range elements {
		one := decoded(string(element))
		for name, member := range members(string(element)) {
			if one == "" && slices.Contains(names, name) {
				one = decoded(member)
			}
		}
		if one != "" {
			all = append(all, one)
		}
	}
	return all
}

// arguments are the members of a call's arguments that reveal its purpose.
type arguments struct {
	paths            []string
	sources, targets []string // of a move
	command          string
	content          string
	patch            string
	plan             string
	searched         string
	operation        string // of Responses' apply_patch
	partial          bool
	named            string // by the best descriptive member, if no other reveals the purpose
	rank             int    // index of named's member in namedBy
	rest             string // the first other text, as it was sent
}

// namedBy are the members that describe a call without a file, command or search, best first.
var namedBy = []string{"url", "description", "prompt", "subject", "name", "skill", "id"}

// argumentsOf reads the arguments of a JSON object.
func argumentsOf(object string) arguments {
	args := arguments{rank: len(namedBy)}
	for name, value := range members(object) {
		args.add(name, value)
	}
	return args
}

func (a *arguments) add(name, value string) {
	switch name {
	case "file_path", "path", "filePath", "notebook_path", "file", "filename", "target_file", "absolute_path",
		"relative_path", "relative_workspace_path", "filepath", "file_name", "files", "paths", "uri":
		for _, path := range decodedList(value, "path", "file_path", "filePath", "uri") {
			a.paths = append(a.paths, strings.TrimPrefix(path, "file://"))
		}
		a.partial = a.partial || strings.Contains(value, "line") && value[0] == '['
	case "source", "old_path", "from", "src", "source_path":
		a.sources = append(a.sources, decodedList(value)...)
	case "destination", "new_path", "to", "dst", "target", "destination_path", "new_name":
		a.targets = append(a.targets, decodedList(value)...)
	case "command", "cmd", "commands", "script":
		a.command = shellOf(value)
	case "content", "contents", "file_text":
		a.content = decoded(value)
	case "patch", "patchText", "input", "diff":
		a.patch = decoded(value)
	case "plan":
		a.plan = decoded(value)
	case "pattern", "query", "regex", "queries":
		a.searched = strings.Join(decodedList(value), " ")
	case "offset", "limit", "start_line", "end_line", "view_range", "pages", "line_number":
		a.partial = true
	case "type":
		a.operation = decoded(value)
	default:
		a.describe(name, value)
	}
}

// describe keeps the description of a call of another kind.
func (a *arguments) describe(name, value string) {
	if len(value) > 2*maxArgument || value == "" || value[0] != '"' {
		return
	}
	for rank, known := range namedBy {
		if name == known && rank < a.rank {
			a.named, a.rank = decoded(value), rank
			return
		}
	}
	if a.rest == "" {
		a.rest = value
	}
}

// maxArgument bounds the texts that describe a call of an unknown tool.
const maxArgument = 2000

// says returns the most informative argument.
func (a *arguments) says(does verb) string {
	switch {
	case a.searched != "":
		return strings.Join(append([]string{a.searched}, inFront("in ", a.paths)...), " ")
	case does == moves && len(a.sources) > 0 && len(a.targets) > 0:
		return a.sources[0] + " " + a.targets[0]
	case len(a.paths) > 0:
		return strings.Join(a.paths, " ")
	case a.command != "":
		return a.command
	case a.named != "":
		return a.named
	case a.patch != "":
		return a.patch
	}
	return decoded(a.rest)
}

// inFront puts a word before the first of some texts.
func inFront(word string, list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return []string{word + list[0]}
}

// shellOf returns the command line of a call: a text, a list of lines, or the arguments of a
// process, of which ["bash", "-lc", "…"] is one line.
func shellOf(value string) string {
	words := decodedList(value)
	if len(words) < 2 || value[0] != '[' {
		return strings.Join(words, "\n")
	}
	switch base(words[0]) {
	case "bash", "sh", "zsh", "powershell", "pwsh", "cmd", "cmd.exe":
		return words[len(words)-1]
	case "apply_patch":
		return words[1]
	}
	if strings.ContainsAny(words[0], " \n") {
		return strings.Join(words, "\n") // Cline's list of whole lines
	}
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`|&;<>()*?#") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
