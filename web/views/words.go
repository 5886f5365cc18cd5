package views

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// words returns filters as people read them, in the order of their names.
func words(filters url.Values) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		for _, value := range filters[name] {
			if id, err := uuid.Parse(value); err == nil {
				value = id.String()[:8]
			}
			all = append(all, strings.ReplaceAll(name, "_", " ")+": "+value)
		}
	}
	return all
}

// why says in a sentence why filters were refused.
func why(err error) string {
	invalid, is := errors.AsType[tenants.Invalid](err)
	switch {
	case !is:
		return "They cannot be read."
	case invalid.Field == "query":
		return "They " + strings.TrimSuffix(invalid.Message, ".") + "."
	}
	label := strings.ReplaceAll(components.Capitalize(invalid.Field), "_", " ")
	return label + " " + strings.TrimSuffix(invalid.Message, ".") + "."
}
