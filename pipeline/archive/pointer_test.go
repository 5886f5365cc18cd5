package archive_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
)

// C4: a name depends on the link alone.
func TestANameIsShortAndStandsForItsLink(t *testing.T) {
	t.Parallel()

	link := sha256.Sum256([]byte("a history"))
	name := archive.NameOf(link)
	if name != archive.NameOf(link) || len(name) != 8 || strings.ToLower(string(name)) != string(name) {
		t.Errorf("name %q", name)
	}
	first, last := name.Links()
	if bytes.Compare(first, link[:]) > 0 || bytes.Compare(link[:], last) > 0 {
		t.Errorf("%x is not between %x and %x", link, first, last)
	}
	other := sha256.Sum256([]byte("another history"))
	if bytes.Compare(first, other[:]) <= 0 && bytes.Compare(other[:], last) <= 0 {
		t.Errorf("%x is between %x and %x", other, first, last)
	}
}

func TestAPointerIsReadInTheFormsInWhichModelsRepeatIt(t *testing.T) {
	t.Parallel()

	lane := uuid.MustParse("0190c2ad-0000-7000-8000-00000000002a")
	for text, want := range map[string]archive.Pointer{
		"k7f2m7qa#12":               {Name: "k7f2m7qa", From: 12, To: 13},
		" K7F2M7QA #12 ":            {Name: "k7f2m7qa", From: 12, To: 13},
		"archive k7f2m7qa#12":       {Name: "k7f2m7qa", From: 12, To: 13},
		"[k7f2m7qa#12]":             {Name: "k7f2m7qa", From: 12, To: 13},
		"k7f2m7qa#12–#14":           {Name: "k7f2m7qa", From: 12, To: 15},
		"k7f2m7qa#12-14":            {Name: "k7f2m7qa", From: 12, To: 15},
		"k7f2m7qa#12 to #14":        {Name: "k7f2m7qa", From: 12, To: 15},
		"#0":                        {From: 0, To: 1},
		"#3-#3":                     {From: 3, To: 4},
		lane.String() + "#7":        {Lane: lane, From: 7, To: 8},
		"#999999999":                {From: 999_999_999, To: 1_000_000_000},
		lane.String() + "#7 - #008": {Lane: lane, From: 7, To: 9},
	} {
		got, err := archive.ParsePointer(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := archive.ParsePointer(got.String()); err != nil || again != got {
			t.Errorf("%q written as %q: %+v, %v", text, got, again, err)
		}
	}
}

func TestInvalidPointerIsRefused(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"", "12", "#", "k7f2m7qa", "k7f2m7qa#", "k7f2m7qa#-1", "k7f2m7qa#12#13", "k7f2m7q#12", "k7f2m7qaa#12", "k7f2m9q1#12",
		"#14-12", "#1234567890", "'; DROP TABLE epochs; --#1", "\x00#1", "k7f2m7qa#12 k7f2m7qa#13",
	} {
		if pointer, err := archive.ParsePointer(text); !errors.Is(err, archive.ErrPointer) {
			t.Errorf("%q is read as %+v, %v", text, pointer, err)
		}
	}
}
