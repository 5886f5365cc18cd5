package apiclients

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Habits are the features of a client's requests that the proxy has to know, a line each: paths, headers,
// beta features, members of bodies at any depth, roles, kinds of items, blocks and tools, and kinds of
// reminders. A line that a run has not seen before is a new habit of the client, which may require a change
// of the proxy.
type Habits map[string]bool

// Add notes the habits in a trial's requests.
func (h Habits) Add(t *Trial) {
	if t.Case.carries {
		return // most of it belongs to other clients
	}
	for i := range t.Exchanges {
		exchange := &t.Exchanges[i]
		h.note("path", exchange.Method, identifier.ReplaceAllString(exchange.Path, "{id}"))
		h.addHeader(exchange.Header)
		body, _ := members(exchange.Body)
		if _, is := body["jsonrpc"]; is {
			h.note("mcp", text(body["method"]))
			continue // the rest is the protocol's
		}
		for name, value := range body {
			h.note("in body", name)
			switch name {
			case "messages", "input", "contents":
				h.addMessages(value)
			default:
				h.addMember("body", name, value)
			}
		}
	}
}

// identifier is a part of a path that differs between requests.
var identifier = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|(?:msg|resp|req)_[A-Za-z0-9]+`)

// note adds a line, unless its last word is missing.
func (h Habits) note(words ...string) {
	if words[len(words)-1] != "" {
		h[strings.Join(words, " ")] = true
	}
}

// plainHeaders are the headers of every request.
var plainHeaders = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Connection", "Content-Length", "Sec-Fetch-Mode", "User-Agent",
}

// addHeader notes the headers beyond those of every request, and the values that name a form, version or
// extension of an API.
func (h Habits) addHeader(header http.Header) {
	for name, values := range header {
		switch {
		case slices.Contains(plainHeaders, name):
		case strings.HasSuffix(name, "-Beta"):
			for beta := range strings.SplitSeq(strings.Join(values, ","), ",") {
				h.note("beta", strings.TrimSpace(beta))
			}
		case name == "Content-Type" || name == "Content-Encoding" || strings.HasSuffix(name, "-Version") && !strings.HasPrefix(name, "X-"):
			h.note("header", name, strings.Join(values, ","))
		default:
			h.note("header", name)
		}
	}
}

// addMessages notes the parts of a body's messages, or items.
func (h Habits) addMessages(list json.RawMessage) {
	for _, message := range objects(list) {
		role, kind := text(message["role"]), text(message["type"])
		if kind != "" && kind != "message" {
			role = strings.TrimPrefix(role+":"+kind, ":")
		}
		if said := text(message["content"]); said != "" {
			h.addReminders(role, said)
		}
		h.addObject(role, message)
	}
}

// addObject notes the members of an object, and of the objects inside it.
func (h Habits) addObject(inside string, object map[string]json.RawMessage) {
	for name, value := range object {
		h.note("in", inside, name)
		h.addMember(inside, name, value)
	}
	role, _, _ := strings.Cut(inside, "/")
	h.addReminders(role, text(object["text"]))
}

// free are the members whose names and values come from the model or the tool instead of the client.
var free = []string{"args", "arguments", "input", "input_schema", "json_schema", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "schema"}

// chosen are the members with values from a small set.
var chosen = []string{"detail", "display", "effort", "include", "phase", "scope", "service_tier", "status", "tool_choice", "truncation", "ttl", "verbosity"}

// addMember notes the contents of a member: the members and type of an object, and values from a small set.
func (h Habits) addMember(inside, name string, value json.RawMessage) {
	if slices.Contains(free, name) {
		return
	}
	if slices.Contains(chosen, name) {
		h.note("in", inside, name, text(value))
		var several []string
		_ = json.Unmarshal(value, &several) // other values have no elements
		for _, one := range several {
			h.note("in", inside, name, one)
		}
	}
	if object, is := members(value); is {
		h.addObject(inside+"/"+strings.TrimSuffix(name+":"+text(object["type"]), ":"), object)
		return
	}
	if name != "content" {
		inside += "/" + name
	}
	for _, object := range objects(value) {
		h.addObject(strings.TrimSuffix(inside+"/"+text(object["type"]), "/"), object)
	}
}

// objects returns the objects of a JSON array; nil for other values.
func objects(list json.RawMessage) []map[string]json.RawMessage {
	var elements []json.RawMessage
	if json.Unmarshal(list, &elements) != nil {
		return nil
	}
	var found []map[string]json.RawMessage
	for _, element := range elements {
		if object, is := members(element); is {
			found = append(found, object)
		}
	}
	return found
}

// addReminders notes the kinds of reminders in a text.
func (h Habits) addReminders(role, said string) {
	for _, content := range conversation.Reminders(said) {
		whole := "<system-reminder>" + content + "</system-reminder>"
		message := conversation.Message{Blocks: []conversation.Block{{Kind: conversation.Text, Text: whole}}}
		for _, kind := range conversation.NoticeKinds(&message) {
			h.note("reminder of", role+":", kind)
		}
	}
}

// text returns a JSON string's text; "" for other values.
func text(raw json.RawMessage) string {
	var said string
	if json.Unmarshal(raw, &said) != nil {
		return ""
	}
	return said
}

// Compare returns the habits missing on the list of a client in a folder, sorted. Without a list it returns
// all.
func (h Habits) Compare(folder, client string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(folder, client+".txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("habits of %s: %w", client, err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		known[strings.TrimSuffix(line, "\n")] = true
	}
	var added []string
	for line := range h {
		if !known[line] {
			added = append(added, line)
		}
	}
	slices.Sort(added)
	return added, nil
}

// Learn adds the habits to the list of a client in a folder.
func (h Habits) Learn(folder, client string) error {
	file := filepath.Join(folder, client+".txt")
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("habits of %s: %w", client, err)
	}
	lines := append(strings.Split(string(content), "\n"), slices.Collect(maps.Keys(h))...)
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil { //nolint:gosec // the caller names it; others read it in a checkout
		return fmt.Errorf("habits of %s: %w", client, err)
	}
	return nil
}
