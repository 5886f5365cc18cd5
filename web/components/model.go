package components

import (
	"errors"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"palimpsest/tenants"
)

// FieldModel is an input of a form.
type FieldModel struct {
	Label string
	Name  string // in the form; also in the input's id
	Value string // the person's input
	Hint  string
	Error string // the error in Value and the allowed values; "" if valid
}

// ID returns the id of the input.
func (f FieldModel) ID() string { return "field-" + strings.ReplaceAll(f.Name, ".", "-") }

// describedBy returns the ids of the notes below the input.
func (f FieldModel) describedBy() string {
	var ids []string
	if f.Hint != "" {
		ids = append(ids, f.ID()+"-hint")
	}
	if f.Error != "" {
		ids = append(ids, f.ID()+"-error")
	}
	return strings.Join(ids, " ")
}

// Option is a choice of a Select.
type Option struct{ Value, Label string }

// FieldError returns a message of tenants.Invalid as a sentence with the field's label, such as "Password
// must have 12 to 200 characters".
func FieldError(label, message string) string {
	sentence := strings.TrimSuffix(strings.TrimSpace(message), ".")
	return label + " " + sentence + "."
}

// FieldErrors attaches a tenants.Invalid to the field that it names. It ignores other errors.
func FieldErrors(err error, fields ...*FieldModel) {
	invalid, is := errors.AsType[tenants.Invalid](err)
	for _, field := range fields {
		if is && field.Name == invalid.Field {
			field.Error = FieldError(field.Label, invalid.Message)
		}
	}
}

// RoleName returns a role's display name.
func RoleName(role tenants.Role) string {
	if role == "" {
		return "guest"
	}
	return string(role)
}

// LevelName tells how much of a turn remains at a level.
func LevelName(level int) string {
	switch level {
	case 0:
		return "L0, verbatim"
	case 1:
		return "L1, tool results cut"
	case 2:
		return "L2, first sentences"
	case 3:
		return "L3, outline of requests"
	default:
		return "L" + strconv.Itoa(level)
	}
}

// levelBar is a segment of a LevelBar.
type levelBar struct{ class, x, width string }

// levelBars returns the segments of a bar with width 100, the deepest level first.
func levelBars(levels [4]int) []levelBar {
	total := levels[0] + levels[1] + levels[2] + levels[3]
	var bars []levelBar
	x := 0.0
	for level := 3; level >= 0 && total > 0; level-- {
		width := 100 * float64(levels[level]) / float64(total)
		if levels[level] > 0 {
			bars = append(bars, levelBar{class: "f-l" + strconv.Itoa(level), x: Decimal(x), width: Decimal(max(width-1, 0.5))})
		}
		x += width
	}
	return bars
}

func levelText(levels [4]int) string {
	return fmt.Sprintf("L3 %d, L2 %d, L1 %d, L0 %d", levels[3], levels[2], levels[1], levels[0])
}

// Decimal formats a length in a drawing.
func Decimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// highlighted returns a snippet as HTML with marked comments, strings, variables and keywords. All text is
// escaped.
func highlighted(text string) string {
	parts := regexp.MustCompile(`(?m)(^# .*$)|("[^"\n]*")|(\$[A-Z_]+)|(\b(?:export|unset|from|import|const|new|package|func)\b)`)
	var out strings.Builder
	end := 0
	for _, at := range parts.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(html.EscapeString(text[end:at[0]]))
		for group, class := range []string{"hl-c", "hl-s", "hl-v", "hl-k"} {
			if at[2*group+2] >= 0 {
				fmt.Fprintf(&out, `<span class="%s">%s</span>`, class, html.EscapeString(text[at[0]:at[1]]))
			}
		}
		end = at[1]
	}
	out.WriteString(html.EscapeString(text[end:]))
	return out.String()
}
