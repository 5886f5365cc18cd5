package archivedb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
)

// addSession returns the fixture with another session of a title, whose messages were
// archived some days ago.
func (f *fixture) addSession(t *testing.T, title string, daysAgo int, messages ...[]byte) *fixture {
	t.Helper()
	other := *f
	other.session = uuid.New()
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, title, started_at, last_at)
			VALUES (?, ?, ?, 'anthropic', 'lineage', ?, now(), now())`, f.workspace, other.session, uuid.New(), title).Error
	})
	other.lane = other.addLane(t, time.Now())
	other.put(t, entries(messages...)...)
	other.indexed(t)
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE archive_documents SET at = now() - ? * interval '1 day' WHERE workspace_id = ? AND lane_id = ?`, daysAgo, f.workspace, other.lane).Error
	})
	return &other
}

// day says when the lane's messages were archived, as a person may.
func (f *fixture) day(t *testing.T) string {
	t.Helper()
	var day string
	f.in(t, func(tx *gorm.DB) error {
		return tx.Raw("SELECT 'On ' || to_char(at AT TIME ZONE 'UTC', 'Mon DD, YYYY') || ': ' FROM archive_documents WHERE lane_id = ?", f.lane).Scan(&day).Error
	})
	return day
}

// A command that was run in many sessions is found in the one, and at the time, that the
// question names.
func TestACallIsFoundInTheSessionAndAtTheTimeThatAreNamed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for i := range 300 { // more than are ranked at once
		f.addLane(t, time.Now())
		f.put(t, entry(2*i, call(fmt.Sprint("x", i), "Bash", map[string]any{"command": "go test ./...", "description": "Run all tests"})),
			entry(2*i+1, result(fmt.Sprint("x", i), "ok")))
	}
	f.indexed(t)
	run := func(printed string) [][]byte {
		return [][]byte{call("a", "Bash", map[string]any{"command": "go test ./...", "description": "Run all tests"}), result("a", printed)}
	}
	parser := f.addSession(t, "Fix the flaky parser", 40, run("FAIL parser")...)
	exporter := f.addSession(t, "Speed the exporter up", 2, run("FAIL exporter")...)
	index := f.index()
	const question = "Earlier you ran a command to: Run all tests. What exactly did it print?"
	for ask, want := range map[string]uuid.UUID{
		question: f.session,
		`In the session about "the exporter": ` + question: exporter.session,
		parser.day(t) + question:                           parser.session,
		exporter.day(t) + question:                         exporter.session,
	} {
		hits := f.search(t, index, archive.Query{Text: ask, Limit: 3})
		if len(hits) == 0 || hits[0].Session != want {
			t.Errorf("%q finds %+v, want session %s", ask, hits, want)
		}
		if isNamed := ask != question; len(hits) > 0 && isNamed != (len(hits[0].Named) == 1) {
			t.Errorf("%q says that it was named: %q", ask, hits[0].Named)
		}
	}
	hits := f.search(t, index, archive.Query{Text: "FAIL of the exporter", Limit: 1})
	if len(hits) != 1 || !slices.Equal(hits[0].Matched, []string{"FAIL", "exporter"}) {
		t.Errorf("why it matched: %+v", hits)
	}
}
