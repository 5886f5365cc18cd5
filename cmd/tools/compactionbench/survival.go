package compactionbench

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// Share counts how many of a number of checks succeed.
type Share struct {
	Kept int `json:"kept"`
	Of   int `json:"of"`
}

// with returns the share with one more check.
func (s Share) with(kept bool) Share {
	if kept {
		s.Kept++
	}
	s.Of++
	return s
}

// and returns the sum of two shares.
func (s Share) and(other Share) Share { return Share{s.Kept + other.Kept, s.Of + other.Of} }

// Whole reports whether the share is complete; an empty one is.
func (s Share) Whole() bool { return s.Kept == s.Of }

// String returns the share in percent; a dash for an empty one.
func (s Share) String() string {
	if s.Of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.4g %%", 100*float64(s.Kept)/float64(s.Of))
}

// survival is the part of a talk that the model still sees.
type survival struct {
	directives, modified Share
	lost                 []string
}

// survives checks for the directives and modified files of the first length messages in a prompt.
func (r *reading) survives(prompt []byte, length int) survival {
	var s survival
	in := sightOf(string(prompt))
	for _, directive := range r.directives() {
		if r.first(directive) < length {
			s.note(&s.directives, holds(prompt, directive), directive)
		}
	}
	for _, one := range r.modified() {
		if one.at < length {
			s.note(&s.modified, holds(prompt, one.file) || in.has(one.file), one.file)
		}
	}
	return s
}

func (s *survival) note(share *Share, kept bool, text string) {
	*share = share.with(kept)
	if !kept {
		s.lost = append(s.lost, text)
	}
}

// first returns the index of the first message with a text, or the number of messages if absent.
func (r *reading) first(text string) int {
	index := slices.IndexFunc(r.messages, func(m message) bool { return holds(m.raw, text) })
	if index < 0 {
		return len(r.messages)
	}
	return index
}

// directives returns the standing orders of a talk: those known from its generator, or else each short
// typed line that begins with a word of command.
func (r *reading) directives() []string {
	if r.talk.Directives != nil {
		return r.talk.Directives
	}
	order := regexp.MustCompile(`(?i)^(always|never|from now on|do not ever|you must)\b`)
	var found []string
	for i := range r.messages {
		if r.messages[i].Role != conversation.User {
			continue
		}
		for _, block := range r.messages[i].Blocks {
			if block.Kind != conversation.Text {
				continue
			}
			for line := range strings.Lines(ledger.TypedText(block.Text)) {
				line = strings.TrimSpace(line)
				if order.MatchString(line) && len(line) < 300 && !slices.Contains(found, line) {
					found = append(found, line)
				}
			}
		}
	}
	return found
}

// modification is a file and the message with the first call that changed it.
type modification struct {
	file string
	at   int
}

// modified returns the files that successful calls of writing tools changed, without duplicates. If the
// talk's generator names the modified files, it returns only those.
func (r *reading) modified() []modification {
	failed := map[string]bool{}
	for i := range r.messages {
		for _, block := range r.messages[i].Blocks {
			if block.Kind == conversation.ToolResult {
				failed[block.ID] = block.IsError || strings.HasPrefix(strings.TrimPrefix(strings.ToLower(block.Text), "<tool_use_"), "error")
			}
		}
	}
	var found []modification
	known := map[string]bool{}
	for i := range r.messages {
		for _, block := range r.messages[i].Blocks {
			failure, answered := failed[block.ID]
			if block.Kind != conversation.ToolCall || !answered || failure {
				continue
			}
			file := written(block.Name, block.Text)
			if file == "" || known[file] || r.talk.Modified != nil && !slices.Contains(r.talk.Modified, file) {
				continue
			}
			known[file] = true
			found = append(found, modification{file, i})
		}
	}
	return found
}

// written returns the file that a tool call writes, or "".
func written(tool, arguments string) string {
	tool = strings.ToLower(tool)
	if tool != "write" && !strings.Contains(tool, "edit") && tool != "create" {
		return ""
	}
	var members struct {
		FilePath string `json:"file_path"`
		Path     string `json:"path"`
		Command  string `json:"command"`
	}
	if json.Unmarshal([]byte(arguments), &members) != nil || members.Command == "view" {
		return ""
	}
	if members.FilePath != "" {
		return members.FilePath
	}
	return members.Path
}
