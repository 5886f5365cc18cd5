package apiclients

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Habits are what a client sends that the proxy has to know, a line each: paths, beta
// features, members of bodies, roles, kinds of blocks, and kinds of reminders. A line that
// a run did not see before is a new habit of the client, which may need something of the
// proxy.
type Habits map[string]bool

// Add notes what was sent in a trial.
func (h Habits) Add(t *Trial) {
	for i := range t.Exchanges {
		exchange := &t.Exchanges[i]
		h.note("path", exchange.Method, identifier.ReplaceAllString(exchange.Path, "{id}"))
		for beta := range strings.SplitSeq(exchange.Header.Get("Anthropic-Beta"), ",") {
			h.note("beta", strings.TrimSpace(beta))
		}
		body, _ := members(exchange.Body)
		for name := range body {
			h.note("member", name)
		}
		for _, list := range []string{"messages", "input"} {
			h.addMessages(body[list])
		}
	}
}

// identifier is a part of a path that differs from request to request.
var identifier = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|(?:msg|resp|req)_[A-Za-z0-9]+`)

// note adds a line, unless its last word is missing.
func (h Habits) note(words ...string) {
	if words[len(words)-1] != "" {
		h[strings.Join(words, " ")] = true
	}
}

// addMessages notes what the messages, or items, of a body are made of.
func (h Habits) addMessages(list json.RawMessage) {
	var messages []map[string]json.RawMessage
	if json.Unmarshal(list, &messages) != nil {
		return // a string
	}
	for _, message := range messages {
		role := cmp.Or(text(message["role"]), text(message["type"]))
		for name := range message {
			h.note("in", role, name)
		}
		if said := text(message["content"]); said != "" {
			h.addReminders(role, said)
		}
		h.addBlocks(role, message["content"])
	}
}

// addBlocks notes the kinds of a message's blocks, and those in tool results.
func (h Habits) addBlocks(inside string, content json.RawMessage) {
	var blocks []map[string]json.RawMessage
	if json.Unmarshal(content, &blocks) != nil {
		return
	}
	for _, block := range blocks {
		kind := inside + "/" + text(block["type"])
		for name := range block {
			h.note("in", kind, name)
		}
		h.addReminders(inside, text(block["text"]))
		h.addBlocks(kind, block["content"])
	}
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

// text returns a JSON string's text; "" for anything else.
func text(raw json.RawMessage) string {
	var said string
	if json.Unmarshal(raw, &said) != nil {
		return ""
	}
	return said
}

// Compare returns the habits that the list of a client in a folder does not have yet,
// sorted. A client without a list is not compared: Learn begins one.
func (h Habits) Compare(folder, client string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(folder, client+".txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
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
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("habits of %s: %w", client, err)
	}
	return nil
}
