package tenants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of tags.
const (
	MaxTags     = 10  // of a request
	MaxTagName  = 64  // bytes of a name
	MaxTagValue = 256 // characters of a value
)

// Tags are names and values that a client gives a request, for searches and sums. They are stored unsealed,
// with its figures.
type Tags map[string]string

// Tag is one of Tags.
type Tag struct{ Name, Value string }

// String returns a tag in the form of URLs and lists: name=value.
func (t Tag) String() string { return t.Name + "=" + t.Value }

// ParseTag parses the output of Tag.String. It returns Invalid for other text.
func ParseTag(text string) (Tag, error) {
	name, value, found := strings.Cut(text, "=")
	if !found || !isTagName(name) {
		return Tag{}, Invalid{Field: "tag", Message: "must be written name=value, such as team=search"}
	}
	return Tag{Name: name, Value: value}, nil
}

// List returns the tags by name.
func (t Tags) List() []Tag {
	list := make([]Tag, 0, len(t))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		list = append(list, Tag{Name: name, Value: t[name]})
	}
	return list
}

// CheckTag returns Invalid, with the allowed values, for an invalid tag. field is the client's name of it.
func CheckTag(field, name, value string) error {
	switch {
	case !isTagName(name):
		return Invalid{Field: fmt.Sprintf("%.100s", field), Message: fmt.Sprintf("is no name of a tag: use 1 to %d of the letters a to z, digits and hyphens", MaxTagName)}
	case value == "" || utf8.RuneCountInString(value) > MaxTagValue || !isPrintable(value):
		return Invalid{Field: field, Message: fmt.Sprintf("must have a value of 1 to %d printable characters", MaxTagValue)}
	}
	return nil
}

func isTagName(name string) bool {
	return name != "" && len(name) <= MaxTagName && !strings.ContainsFunc(name, func(sign rune) bool {
		return sign != '-' && (sign < '0' || sign > '9') && (sign < 'a' || sign > 'z')
	})
}

func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(sign rune) bool { return !unicode.IsPrint(sign) })
}
