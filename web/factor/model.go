package factor

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// state is the progress of the set-up.
type state int

const (
	off     state = iota
	waiting       // for the first code
	on
)

// model is the page's data.
type model struct {
	State  state
	Factor tenants.SecondFactor
	Secret string   // only while waiting
	Codes  []string // recovery codes, shown once
	Done   string   // the last action
	Now    time.Time

	Start, Confirm, Change form
}

// form is fields and the error of the whole form.
type form struct {
	Password, Code components.FieldModel
	Error          string
}

func newModel(now time.Time) model {
	return model{Now: now, Start: newStartForm(nil), Confirm: newConfirmForm(nil), Change: newChangeForm(nil)}
}

func newStartForm(err error) form { return newForm("", err) }

func newConfirmForm(err error) form { return newForm("The six digits shown in the app now.", err) }

func newChangeForm(err error) form { return newForm("From your app, or a recovery code.", err) }

func newForm(hint string, err error) form {
	made := form{
		Password: components.FieldModel{Label: "Your password", Name: "password"},
		Code:     components.FieldModel{Label: "Code", Name: "code", Hint: hint},
	}
	components.FieldErrors(err, &made.Password, &made.Code)
	if many, is := errors.AsType[tenants.TooMany](err); is {
		made.Error = "Too many attempts. Try again in " + components.Span(many.Wait) + ". Nothing was changed."
	}
	return made
}

func doneText(what string) string {
	if what == "off" {
		return "The second factor is off, and your other logins have ended. You log in with your password alone."
	}
	return ""
}

// spaced formats a secret in groups of four.
func spaced(secret string) string {
	var groups []string
	for group := range slices.Chunk([]byte(secret), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, " ")
}

// quiet is how many empty modules a QR code needs on each side (ISO/IEC 18004).
const quiet = 4

// draw returns an SVG with the QR code of a text, dark on light in both themes.
func draw(text string) ([]byte, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return nil, fmt.Errorf("draw QR code: %w", err)
	}
	size := code.Bounds().Dx()
	var image bytes.Buffer
	fmt.Fprintf(&image, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[1]d" shape-rendering="crispEdges">`, size+2*quiet)
	fmt.Fprintf(&image, `<rect width="%[1]d" height="%[1]d" fill="#fff"/><path fill="#000" d="`, size+2*quiet)
	for y := range size {
		for x := range size {
			if red, _, _, _ := code.At(x, y).RGBA(); red == 0 {
				fmt.Fprintf(&image, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	image.WriteString(`"/></svg>`)
	return image.Bytes(), nil
}
