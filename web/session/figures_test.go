package session

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// The rows' tokens are counted by one tokenizer and their prompt's by another. The factor between them comes
// from what was not sent, and never makes the rows larger than their prompt.
func TestFactorOfRowsKeepsThemWithinTheirPrompt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counted, prompt figure
		want            float64
	}{
		"unknown prompt":            {figure{100, 50}, figure{}, 1},
		"nothing was left out":      {figure{100, 100}, figure{150, 150}, 1},
		"a larger vocabulary":       {figure{1000, 500}, figure{3000, 2250}, 1.5},
		"no more than twice":        {figure{1000, 900}, figure{5000, 4000}, 2},
		"no less than half":         {figure{1000, 900}, figure{5000, 4990}, 0.5},
		"larger than received":      {figure{1000, 500}, figure{600, 400}, 0.5},
		"larger than what was sent": {figure{100, 100}, figure{150, 60}, 0.6},
	} {
		if got := factorOf(c.counted, c.prompt); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Rows are rounded to whole tokens. Where that would make them more than their prompt, they are rounded down.
func TestRoundedRowsAreNoMoreThanTheirPrompt(t *testing.T) {
	t.Parallel()
	s := newSizes([]figure{{3, 3}, {3, 3}, {3, 3}}, figure{8, 8})
	if want := (figure{2, 2}); s.rest != want || !slices.Equal(s.rows, []figure{want, want, want}) {
		t.Errorf("rows %v and the rest %v", s.rows, s.rest)
	}
	if s = newSizes([]figure{{3, 3}}, figure{10, 10}); s.rest != (figure{7, 7}) {
		t.Errorf("the rest is %v", s.rest)
	}
	if s = newSizes([]figure{{3, 3}}, figure{}); s.rest != (figure{}) || s.rows[0] != (figure{3, 3}) {
		t.Errorf("of an unknown prompt rows %v and the rest %v", s.rows, s.rest)
	}
}

// A run of parts has one text, in its last part, or in the part of a turn that had to stay before them.
func TestPartsWithoutATextHaveThatOfTheirRun(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage("{}")
	rendered := func(level, messages int) session.Part {
		return session.Part{Raw: raw, Level: level, Messages: messages}
	}
	for name, c := range map[string]struct {
		parts []session.Part
		want  []int
	}{
		"each its own":              {[]session.Part{rendered(1, 1), rendered(2, 1), rendered(3, 1)}, []int{0, 1, 2}},
		"in the last part":          {[]session.Part{rendered(3, 0), rendered(2, 0), rendered(2, 1)}, []int{2, 2, 2}},
		"in the part before":        {[]session.Part{rendered(1, 1), rendered(3, 0), {Messages: 1}}, []int{0, 0, 2}},
		"in the part before, last":  {[]session.Part{rendered(2, 1), rendered(3, 0)}, []int{0, 0}},
		"not over an unchanged one": {[]session.Part{rendered(2, 1), {Messages: 1}, rendered(3, 0), rendered(3, 1)}, []int{0, 1, 3, 3}},
	} {
		r := reader{projection: session.Projection{Parts: c.parts}}
		if got := r.texts(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// An insert is not shown at a message that was rendered since.
func TestInsertsOfRenderedMessagesAreNotShown(t *testing.T) {
	t.Parallel()
	r := reader{
		inserts:    []session.Insert{{Message: session.InSystem}, {Message: 1}, {Message: 3}},
		projection: session.Projection{Covers: 3, Parts: []session.Part{{To: 3, Level: 2, Raw: json.RawMessage("{}"), Messages: 1}}},
	}
	for row, want := range map[span]int{{From: 0, To: 3}: 1, {From: 3, To: 4}: 1, {From: 4, To: 5}: 0} {
		if got := len(r.insertsOf(row)); got != want {
			t.Errorf("messages %s: %d inserts, want %d", row.form(), got, want)
		}
	}
}

// A thread whose parent was deleted, or is in another session, is a tree of its own.
func TestThreadWithoutItsParentIsShown(t *testing.T) {
	t.Parallel()
	main, fork, second, beside := threads()
	m := model{Detail: session.Detail{Lanes: []session.LaneOverview{main, second, beside}}} // fork is missing
	roots := m.roots()
	if len(roots) != 2 || roots[0].Lane.ID != main.ID || roots[1].Lane.ID != second.ID || len(roots[0].Children) != 1 || roots[0].Children[0].Lane.ID != beside.ID {
		t.Errorf("%+v without %s", roots, fork.ID)
	}
}

// A session goes on in another client if its main thread is archived and has a history.
func TestOnlyAnArchivedConversationGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	main, fork, _, _ := threads()
	archived := main
	archived.Archived, fork.Archived = 5, 5
	for name, c := range map[string]struct {
		lanes          []session.LaneOverview
		isSingle, read bool
		want           bool
	}{
		"archived":                   {[]session.LaneOverview{archived}, false, true, true},
		"only a fork is archived":    {[]session.LaneOverview{main, fork}, false, true, false},
		"without threads":            {nil, false, true, false},
		"single requests":            {[]session.LaneOverview{archived}, true, true, false},
		"of which one reads no text": {[]session.LaneOverview{archived}, false, false, false},
	} {
		m := model{Detail: session.Detail{Lanes: c.lanes}, MayRead: c.read}
		m.Single = c.isSingle
		if got := m.mayContinue(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The levels of a prompt are no more than was sent, the deepest first.
func TestLevelsAreNoMoreThanWasSent(t *testing.T) {
	t.Parallel()
	m := model{Epochs: []session.EpochOverview{{Number: 1, Levels: [3]int{30, 30, 30}}}}
	for after, want := range map[int][4]int{100: {10, 30, 30, 30}, 40: {0, 0, 10, 30}, 20: {0, 0, 0, 20}} {
		moment := session.TimelineEntry{Projection: 1}
		moment.After = after
		if held, known := m.levels(moment); held != want || !known {
			t.Errorf("of %d tokens sent: %v, want %v", after, held, want)
		}
	}
}

// An answer came at the end of its request, another message with the first request that has it, and a message
// that no request tells of when it was archived.
func TestRowsHaveTheTimeOfTheirRequest(t *testing.T) {
	t.Parallel()
	noon := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	var rows []row
	for _, from := range []int{0, 1, 2, 10, 80} {
		rows = append(rows, row{span: span{From: from, To: from + 1}, At: at(59)})
	}
	rows = append(rows, row{span: span{From: 200, To: 201}}) // not archived
	asked := make([]session.Asked, 4)
	for i, position := range []int{1, 10 + maxNew, 80 + maxNew + 1, 200} {
		asked[i].Position, asked[i].At, asked[i].Duration = position, at(4*i+1), 30*time.Second
	}
	tell(rows, asked)
	for i, want := range []time.Time{at(1), at(1).Add(30 * time.Second), at(59), at(5), at(59), {}} {
		if !rows[i].At.Equal(want) {
			t.Errorf("message %d came at %s, want %s", rows[i].From, rows[i].At, want)
		}
	}
	if rows[1].Asked == nil || rows[0].Asked != nil {
		t.Errorf("the request of message 1 is %v, of message 0 %v", rows[1].Asked, rows[0].Asked)
	}
}

// listed is an archive of lanes of which one differs from a message on, or lacks it.
type listed struct {
	archiveReader

	other   uuid.UUID
	differs int
	lacks   bool
}

func (l listed) Entries(_ context.Context, _ tenants.WorkspaceID, lane uuid.UUID, from, limit int) ([]archive.Entry, error) {
	var entries []archive.Entry
	for i := from; i < from+limit; i++ {
		entry := archive.Entry{Index: i, Hash: conversation.Hash{byte(i), byte(i >> 8)}}
		if lane == l.other && i == l.differs {
			if l.lacks {
				continue
			}
			entry.Hash = conversation.Hash{1, 2, 3}
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// Two sessions part at their first message that differs or is not archived, however late that is.
func TestSessionsPartAtTheirFirstDifference(t *testing.T) {
	t.Parallel()
	for _, lacks := range []bool{false, true} {
		for _, at := range []int{0, comparedStep - 1, comparedStep, 2*comparedStep + 7} {
			a, b := counterpart{readable: true}, counterpart{readable: true}
			a.Lane, b.Lane = session.LaneOverview{ID: uuid.New(), Position: 2*comparedStep + 20}, session.LaneOverview{ID: uuid.New(), Position: 2*comparedStep + 10}
			h := comparer{New(Deps{Archive: listed{other: b.Lane.ID, differs: at, lacks: lacks}})}
			if parted, err := h.parting(t.Context(), tenants.Principal{}, &a, &b); err != nil || parted.At != at || parted.Same {
				t.Errorf("message %d, lacking %t: %+v, %v", at, lacks, parted, err)
			}
		}
	}
	a, b := counterpart{readable: true}, counterpart{readable: true}
	a.Lane.Position, b.Lane.Position = 3, 5
	h := comparer{New(Deps{Archive: listed{other: uuid.New()}})}
	if parted, err := h.parting(t.Context(), tenants.Principal{}, &a, &b); err != nil || parted.At != 3 || parted.Same {
		t.Errorf("one that goes on: %+v, %v", parted, err)
	}
	b.Lane.Position = 3
	if parted, err := h.parting(t.Context(), tenants.Principal{}, &a, &b); err != nil || !parted.Same {
		t.Errorf("equal ones: %+v, %v", parted, err)
	}
}

// Of many events the newest are compared, each at its own time.
func TestComparedEventsHaveTheirOwnTime(t *testing.T) {
	t.Parallel()
	noon := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	var c counterpart
	c.Sums.Exchanges = 2
	for i := range maxMarks + 3 {
		c.Timeline.Events = append(c.Timeline.Events, session.TimelineEntry{Number: i + 1, At: noon.Add(time.Duration(i) * time.Minute)})
	}
	steps := c.timeline()
	if len(steps) != maxMarks+2 || !steps[1].At.Equal(noon.Add(3*time.Minute)) || !steps[maxMarks].At.Equal(noon.Add((maxMarks+2)*time.Minute)) {
		t.Errorf("%d steps, the first event at %s, the last at %s", len(steps), steps[1].At, steps[len(steps)-2].At)
	}
}
