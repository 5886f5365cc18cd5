package manage

import (
	"encoding/json"
	"strings"
	"unicode"
)

// repeated returns the first duplicate name in an object of a valid JSON text; "" if absent. Names that
// differ in case alone are equal, as they are for our decoder. Duplicates are dangerous because another
// server on the way, or a person in a log, may read the value that doesn't count.
func repeated(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	type level struct {
		names  map[string]bool // nil for a list
		isName bool            // a name follows
	}
	open := []level{{}}
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		top := &open[len(open)-1]
		if name, is := token.(string); is && top.isName {
			folded := strings.Map(fold, name)
			if top.names[folded] {
				return name
			}
			top.names[folded], top.isName = true, false
			continue
		}
		top.isName = top.names != nil
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}, isName: true})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

// fold returns the same rune for all runes that differ in case alone.
func fold(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
