package sessiontest

import (
	"fmt"
	"strings"
)

// toolSchema is one tool that the client offers.
type toolSchema struct {
	name, description string
	strings           []string // its parameters, the first ones required
	required          int
}

func toolSchemas() []toolSchema {
	return []toolSchema{
		{"Read", "Reads a file from the local file system. The result shows each line with its number.", []string{"file_path", "offset", "limit"}, 1},
		{"Edit", "Replaces one string in a file with another. The old string must occur exactly once.", []string{"file_path", "old_string", "new_string"}, 3},
		{"Write", "Writes a file, and replaces it where it exists.", []string{"file_path", "content"}, 2},
		{"Bash", "Runs a command in a shell and returns what it prints, errors included.", []string{"command", "description", "timeout"}, 1},
		{"Grep", "Searches files for a regular expression and lists the lines that match.", []string{"pattern", "path", "output_mode", "-n"}, 1},
		{"Glob", "Lists the files whose names match a pattern, newest first.", []string{"pattern", "path"}, 1},
		{"WebFetch", "Fetches a page and answers a question about it.", []string{"url", "prompt"}, 2},
		{"TodoWrite", "Keeps the list of what is to do. Use it for every task of more than three steps.", []string{"todos"}, 1},
		{"Task", "Starts another agent with a task of its own and waits for its report.", []string{"description", "prompt", "subagent_type"}, 2},
		{"NotebookEdit", "Replaces one cell of a notebook.", []string{"notebook_path", "cell_id", "new_source"}, 3},
	}
}

// parameters is the tool's JSON schema.
func (t toolSchema) parameters() string {
	var properties, required []string
	for i, name := range t.strings {
		properties = append(properties, fmt.Sprintf(`%s:{"type":["string","number","boolean","array"],"description":%s}`, quote(name), quote("The "+strings.ReplaceAll(name, "_", " ")+" of the "+t.name+" call.")))
		if i < t.required {
			required = append(required, quote(name))
		}
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(properties, ","), strings.Join(required, ","))
}

// toolList writes all tools by a format of three values: name, description, schema.
func toolList(format string) string {
	var tools []string
	for _, tool := range toolSchemas() {
		tools = append(tools, fmt.Sprintf(format, quote(tool.name), quote(tool.description), tool.parameters()))
	}
	return "[" + strings.Join(tools, ",") + "]"
}
