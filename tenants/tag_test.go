package tenants_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/tenants"
)

func TestTagsAreBounded(t *testing.T) {
	t.Parallel()
	for _, good := range []tenants.Tag{{"team", "search"}, {"a-1", "="}, {strings.Repeat("a", 64), strings.Repeat("ä", 256)}, {"-", "a b"}} {
		if err := tenants.CheckTag("field", good.Name, good.Value); err != nil {
			t.Errorf("%.20v: %v", good, err)
		}
	}
	for _, bad := range []tenants.Tag{
		{"", "v"}, {"Team", "v"}, {"a_b", "v"}, {"a b", "v"}, {"ä", "v"}, {strings.Repeat("a", 65), "v"},
		{"a", ""}, {"a", strings.Repeat("a", 257)}, {"a", "\n"}, {"a", "\x00"}, {"a", "\xff"}, {"a", "\u202e"}, {"a", "\u00ad"},
	} {
		err := tenants.CheckTag("X-Palimpsest-Tag-A", bad.Name, bad.Value)
		var invalid tenants.Invalid
		if !errors.As(err, &invalid) || invalid.Field != "X-Palimpsest-Tag-A" || invalid.Message == "" {
			t.Errorf("%.20q: %v", fmt.Sprint(bad), err)
		}
	}
}

func TestTagsAreWrittenAndReadInOneOrder(t *testing.T) {
	t.Parallel()
	tags := tenants.Tags{"b": "2=2", "a": "1"}
	var written []string
	for _, tag := range tags.List() {
		written = append(written, tag.String())
		if read, err := tenants.ParseTag(tag.String()); err != nil || read != tag {
			t.Errorf("%v is read as %v, %v", tag, read, err)
		}
	}
	if !slices.Equal(written, []string{"a=1", "b=2=2"}) || tenants.Tags(nil).List() == nil {
		t.Errorf("written %q", written)
	}
	for _, text := range []string{"", "a", "=b", "A=b"} {
		if tag, err := tenants.ParseTag(text); err == nil {
			t.Errorf("%q is %v", text, tag)
		}
	}
}
