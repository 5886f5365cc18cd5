package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Entry is one value in a client's file.
type Entry struct {
	// Path is the path to the value from the top of the file. In a list, "name=Palimpsest" is the item
	// whose member name is Palimpsest.
	Path []string `json:"path"`

	// Value is the value, as JSON regardless of the file's format.
	Value json.RawMessage `json:"value"`

	// Why is an optional line of explanation.
	Why string `json:"why,omitempty"`

	// IfAbsent keeps the user's own value.
	IfAbsent bool `json:"if_absent,omitempty"`
}

// set returns an entry.
func set[T any](value T, path ...string) Entry {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("connect: " + strings.Join(path, ".") + ": " + err.Error()) // values are strings, numbers and structs of them
	}
	return Entry{Path: path, Value: bytes.TrimSpace(encoded.Bytes())}
}

// because returns the entry with an explanation.
func (e Entry) because(why string) Entry {
	e.Why = why
	return e
}

// format reads and edits the text of a kind of file.
type format struct {
	// parse returns the text's content; a text without content is an empty map.
	parse func(text []byte) (map[string]any, error)

	// set returns the text with a value at a path.
	set func(text []byte, path []string, value json.RawMessage) ([]byte, error)

	// remove returns the text without the value at an existing path.
	remove func(text []byte, path []string) ([]byte, error)
}

const byteOrderMark = "\ufeff"

// put adds entries to a text. It verifies that the result parses, and differs from the text only by the
// entries.
func put(f format, text []byte, entries []Entry) ([]byte, error) {
	return edit(f, text, func(text []byte, want map[string]any) ([]byte, error) {
		for _, entry := range entries {
			var err error
			if text, err = f.set(text, entry.Path, entry.Value); err != nil {
				return nil, err
			}
			if err := setIn(want, entry.Path, plain(entry.Value)); err != nil {
				return nil, err
			}
		}
		return text, nil
	})
}

// edit changes a text and verifies the result.
func edit(f format, text []byte, change func([]byte, map[string]any) ([]byte, error)) ([]byte, error) {
	text, marked := bytes.CutPrefix(text, []byte(byteOrderMark))
	want, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	changed, err := change(text, want)
	if err != nil {
		return nil, err
	}
	got, err := f.parse(changed)
	if err != nil || !same(got, want) {
		return nil, errors.New("the file is written in a way that cannot be edited safely: make the change by hand, as docs/clients.md says")
	}
	if marked {
		changed = append([]byte(byteOrderMark), changed...)
	}
	return changed, nil
}

// takeOut returns a text without the entries put into it, with the values restored that they replaced in
// the text before. It keeps entries that someone has changed since, and returns their paths.
func takeOut(f format, text, before []byte, entries []Entry) ([]byte, []string, error) {
	old, err := f.parse(bytes.TrimPrefix(before, []byte(byteOrderMark)))
	if err != nil {
		old = map[string]any{}
	}
	var left []string
	changed, err := edit(f, text, func(text []byte, want map[string]any) ([]byte, error) {
		for _, entry := range slices.Backward(entries) {
			now, there := lookUp(want, entry.Path)
			switch {
			case !there:
				continue
			case !isOurs(now, plain(entry.Value)):
				left = append(left, strings.Join(entry.Path, "."))
				continue
			}
			var err error
			if replaced, was := lookUp(old, entry.Path); was {
				text, err = f.set(text, entry.Path, encode(replaced))
				if err == nil {
					err = setIn(want, entry.Path, replaced)
				}
			} else {
				text, err = removeWithParents(f, text, want, old, entry.Path)
			}
			if err != nil {
				return nil, err
			}
		}
		return text, nil
	})
	return changed, left, err
}

// removeWithParents removes a value, and its parents if they are empty now and did not exist before.
func removeWithParents(f format, text []byte, want, old map[string]any, path []string) ([]byte, error) {
	for {
		removeIn(want, path)
		changed, err := f.remove(text, path)
		if err != nil {
			return nil, err
		}
		text, path = changed, path[:len(path)-1]
		if _, was := lookUp(old, path); was || len(path) == 0 {
			return text, nil
		}
		if around, there := lookUp(want, path); !there || !isEmpty(around) {
			return text, nil
		}
	}
}

// isOurs reports whether a value is still the one we put in. Since clients add to a group of settings and
// renew parts of it, a group still counts as the same if it has the same addresses.
func isOurs(now, put any) bool {
	addresses := addressesIn(put, "")
	if _, group := now.(map[string]any); !group || len(addresses) == 0 {
		return same(now, put)
	}
	return maps.Equal(addresses, addressesIn(now, ""))
}

// addressesIn returns the texts of a value that contain an address, by their paths.
func addressesIn(value any, place string) map[string]string {
	found := map[string]string{}
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "://") {
			found[place] = value
		}
	case map[string]any:
		for name, inside := range value {
			maps.Copy(found, addressesIn(inside, place+"."+name))
		}
	case []any:
		for i, inside := range value {
			maps.Copy(found, addressesIn(inside, fmt.Sprintf("%s.%d", place, i)))
		}
	}
	return found
}

// selector returns the member and the value in a path's step that selects a list item.
func selector(step string) (member, value string, ok bool) { return strings.Cut(step, "=") }

// lookUp returns the value at a path.
func lookUp(in any, path []string) (any, bool) {
	if len(path) == 0 {
		return in, true
	}
	switch in := in.(type) {
	case map[string]any:
		value, found := in[path[0]]
		if !found {
			return nil, false
		}
		return lookUp(value, path[1:])
	case []any:
		if at := itemIn(in, path[0]); at >= 0 {
			return lookUp(in[at], path[1:])
		}
	}
	return nil, false
}

// itemIn returns the index of the list item that a step selects, or -1.
func itemIn(list []any, step string) int {
	member, value, _ := selector(step)
	return slices.IndexFunc(list, func(item any) bool {
		object, is := item.(map[string]any)
		return is && object[member] == value
	})
}

// setIn sets the value at a path and creates missing parents.
func setIn(in map[string]any, path []string, value any) error {
	key := path[0]
	if len(path) == 1 {
		in[key] = value
		return nil
	}
	if _, _, ok := selector(path[1]); ok && len(path) == 2 {
		list, is := in[key].([]any)
		if in[key] != nil && !is {
			return fmt.Errorf("%s is not a list: repair that by hand first", key)
		}
		if at := itemIn(list, path[1]); at >= 0 {
			list[at] = value
			return nil
		}
		in[key] = append(list, value)
		return nil
	}
	if in[key] == nil {
		in[key] = map[string]any{}
	}
	next, is := in[key].(map[string]any)
	if !is {
		return fmt.Errorf("%s is not a group of settings: repair that by hand first", key)
	}
	return setIn(next, path[1:], value)
}

// removeIn removes the value at an existing path.
func removeIn(in map[string]any, path []string) {
	around, _ := lookUp(in, path[:len(path)-1])
	step := path[len(path)-1]
	switch around := around.(type) {
	case map[string]any:
		delete(around, step)
	case []any:
		at := itemIn(around, step)
		_ = setIn(in, path[:len(path)-1], slices.Delete(around, at, at+1)) // it exists, so it can be set
	}
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// plain returns a JSON value as Go's.
func plain(value json.RawMessage) any {
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		panic("connect: " + err.Error()) // it was encoded here
	}
	return decoded
}

// encode returns a value as JSON.
func encode(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic("connect: " + err.Error()) // it was parsed from a file
	}
	return encoded
}

// same compares parsed texts, whose numbers may differ in Go's type. It ignores the order of named list
// items, because each format adds them at its simplest place.
func same(a, b any) bool {
	return bytes.Equal(encode(sortLists(a)), encode(sortLists(b)))
}

func sortLists(value any) any {
	switch value := value.(type) {
	case map[string]any:
		sorted := maps.Clone(value)
		for key, member := range sorted {
			sorted[key] = sortLists(member)
		}
		return sorted
	case []any:
		if len(value) == 0 {
			return value
		}
		if _, objects := value[0].(map[string]any); !objects {
			return value
		}
		sorted := slices.Clone(value)
		for i := range sorted {
			sorted[i] = sortLists(sorted[i])
		}
		slices.SortFunc(sorted, func(a, b any) int { return bytes.Compare(encode(a), encode(b)) })
		return sorted
	}
	return value
}
