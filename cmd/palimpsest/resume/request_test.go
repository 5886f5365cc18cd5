package resume

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// object is a JSON object.
type object = map[string]any

// request returns the format and the body that a client sends first when it continues a session: what its file holds, and one
// more thing that the user says. What the real clients send is tried by make clients.
func request(t *testing.T, target Target, file File) (format string, body []byte) {
	t.Helper()
	list, messages := "messages", []any{}
	names := map[string]bool{}
	switch target.ID {
	case "claude-code":
		for _, line := range linesOf(t, file) {
			message := line["message"].(object)
			messages = append(messages, object{"role": message["role"], "content": message["content"]})
		}
	case "codex":
		list = "input"
		for _, line := range linesOf(t, file) {
			if line["type"] == "response_item" {
				messages = append(messages, line["payload"])
			}
		}
	case "pi":
		for _, line := range linesOf(t, file) {
			if message, is := line["message"].(object); is {
				messages = joined(messages, ofPi(message))
			}
		}
	case "opencode":
		var read object
		if err := json.Unmarshal(file.Content, &read); err != nil {
			t.Fatal(err)
		}
		for _, message := range read["messages"].([]any) {
			messages = append(messages, ofOpenCode(message.(object))...)
		}
	}
	typed := object{"role": "user", "content": "Go on."}
	made := object{"model": "claude-sonnet-5", "max_tokens": 1000}
	format = "anthropic"
	if list == "input" {
		typed["type"] = "message"
		made, format = object{"model": "gpt-5.5"}, "openai-responses"
	}
	made[list] = append(messages, typed)
	callsOf(messages, names)
	var tools []any
	for name := range names {
		tool := object{"name": name, "description": "A tool."}
		if list == "input" {
			tool["type"], tool["parameters"] = "function", object{"type": "object", "properties": object{}}
		} else {
			tool["input_schema"] = object{"type": "object"}
		}
		tools = append(tools, tool)
	}
	if len(tools) > 0 {
		made["tools"] = tools
	}
	body, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	return format, body
}

func linesOf(t *testing.T, file File) []object {
	t.Helper()
	var all []object
	for line := range bytes.SplitSeq(bytes.TrimSpace(file.Content), []byte("\n")) {
		var read object
		if err := json.Unmarshal(line, &read); err != nil {
			t.Fatal(err)
		}
		all = append(all, read)
	}
	return all
}

// ofPi returns a message of pi's as it stands in a request.
func ofPi(message object) object {
	if message["role"] == "toolResult" {
		return object{"role": "user", "content": []any{object{
			"type": "tool_result", "tool_use_id": message["toolCallId"], "content": message["content"].([]any)[0].(object)["text"], "is_error": message["isError"],
		}}}
	}
	var content []any
	for _, part := range message["content"].([]any) {
		switch part := part.(object); part["type"] {
		case "toolCall":
			content = append(content, object{"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["arguments"]})
		case "image":
			content = append(content, anImage(part["mimeType"], part["data"]))
		default:
			content = append(content, part)
		}
	}
	return object{"role": message["role"], "content": content}
}

// joined adds a message of pi's; results of one answer stand in one message.
func joined(messages []any, message object) []any {
	content := message["content"].([]any)
	if len(messages) > 0 && content[0].(object)["type"] == "tool_result" {
		if last := messages[len(messages)-1].(object); last["role"] == "user" {
			last["content"] = append(last["content"].([]any), content...)
			return messages
		}
	}
	return append(messages, message)
}

func anImage(mime, data any) object {
	return object{"type": "image", "source": object{"type": "base64", "media_type": mime, "data": data}}
}

// ofOpenCode returns a message of opencode's as it stands in a request.
func ofOpenCode(message object) []any {
	var content, results []any
	for _, part := range message["parts"].([]any) {
		switch part := part.(object); part["type"] {
		case "text":
			content = append(content, object{"type": "text", "text": part["text"]})
		case "file":
			_, data, _ := strings.Cut(part["url"].(string), ",")
			content = append(content, anImage(part["mime"], data))
		case "tool":
			state := part["state"].(object)
			content = append(content, object{"type": "tool_use", "id": part["callID"], "name": part["tool"], "input": state["input"]})
			said, failed := state["output"], state["status"] == "error"
			if failed {
				said = state["error"]
			}
			results = append(results, object{"type": "tool_result", "tool_use_id": part["callID"], "content": said, "is_error": failed})
		}
	}
	all := []any{object{"role": message["info"].(object)["role"], "content": content}}
	if len(results) > 0 {
		all = append(all, object{"role": "user", "content": results})
	}
	return all
}

// callsOf notes the names of the tools that are called in a value.
func callsOf(value any, names map[string]bool) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			callsOf(one, names)
		}
	case object:
		if value["type"] == "tool_use" || value["type"] == "function_call" {
			names[value["name"].(string)] = true
		}
		callsOf(value["content"], names)
	}
}

// textOf returns all texts in a value, with the escapes of JSON in them made what they stand for.
func textOf(value any, to *strings.Builder) {
	switch value := value.(type) {
	case string:
		to.WriteString(value + "\n" + strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(value) + "\n")
	case []any:
		for _, one := range value {
			textOf(one, to)
		}
	case object:
		for name, one := range value {
			to.WriteString(name + "\n")
			textOf(one, to)
		}
	}
}
