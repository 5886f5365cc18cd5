package expression_test

import (
	"slices"
	"testing"

	"palimpsest/pipeline/expression"
)

func TestExpressionMatchesAsOneOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	number := expression.New(`(\d+) walnuts`)
	const text = "2 walnuts and 31 walnuts"
	if !number.MatchString(text) || number.FindString(text) != "2 walnuts" || number.ReplaceAllString(text, "$1") != "2 and 31" {
		t.Errorf("it finds %q", number.FindString(text))
	}
	if got := number.FindAllString(text, -1); !slices.Equal(got, []string{"2 walnuts", "31 walnuts"}) {
		t.Errorf("all are %q", got)
	}
	if got := number.FindStringSubmatch(text); !slices.Equal(got, []string{"2 walnuts", "2"}) {
		t.Errorf("groups are %q", got)
	}
	if got := number.FindAllStringSubmatchIndex(text, -1); len(got) != 2 || !slices.Equal(got[1], []int{14, 24, 14, 16}) {
		t.Errorf("places are %v", got)
	}
	if once := number.Compiled(); once != number.Compiled() {
		t.Error("it is compiled twice")
	}
}

func TestWrongExpressionFailsAtItsFirstUse(t *testing.T) {
	t.Parallel()
	wrong := expression.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("it is used")
		}
	}()
	wrong.MatchString("")
}
