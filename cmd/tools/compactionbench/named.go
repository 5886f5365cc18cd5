package compactionbench

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/conversation"
)

// sight is the text of a prompt, and the path that its file names are relative to; "" if all are in full.
type sight struct{ text, base string }

func sightOf(prompt string) sight {
	_, base, _ := strings.Cut(prompt, "Paths below ")
	base, _, isTold := strings.Cut(base, " are written without it.")
	if !isTold {
		base = ""
	}
	return sight{prompt, base}
}

// has reports whether the prompt has a name.
func (s sight) has(name string) bool {
	if strings.Contains(s.text, name) {
		return true
	}
	below, isBelow := strings.CutPrefix(name, s.base+"/")
	return s.base != "" && isBelow && strings.Contains(s.text, below)
}

// isOfTools reports whether a name belongs to a tool or an argument. Those are in the tools' definitions,
// which each prompt has.
func (r *reading) isOfTools(name string) bool {
	if r.ofTools == nil {
		r.ofTools = map[string]bool{}
		for i := range r.messages {
			for j := range r.messages[i].Blocks {
				if block := &r.messages[i].Blocks[j]; block.Kind == conversation.ToolCall {
					r.ofTools[block.Name] = true
					r.addArguments(json.RawMessage(block.Text))
				}
			}
		}
	}
	return r.ofTools[name]
}

// addArguments notes the names of a call's arguments, and of the values in their lists.
func (r *reading) addArguments(value json.RawMessage) {
	var members map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case json.Unmarshal(value, &members) == nil:
		for name, inside := range members {
			r.ofTools[name] = true
			if len(inside) > 0 && inside[0] == '[' {
				r.addArguments(inside)
			}
		}
	case json.Unmarshal(value, &list) == nil:
		for _, one := range list {
			r.addArguments(one)
		}
	}
}
