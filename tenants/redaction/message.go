package redaction

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"palimpsest/tenants"
)

// JSON redacts the texts of a message in the JSON of any wire format, and returns the number of pieces per
// kind. It returns raw itself if it replaces nothing, and keeps the bytes between replaced texts. It keeps
// the protocol's values: ids, types, tools' names, signatures, files in base64. raw must be valid JSON.
func (r *Redactor) JSON(raw []byte) (redacted []byte, found map[string]int) {
	if r == nil {
		return raw, nil
	}
	p := &pass{Redactor: r}
	if r.redacts(tenants.RedactNames) {
		p.people, p.isUsers = listOf(peopleIn(raw)), isUsers(raw)
	}
	var out []byte
	at := 0
	for one := range texts(raw) {
		text := unquoted(raw[one.from:one.to])
		clean := p.value(one, text)
		if clean == text {
			continue
		}
		out = append(append(out, raw[at:one.from]...), quoted(clean)...)
		at = one.to
	}
	if at == 0 {
		return raw, nil
	}
	return append(out, raw[at:]...), p.found
}

// value replaces the personal data of a member's text.
func (p *pass) value(one member, text string) string {
	switch {
	case placeholder.FindString(text) == text && text != "":
		return text
	case one.isInput && p.redacts(tenants.RedactKeys) && text != "" && namedSecret.MatchString(`"`+one.name+`":""`):
		return p.replace(tenants.RedactKeys, text)
	case !one.isInput && one.name == "name": // of a tool, but in a message of the user
		if one.depth == 1 && p.isUsers && text != "" {
			return p.replace(tenants.RedactNames, strings.ToLower(text))
		}
		return text
	}
	return p.text(text)
}

// isUsers reports whether a message with a name is the user's.
func isUsers(raw []byte) bool {
	if !bytes.Contains(raw, []byte(`"name"`)) {
		return false
	}
	var message struct {
		Role string `json:"role"`
	}
	return json.Unmarshal(raw, &message) == nil && message.Role == "user"
}

// mostPeople bounds the names searched for in the whole message, because each costs time.
const mostPeople = 100

// peopleIn returns the first names of several words before mail addresses in a message.
func peopleIn(raw []byte) []string {
	if bytes.IndexByte(raw, '@') < 0 && !bytes.Contains(raw, []byte(`\u0040`)) {
		return nil
	}
	var names []string
	for one := range texts(raw) {
		text := unquoted(raw[one.from:one.to])
		for _, at := range displayNames(text) {
			if name := text[at.from:at.to]; strings.Contains(name, " ") && placeholder.FindString(name) == "" && !slices.Contains(names, name) {
				if names = append(names, name); len(names) == mostPeople {
					return names
				}
			}
		}
	}
	return names
}

// member is a text of a message that may be written by people.
type member struct {
	from, to int    // with its quotes
	depth    int    // of objects and lists around it
	name     string // name of its member, in the nearest object
	isInput  bool   // it is part of a tool call's arguments
}

// protocol returns the members that do not contain people's text.
func protocol() map[string]bool {
	return map[string]bool{
		"type": true, "id": true, "role": true, "model": true, "status": true, "signature": true, "thought_signature": true, "data": true, "file_data": true,
		"encrypted_content": true, "encrypted_index": true, "media_type": true, "tool_use_id": true, "tool_call_id": true, "call_id": true,
		"file_id": true, "item_id": true, "ttl": true,
	}
}

// texts returns the texts of a message one by one.
func texts(raw []byte) func(yield func(member) bool) {
	known := protocol()
	return func(yield func(member) bool) {
		var open []object
		for at := 0; at < len(raw); at++ {
			switch raw[at] {
			case '{', '[':
				open = append(open, inside(open, raw[at] == '['))
			case '}', ']':
				open = open[:max(0, len(open)-1)]
			case ',':
				if n := len(open); n > 0 && !open[n-1].isList {
					open[n-1].name, open[n-1].hasName = "", false
				}
			case '"':
				end := stringEnd(raw, at)
				n := len(open)
				if n > 0 && !open[n-1].isList && !open[n-1].hasName {
					open[n-1].name, open[n-1].hasName = unquoted(raw[at:end]), true
				} else if one := textOf(open, at, end); one.isInput || !known[one.name] && !isFile(raw[at:end]) {
					if !yield(one) {
						return
					}
				}
				at = end - 1
			}
		}
	}
}

// object is a JSON object or list during parsing.
type object struct {
	isList, hasName bool
	name            string // of the member; of a list, of the one that holds it
	input           bool
}

// inside returns an object or list that begins inside of others.
func inside(open []object, isList bool) object {
	inner := object{isList: isList}
	if n := len(open); n > 0 {
		inner.input = open[n-1].input || !open[n-1].isList && open[n-1].name == "input"
		if isList {
			inner.name = open[n-1].name
		}
	}
	return inner
}

func textOf(open []object, from, to int) member {
	one := member{from: from, to: to, depth: len(open)}
	if n := len(open); n > 0 {
		one.name, one.isInput = open[n-1].name, open[n-1].input
	}
	return one
}

func isFile(quoted []byte) bool { return bytes.HasPrefix(quoted, []byte(`"data:`)) }

// stringEnd returns the end of the string that begins at a position.
func stringEnd(raw []byte, from int) int {
	for at := from + 1; at < len(raw); at++ {
		switch raw[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(raw)
}

// unquoted returns the value of a JSON string.
func unquoted(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// quoted returns a text as a JSON string.
func quoted(text string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return []byte(`""`)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
