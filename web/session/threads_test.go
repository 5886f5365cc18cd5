package session

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// threads returns a main thread, a fork of it that shares four messages, a fork of that fork that shares
// eight with it, and one beside them that shares two with the main thread.
func threads() (main, fork, second, beside session.LaneOverview) {
	lane := func(parent uuid.UUID, at int) session.LaneOverview {
		return session.LaneOverview{ID: uuid.New(), Parent: parent, ForkAt: at, Position: 20}
	}
	main = lane(uuid.Nil, 0)
	fork = lane(main.ID, 4)
	return main, fork, lane(fork.ID, 8), lane(main.ID, 2)
}

// Hits and comments are here where the thread that is read has their message, also by a fork of a fork.
// The same message of another thread, or the first one behind a fork, is elsewhere.
func TestHitsAndCommentsAreHereWhereTheThreadHasTheirMessage(t *testing.T) {
	t.Parallel()
	main, fork, second, beside := threads()
	detail := session.Detail{Lanes: []session.LaneOverview{beside, second, main, fork}}
	for _, c := range []struct {
		name       string
		read, lane session.LaneOverview
		from, to   int
		want       bool
	}{
		{"own", fork, fork, 4, 5, true},
		{"last shared", fork, main, 3, 4, true},
		{"first behind the fork", fork, main, 4, 5, false},
		{"run over the fork", fork, main, 3, 5, false},
		{"shared with the fork's parent", second, main, 3, 4, true},
		{"before the second fork, behind the first", second, main, 4, 5, false},
		{"last shared with the fork", second, fork, 7, 8, true},
		{"behind the second fork", second, fork, 8, 9, false},
		{"of a thread that goes on from it", main, fork, 5, 6, false},
		{"of a thread beside it", fork, beside, 2, 3, false},
	} {
		of := subject{detail: detail, lane: c.read}
		hit := archive.Hit{Lane: c.lane.ID, From: c.from, To: c.to, Matched: []string{"x"}}
		link := c.lane.ID
		if c.want {
			link = c.read.ID
		}
		if found := inOrder(of, []archive.Hit{hit}, "x"); found[0].IsHere != c.want || !strings.Contains(found[0].Path, link.String()) {
			t.Errorf("%s: %+v, want here %t", c.name, found[0], c.want)
		}
		comments := commentsModel{All: []remark{{Comment: tenants.Comment{Lane: c.lane.ID, Message: c.to - 1}}}}
		if got := comments.remarksOf(of)[c.to-1]; (got == 1) != c.want {
			t.Errorf("%s: %d comments, want one %t", c.name, got, c.want)
		}
	}
}

// Hits stand as a reader meets them: those of the thread that is read first, by message, each once.
func TestHitsAreInTheOrderOfTheThread(t *testing.T) {
	t.Parallel()
	main, fork, _, _ := threads()
	of := subject{detail: session.Detail{Lanes: []session.LaneOverview{main, fork}}, lane: fork}
	var hits []archive.Hit
	for _, at := range []struct {
		lane uuid.UUID
		from int
	}{{main.ID, 9}, {fork.ID, 12}, {main.ID, 1}, {fork.ID, 5}, {fork.ID, 12}} {
		hits = append(hits, archive.Hit{Lane: at.lane, From: at.from, To: at.from + 1, Matched: []string{"x"}})
	}
	hits = append(hits, archive.Hit{Lane: fork.ID, From: 6, To: 7}) // by meaning only
	var order []string
	for _, hit := range inOrder(of, hits, "x") {
		order = append(order, hit.Index)
	}
	if !slices.Equal(order, []string{"1", "5", "12", "9"}) {
		t.Errorf("messages %q", order)
	}
}

// searched answers each search with so many hits.
type searched struct {
	searcher

	hits int
}

type searcher = archive.Searcher

func (s searched) Search(context.Context, tenants.WorkspaceID, archive.Query) ([]archive.Hit, error) {
	hits := make([]archive.Hit, s.hits)
	for i := range hits {
		hits[i] = archive.Hit{From: i, To: i + 1, Matched: []string{"x"}}
	}
	return hits, nil
}

// A search says that there may be more where it returned as many hits as it may, and not before.
func TestSearchThatIsFullSaysSo(t *testing.T) {
	t.Parallel()
	for _, hits := range []int{0, 1, archive.MaxHits - 1, archive.MaxHits} {
		h := New(Deps{Searcher: searched{hits: hits}})
		found, err := h.find(t.Context(), tenants.WorkspaceID{}, subject{mayRead: true}, "xy")
		if err != nil || len(found.Hits) != hits || found.Full != (hits == archive.MaxHits) {
			t.Errorf("%d hits: %d, full %t, %v", hits, len(found.Hits), found.Full, err)
		}
		if found, err := h.find(t.Context(), tenants.WorkspaceID{}, subject{}, "xy"); err != nil || len(found.Hits) != 0 {
			t.Errorf("of a session that may not be read: %d hits, %v", len(found.Hits), err)
		}
	}
}

// unread is an archive that lists no message.
type unread struct{ archiveReader }

type archiveReader = archive.Reader

func (unread) Entries(context.Context, tenants.WorkspaceID, uuid.UUID, int, int) ([]archive.Entry, error) {
	return nil, nil
}

// A row whose messages are not all archived says so, wherever the hole is. One whose messages are empty has
// no hole.
func TestRowsSayWhichMessagesAreNotArchived(t *testing.T) {
	t.Parallel()
	r := reader{archive: unread{}, archived: []int{-1, 5, 5, 5, -1, 5, 5, 5, -1, 0, 0, 0, -1}}
	page := []span{{From: 0, To: 3}, {From: 3, To: 6}, {From: 6, To: 9}, {From: 9, To: 12}, {From: 12, To: 13}, {From: 7, To: 8}}
	rows, err := r.rows(t.Context(), page, -1, query{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, false, false, true, false, true} {
		if rows[i].Known != want {
			t.Errorf("messages %s: in the archive %t, want %t", rows[i].index(), rows[i].Known, want)
		}
	}
}

// Messages that threads share are counted once, and a thread without archived messages takes no others off.
func TestArchivedMessagesOfThreadsAreCountedOnce(t *testing.T) {
	t.Parallel()
	main, fork, second, beside := threads()
	main.Archived, fork.Archived, second.Archived, beside.Archived = 10, 7, 0, 3
	if got := archivedIn([]session.LaneOverview{second, fork, main, beside}); got != 10+3+0+1 {
		t.Errorf("%d messages", got)
	}
}

// Each row of a thread is on exactly one page, whichever way one goes, also where the last page is full.
func TestPagesOfTurnsHoldEachRowOnce(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{1, rowsPerPage - 1, rowsPerPage, rowsPerPage + 1, 2 * rowsPerPage, 2*rowsPerPage + 1} {
		r := reader{lane: session.LaneOverview{ID: uuid.New(), Position: rows}}
		all := r.spans()
		var starts []int
		for first, more := 0, true; more; {
			var m readModel
			m.First = firstRow(all, query{Message: -1, From: first})
			starts = append(starts, m.First)
			r.neighbors(&m, all, min(rowsPerPage, rows-m.First), query{})
			if len(starts) > 1 && from(t, m.Earlier) != starts[len(starts)-2] {
				t.Errorf("%d rows: before %d comes %q", rows, m.First, m.Earlier)
			}
			if more = m.Later != ""; more {
				first = from(t, m.Later)
			}
		}
		for i, start := range starts {
			if start != i*rowsPerPage || len(starts) != (rows+rowsPerPage-1)/rowsPerPage {
				t.Errorf("%d rows: pages begin at %v", rows, starts)
			}
		}
	}
}

// from returns the message that a page begins with, by its address.
func from(t *testing.T, address string) int {
	t.Helper()
	_, after, _ := strings.Cut(address, "from=")
	number, _, _ := strings.Cut(after, "&")
	n, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%q has no page", address)
	}
	return n
}

// A pin and an insert belong to the row that has their message, first or last, and to no row beside it.
func TestPinsAndInsertsStandAtTheirRowAlone(t *testing.T) {
	t.Parallel()
	r := reader{pins: []session.Pin{{Message: 2}, {Message: 4}}, inserts: []session.Insert{{Message: 2, Module: "a"}, {Message: 4, Module: "b"}}}
	for _, c := range []struct {
		row    span
		pinned int
	}{
		{span{From: 0, To: 2}, 0}, {span{From: 2, To: 5}, 2}, {span{From: 2, To: 4}, 1}, {span{From: 3, To: 4}, 0}, {span{From: 4, To: 5}, 1}, {span{From: 5, To: 9}, 0}} {
		if pins, inserts := len(r.pinnedIn(c.row)), len(r.insertsOf(c.row)); pins != c.pinned || inserts != c.pinned {
			t.Errorf("%d to %d: %d pins and %d inserts, want %d", c.row.From, c.row.To, pins, inserts, c.pinned)
		}
	}
}

// The prediction of a compaction is that of its own thread and number: two threads of a session count
// theirs from one each.
func TestDecisionsAreThoseOfTheThreadsOwnCompactions(t *testing.T) {
	t.Parallel()
	main, fork, _, _ := threads()
	all := []cost.Decision{
		{Lane: main.ID, Number: 1, Predicted: 11}, {Lane: main.ID, Number: 2, Predicted: 12}, {Lane: fork.ID, Number: 1, Predicted: 21}, {Lane: fork.ID, Number: 2, Predicted: 22},
	}
	found := decisionsOf([]session.EpochOverview{{Lane: main.ID, Number: 1}, {Lane: fork.ID, Number: 2}, {Lane: fork.ID, Number: 3}}, all)
	if len(found) != 2 || found[0].Predicted != 11 || found[1].Predicted != 22 {
		t.Errorf("%+v", found)
	}
}

// Of two compactions each moment shows its own: in the chart's levels and in the list of events. Of many
// events the newest are numbered.
func TestMomentsShowTheirOwnCompaction(t *testing.T) {
	t.Parallel()
	first, last := session.EpochOverview{Number: 1, Before: 900, After: 500, Reason: "target", Levels: [3]int{10, 20, 30}},
		session.EpochOverview{Number: 2, Before: 800, After: 400, Reason: "limit", Levels: [3]int{40, 50, 60}}
	m := model{Epochs: []session.EpochOverview{first, last}}
	for i := range maxMarks + 3 {
		moment := session.TimelineEntry{Number: i + 1, Projection: 1, Compression: string(pipeline.Epoch)}
		if moment.After = 500; i > maxMarks {
			moment.Projection, moment.After = 2, 400
		}
		m.Timeline.Events = append(m.Timeline.Events, moment)
	}
	events := m.events()
	if len(events) != maxMarks || events[0].Number != 1 || events[0].Request != 4 || events[maxMarks-1].Request != maxMarks+3 {
		t.Errorf("%d events, from %+v to %+v", len(events), events[0], events[len(events)-1])
	}
	for at, want := range map[int]string{0: "compaction 1, reason: target reached, 900 → 500 tokens", maxMarks - 1: "compaction 2, reason: limit reached, 800 → 400 tokens"} {
		if events[at].Text != want {
			t.Errorf("event %d: %q, want %q", at, events[at].Text, want)
		}
	}
	for at, want := range map[int]string{0: "440 · 10 · 20 · 30", maxMarks + 2: "250 · 40 · 50 · 60"} {
		if got := m.levelsText(m.Timeline.Events[at]); got != want {
			t.Errorf("levels at %d: %s, want %s", at, got, want)
		}
	}
	if got := m.levelsText(session.TimelineEntry{Projection: 3}); got != "not recorded" {
		t.Errorf("levels of a compaction that is gone: %s", got)
	}
}

// The figures above a session are shares: of the window, by the prompts that were sent, and of the
// prompts that the client sent, by the tokens that were saved.
func TestSharesOfSessionAreOfTheirWhole(t *testing.T) {
	t.Parallel()
	moment := session.TimelineEntry{Number: 2, At: time.Unix(1, 0), PromptSize: session.PromptSize{Before: 180, After: 50, Window: 200}}
	m := model{Timeline: session.Timeline{Total: 2, Points: []session.TimelineEntry{{PromptSize: session.PromptSize{Before: 90, After: 20, Window: 200}}, moment}}}
	m.Sums.TokensBefore, m.Sums.TokensAfter = 1000, 250
	if got := m.savedShare(); got != "75.0% less" {
		t.Errorf("saved %s", got)
	}
	if m.Sums.TokensAfter = 1500; m.savedShare() != "50.0% more" {
		t.Errorf("cost more: %s", m.savedShare())
	}
	if got := m.strip(); got != "25.0% of 200 filled · not compressed" {
		t.Errorf("the strip says %q", got)
	}
	if got := m.spark().Words; !strings.HasSuffix(got, "at most 25 percent") {
		t.Errorf("the line says %q", got)
	}
}

// Threads of a session are named by their kind, wherever they stand in its list.
func TestThreadsAreNamedByTheirKind(t *testing.T) {
	t.Parallel()
	fork := session.LaneOverview{Parent: uuid.New()}
	for _, c := range []struct {
		at   int
		lane session.LaneOverview
		want string
	}{
		{0, fork, "Main thread"}, {1, fork, "Earlier branch"}, {2, session.LaneOverview{}, "Earlier thread"},
		{1, session.LaneOverview{Kind: session.Subagent}, "Subagent"}, {2, session.LaneOverview{Kind: session.Side, Parent: fork.Parent}, "Side call"},
	} {
		if got := laneTitle(c.at, c.lane); got != c.want {
			t.Errorf("%d: %s, want %s", c.at, got, c.want)
		}
	}
}
