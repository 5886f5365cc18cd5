package sessions

import (
	"fmt"
	"strings"
	"time"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// model is the page.
type model struct {
	Filter    session.Filter
	Reader    tenants.Reader // what the person may read
	Rows      []row
	Next      string // cursor of the older page; empty: none
	HasOthers bool   // nothing matches, but there are sessions
	Now       time.Time
}

// filtered reports whether the list is narrowed.
func (m model) filtered() bool {
	return m.Filter.Query != "" || m.Filter.Client != "" || m.Filter.Model != ""
}

// path returns the list with another cursor.
func (m model) path(cursor string) string {
	return paths.With(paths.Sessions, "q", m.Filter.Query, "client", m.Filter.Client, "model", m.Filter.Model, "cursor", cursor)
}

// chip is a filter that can be taken off.
type chip struct{ Text, Label, Path string }

func (m model) chips() []chip {
	var chips []chip
	if m.Filter.Client != "" {
		chips = append(chips, chip{"client:" + m.Filter.Client, "Remove the client filter",
			paths.With(paths.Sessions, "q", m.Filter.Query, "model", m.Filter.Model)})
	}
	if m.Filter.Model != "" {
		chips = append(chips, chip{"model:" + m.Filter.Model, "Remove the model filter",
			paths.With(paths.Sessions, "q", m.Filter.Query, "client", m.Filter.Client)})
	}
	return chips
}

// row is a session of the list.
type row struct {
	session.Overview

	Fill   *fill   // nil: not known
	Levels *[4]int // of the newest request that a module shaped; nil: not known
}

// fill is a picture of how full the context window was, 100 wide and 26 high.
type fill struct {
	Line, Area string // paths of SVG
	Words      string
}

// title returns what a session is called.
func (r row) title() string {
	switch {
	case r.Title != "":
		return r.Title
	case r.Name != "":
		return r.Name
	default:
		return "Untitled session"
	}
}

// held reports whether some title of the page is held back from the reader.
func (m model) held() bool {
	for i := range m.Rows {
		if !m.Reader.MayRead(m.Rows[i].APIKey) {
			return true
		}
	}
	return false
}

// id returns the start of the session's id, which tells it apart for people.
func (r row) id() string { return r.ID.String()[:8] }

func (r row) saved() string {
	return components.Share(r.TokensBefore-r.TokensAfter, r.TokensBefore)
}

// newRow returns a session with a picture of its newest requests, newest first.
func newRow(overview session.Overview, newest []tenants.Exchange) row {
	r := row{Overview: overview}
	var shares []float64
	for i := len(newest) - 1; i >= 0; i-- {
		if exchange := &newest[i]; exchange.Window > 0 && exchange.TokensAfter > 0 {
			shares = append(shares, float64(exchange.TokensAfter)/float64(exchange.Window))
		}
	}
	if len(shares) > 1 {
		r.Fill = newFill(shares)
	}
	for i := range newest {
		if levels := newest[i].Levels; levels != [4]int{} {
			r.Levels = &levels
			break
		}
	}
	return r
}

const (
	fillWidth, fillHeight = 100.0, 26.0
	fillTop               = 2.0 // above a full window
)

func newFill(shares []float64) *fill {
	var line strings.Builder
	highest := 0.0
	for i, share := range shares {
		x := fillWidth * float64(i) / float64(len(shares)-1)
		y := fillHeight - min(share, 1)*(fillHeight-fillTop)
		fmt.Fprintf(&line, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x, y)
		highest = max(highest, share)
	}
	return &fill{
		Line: line.String(), Area: line.String() + fmt.Sprintf("L%.1f %.1fL0 %.1fZ", fillWidth, fillHeight, fillHeight),
		Words: fmt.Sprintf("Context window filled by the newest %d requests, at most %.0f percent", len(shares), 100*highest),
	}
}
