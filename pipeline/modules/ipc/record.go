package ipc

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// What L2 leaves of one thing, in characters.
const (
	askedCharacters    = 400
	saidCharacters     = 240
	argumentCharacters = 120
	errorCharacters    = 160
)

// record is what L2 and L3 know of a turn.
type record struct {
	lines   []line
	asked   string   // first sentence that a person typed
	said    string   // last sentence of the assistant that L2 has
	saidAt  int      // its line; -1: none
	tools   []string // names of the calls, in order
	changed []string // files that calls wrote
	read    []string // files that calls read
	errors  int      // calls that failed
}

// line is one line of L2.
type line struct {
	index int // message
	text  string
}

// newRecord reads the messages of a turn; first is the index of the first one.
func newRecord(first int, messages []conversation.Message) *record {
	r := &record{saidAt: -1}
	results := map[string]*conversation.Block{}
	for _, message := range messages {
		for i := range message.Blocks {
			if block := &message.Blocks[i]; block.Kind == conversation.ToolResult {
				results[block.ID] = block
			}
		}
	}
	for i, message := range messages {
		switch message.Role {
		case conversation.User:
			r.addUser(first+i, message)
		case conversation.Assistant:
			r.addAssistant(first+i, message, results)
		case conversation.System, conversation.Tool:
		}
	}
	return r
}

// addUser notes what a person typed and attached.
func (r *record) addUser(index int, message conversation.Message) {
	var texts, media []string
	for i := range message.Blocks {
		block := &message.Blocks[i]
		switch {
		case block.Kind == conversation.Text && conversation.IsTyped(block.Text):
			texts = append(texts, block.Text)
		case block.Kind == conversation.Media:
			media = append(media, describe(index, block.Media))
		}
	}
	asked := sentence(strings.Join(texts, "\n"), askedCharacters)
	if r.asked == "" && !strings.HasPrefix(asked, "[Request interrupted") {
		r.asked = asked
	}
	if text := joinNonEmpty(" ", asked, strings.Join(media, " ")); text != "" {
		r.lines = append(r.lines, line{index, "User: " + text})
	}
}

// addAssistant notes the first sentence and the calls of an assistant message.
func (r *record) addAssistant(index int, message conversation.Message, results map[string]*conversation.Block) {
	said := ""
	for i := range message.Blocks {
		block := &message.Blocks[i]
		switch block.Kind {
		case conversation.Text:
			if said == "" {
				said = sentence(block.Text, saidCharacters)
			}
		case conversation.Media:
			r.lines = append(r.lines, line{index, "Assistant: " + describe(index, block.Media)})
		case conversation.ToolCall, conversation.ToolResult, conversation.Thinking, conversation.Opaque:
		}
	}
	if said != "" {
		r.said, r.saidAt = said, len(r.lines)
		r.lines = append(r.lines, line{index, "Assistant: " + said})
	}
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.ToolCall {
			r.addCall(index, block, results[block.ID])
		}
	}
}

// addCall notes a tool call and how it ended.
func (r *record) addCall(index int, call, result *conversation.Block) {
	argument, path := argumentOf(call)
	outcome := "ok"
	if result != nil && failed(result) {
		r.errors++
		outcome = joinNonEmpty(": ", "error", shorten(result.Text, errorCharacters))
	}
	r.tools = append(r.tools, call.Name)
	if path != "" {
		if writes(call.Name) {
			r.changed = append(r.changed, path)
		} else {
			r.read = append(r.read, path)
		}
	}
	r.lines = append(r.lines, line{index, call.Name + "(" + argument + ") → " + outcome})
}

// failed reports whether a tool result tells of a failure. Chat and Responses
// have no mark for it: there the text's first word decides.
func failed(result *conversation.Block) bool {
	if result.IsError {
		return true
	}
	text := strings.TrimSpace(result.Text)
	for _, start := range []string{"Error:", "error:", "ERROR:", "Traceback (most recent call last)", "panic:", "fatal:", "<tool_use_error>"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	code, found := strings.CutPrefix(text, "Exit code ")
	return found && code != "" && code[0] != '0'
}

// writes reports whether a tool of that name changes the file it is given.
func writes(tool string) bool {
	tool = strings.ToLower(tool)
	return slices.ContainsFunc([]string{"edit", "write", "patch", "create", "replace", "insert", "delete", "move"}, func(verb string) bool {
		return strings.Contains(tool, verb)
	})
}

// argumentOf returns what says most of a call's arguments, and the file that it
// names if it names one.
func argumentOf(call *conversation.Block) (argument, path string) {
	if !strings.HasPrefix(strings.TrimSpace(call.Text), "{") {
		if file := patched(call.Text); file != "" {
			return file, file
		}
		return firstLine(call.Text, argumentCharacters), ""
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(call.Text), &members) != nil {
		return "", ""
	}
	path = firstText(members, "file_path", "path", "filePath", "notebook_path", "file", "filename", "target_file")
	if searched := firstText(members, "pattern", "query", "regex"); searched != "" {
		return joinNonEmpty(" in ", searched, path), ""
	}
	if path != "" {
		return path, path
	}
	argument = firstText(members, "command", "cmd", "url", "description", "prompt", "subject", "name", "id")
	if argument == "" {
		argument = firstText(members, slices.Sorted(maps.Keys(members))...)
	}
	return argument, ""
}

// patched returns the first file that a patch in Codex's form changes.
func patched(text string) string {
	for _, verb := range []string{"Update", "Add", "Delete"} {
		if _, rest, found := strings.Cut(text, "*** "+verb+" File: "); found {
			return firstLine(rest, argumentCharacters)
		}
	}
	return ""
}

// firstText returns the first of the named members that holds a text, in one line.
func firstText(members map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		if text := textOf(members[name]); text != "" {
			return shorten(text, argumentCharacters)
		}
	}
	return ""
}

// textOf returns a string, or the last of an array of strings: the part of a
// shell's ["bash", "-lc", "…"] that says what runs.
func textOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '[' {
		var texts []string
		if json.Unmarshal(raw, &texts) != nil || len(texts) == 0 {
			return ""
		}
		return texts[len(texts)-1]
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}
