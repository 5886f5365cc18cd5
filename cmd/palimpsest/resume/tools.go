package resume

import (
	"encoding/json"
	"slices"
	"strings"

	"palimpsest/cmd/palimpsest/connect"
)

// operation is a tool call in terms that most clients share.
type operation struct {
	kind          operationKind
	path          string
	command       string
	folder        string // working folder of the command; "" if it is the client's
	description   string
	content       string // of the file to write
	before, after string // of an edit
	isAll         bool   // an edit changes every place
	offset, limit *int   // lines of the file to read
}

type operationKind int

const (
	runs operationKind = iota + 1
	reads
	writes
	edits
)

// kinds maps equal tools of clients, by their names in lower case.
func kinds() map[string]operationKind {
	return map[string]operationKind{
		"bash": runs, "shell": runs, "exec_command": runs, "execute_command": runs, "run_shell_command": runs, "execute_bash": runs, "local_shell": runs, "run_terminal_cmd": runs,
		"read": reads, "read_file": reads,
		"write": writes, "write_file": writes, "write_to_file": writes,
		"edit": edits, "replace": edits,
	}
}

// ignored are arguments that do not change a call's operation, only how long it waits, how it describes
// itself or who is asked.
func ignored() []string {
	return []string{
		"timeout", "timeout_ms", "yield_time_ms", "max_output_tokens", "login", "shell", "tty", "justification", "sandbox_permissions", "with_escalated_permissions",
		"requires_approval", "security_risk", "is_input", "is_background", "run_in_background", "type", "env",
	}
}

// operationOf returns the operation of a call. known is false for a call without an equal tool in other
// clients.
func operationOf(tool, arguments string) (made operation, known bool) {
	made.kind, known = kinds()[strings.ToLower(tool)]
	var given map[string]json.RawMessage
	if !known || json.Unmarshal([]byte(arguments), &given) != nil {
		return operation{}, false
	}
	for name, value := range given {
		if !made.take(name, value) {
			return operation{}, false
		}
	}
	switch made.kind {
	case runs:
		known = made.command != "" && made.path == ""
		if made.folder != "" {
			made.command = connect.ShellLine([]string{"cd", made.folder}) + " && " + made.command
		}
		return made, known
	case edits:
		return made, made.path != "" && made.before != ""
	case reads, writes:
	}
	return made, made.path != ""
}

// take reads an argument. It returns false for one that other clients' tools may not have.
func (o *operation) take(name string, value json.RawMessage) bool {
	if string(value) == "null" || string(value) == "false" || slices.Contains(ignored(), name) && string(value) != "true" {
		return true
	}
	switch name {
	case "command", "cmd":
		return o.takeCommand(value)
	case "workdir", "working_directory":
		return json.Unmarshal(value, &o.folder) == nil && o.kind == runs
	case "description":
		return json.Unmarshal(value, &o.description) == nil
	case "file_path", "filePath", "path", "absolute_path":
		return json.Unmarshal(value, &o.path) == nil
	case "content", "file_text":
		return json.Unmarshal(value, &o.content) == nil && o.kind == writes
	case "old_string", "oldString", "oldText", "old_str":
		return json.Unmarshal(value, &o.before) == nil
	case "new_string", "newString", "newText", "new_str":
		return json.Unmarshal(value, &o.after) == nil
	case "edits":
		return o.takeEdits(value)
	case "replace_all", "replaceAll":
		return json.Unmarshal(value, &o.isAll) == nil
	case "offset":
		return json.Unmarshal(value, &o.offset) == nil
	case "limit":
		return json.Unmarshal(value, &o.limit) == nil
	}
	return slices.Contains([]string{"login", "requires_approval", "tty"}, name)
}

// takeCommand reads a shell command: a text, or a list of words.
func (o *operation) takeCommand(value json.RawMessage) bool {
	if json.Unmarshal(value, &o.command) == nil {
		return true
	}
	var words []string
	if json.Unmarshal(value, &words) != nil {
		return false
	}
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") { // a shell and its line
		o.command = words[2]
		return true
	}
	for _, word := range words {
		if strings.ContainsAny(word, " \t\n'\"\\$&|;<>(){}*?`") {
			return false
		}
	}
	o.command = strings.Join(words, " ")
	return true
}

// takeEdits reads a list of changes that has one.
func (o *operation) takeEdits(value json.RawMessage) bool {
	var list []struct {
		Before string `json:"oldText"`
		After  string `json:"newText"`
	}
	if json.Unmarshal(value, &list) != nil || len(list) != 1 {
		return false
	}
	o.before, o.after = list[0].Before, list[0].After
	return true
}
