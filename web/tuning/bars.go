package tuning

import (
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"palimpsest/pipeline/preview"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// The picture of the sessions has one bar for each, in a box that is stretched to the card's width.
const (
	pictureWidth  = 1000.0
	pictureHeight = 220.0
	pictureTop    = 1.7 // in windows; fuller bars are cut off
	barShare      = 0.72
	lineHeight    = 13.0 // of a line's label, in px
)

// picture is a preview's sessions as bars, oldest first.
type picture struct {
	Bars    []bar
	FullY   string // of the line where the window is full
	TargetY string
	Target  string // "target 0.75"
	LabelY  string // of the target's label
	FullAt  string // and of the other's
	Words   string // a description of the picture
}

// bar is a session: the part of its fullest prompt that would be sent, and above it the rest that the client
// sent.
type bar struct {
	X, Width        string
	SentY, SentHigh string
	GapY, GapHigh   string // "" if absent
	Ink             string // class of its color
	Words           string
	Path            string // of the session's page; "" in a sample
}

// picture draws the sessions under the settings that were typed.
func (m previewModel) picture() picture {
	each := m.Found.WantedEach
	target, _ := strconv.ParseFloat(m.Target, 64) // was accepted, because there is a preview
	drawn := picture{FullY: components.Decimal(yOf(1)), TargetY: components.Decimal(yOf(target)), Target: "target " + m.Target}
	full, at := yOf(1)+4, yOf(target)+4
	if at-full < lineHeight {
		at = full + lineHeight
	}
	drawn.FullAt, drawn.LabelY = components.Decimal(full+pictureTopGap), components.Decimal(at+pictureTopGap)
	step := pictureWidth / float64(max(1, len(each)))
	for i := range each {
		one := each[len(each)-1-i]
		drawn.Bars = append(drawn.Bars, newBar(one, float64(i)*step+step*(1-barShare)/2, step*barShare))
	}
	if !m.Ready {
		drawn.Bars = waiting(yOf(target))
		return drawn
	}
	drawn.Words = fmt.Sprintf("How full the fullest prompt of each of %s made the model’s window, the oldest first: %d would be compressed, %d of them down to L3.",
		components.Plural(int64(len(each)), "session"), compressed(each), atL3(each))
	return drawn
}

// waiting returns placeholders for the bars: the maximum number of them, all up to the same line.
func waiting(y float64) []bar {
	bars, step := make([]bar, preview.Newest), pictureWidth/preview.Newest
	for i := range bars {
		bars[i] = bar{
			X: components.Decimal(float64(i)*step + step*(1-barShare)/2), Width: components.Decimal(step * barShare),
			SentY: components.Decimal(y), SentHigh: components.Decimal(pictureHeight - y), Ink: "f-wait",
		}
	}
	return bars
}

// pictureTopGap is the room above the picture for its overhang, in px.
const pictureTopGap = 14.0

func newBar(one preview.Session, x, width float64) bar {
	before, sent := float64(one.FullBefore)/1000, float64(one.FullSent)/1000
	top := yOf(sent)
	drawn := bar{X: components.Decimal(x), Width: components.Decimal(width), SentY: components.Decimal(top), SentHigh: components.Decimal(pictureHeight - top), Ink: "f-l" + strconv.Itoa(one.Deepest)}
	if above := yOf(before); above < top {
		drawn.GapY, drawn.GapHigh = components.Decimal(above), components.Decimal(top-above)
	}
	drawn.Words = fmt.Sprintf("%s, window %d%% full", components.Plural(int64(one.Requests), "request"), percent(one.FullBefore))
	if one.ID != uuid.Nil {
		drawn.Path = paths.Session(one.ID)
	}
	if one.Epochs > 0 {
		drawn.Words = fmt.Sprintf("%s, %d%% full as sent, down to L%d", drawn.Words, percent(one.FullSent), one.Deepest)
	}
	return drawn
}

// yOf returns the height in the picture for a share of the window.
func yOf(share float64) float64 {
	return pictureHeight - min(share, pictureTop)/pictureTop*pictureHeight
}

func percent(thousandths int) int { return (thousandths + 5) / 10 }

// compressed counts the sessions with any compression.
func compressed(each []preview.Session) int {
	n := 0
	for i := range each {
		if each[i].Epochs > 0 {
			n++
		}
	}
	return n
}

// atL3 counts the sessions with any turn at the deepest level.
func atL3(each []preview.Session) int {
	n := 0
	for i := range each {
		if each[i].Deepest == 3 {
			n++
		}
	}
	return n
}

// clientOptions are the clients by which the preview can be filtered.
func (m previewModel) clientOptions() []components.Option {
	options := []components.Option{{Label: "All clients"}}
	known := m.Client == ""
	for _, client := range m.Clients {
		if client == "" {
			continue
		}
		options = append(options, components.Option{Value: client, Label: components.ClientName(client)})
		known = known || client == m.Client
	}
	if !known {
		options = append(options, components.Option{Value: m.Client, Label: components.ClientName(m.Client)})
	}
	return options
}

// consequence is the difference between this setting and the saved one in a sentence, with the sessions behind
// it.
func (m previewModel) consequence() string {
	saved, wanted := m.Found.Saved, m.Found.Wanted
	sessions := "your last " + components.Plural(int64(saved.Sessions), "session")
	if m.Client != "" {
		sessions += " with " + components.ClientName(m.Client)
	}
	sessions += " (" + components.Plural(int64(saved.Requests), "request") + ")"
	if m.Found.IsSample {
		sessions = "6 invented sessions (a preview of " + m.whose() + " needs 5 sessions)"
	}
	said := "On " + sessions + ", this setting costs "
	switch {
	case wanted.Cost > saved.Cost:
		said += components.Money(wanted.Cost-saved.Cost) + " more than the saved one"
	case wanted.Cost < saved.Cost:
		said += components.Money(saved.Cost-wanted.Cost) + " less than the saved one"
	default:
		said += "as much as the saved one"
	}
	was, will := components.Share(saved.Verbatim, saved.Received), components.Share(wanted.Verbatim, wanted.Received)
	if was == will {
		said += ". " + will + " of the prompts stay word for word."
	} else {
		said += ". " + will + " of the prompts stay word for word instead of " + was + "."
	}
	if wanted.TooLong > 0 {
		said += " " + components.Plural(int64(wanted.TooLong), "session") + " would have had a prompt too long for the provider."
	}
	return said
}

// whose names the sessions in the preview.
func (m previewModel) whose() string {
	if m.Client == "" {
		return "your own"
	}
	return "those with " + components.ClientName(m.Client)
}
