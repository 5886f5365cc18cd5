package main

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
)

// Sessions past their window go on while the database is away: no prompt goes out that the
// provider finds too long, and once the database is back it has every message that was sent.
func TestSessionsOutgrowTheirWindowWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	t.Run("it takes no connections", func(t *testing.T) {
		t.Parallel()
		fulltest.Turn(t, 2)
		database := dbtest.New(t)
		r := startReplicas(t, database.OwnerURL, 3)
		r.outlive(database.OwnerURL, func() { r.allowConnections(false) }, func() { r.allowConnections(true) })
	})
	t.Run("it stands still", func(t *testing.T) {
		t.Parallel()
		fulltest.Turn(t, 3)
		server := dbtest.NewServer(t)
		r := startReplicas(t, server.OwnerURL, 3)
		r.outlive(server.OwnerURL, func() { server.Freeze(t) }, func() { server.Thaw(t) })
	})
}

// outlive has sessions whose database goes away in the middle and comes back.
func (r *replicas) outlive(databaseURL string, goes, comesBack func()) {
	r.t.Helper()
	const sessions, turns = 4, 75
	all := r.chats(sessions, turns)
	for i := range all {
		all[i].name = fmt.Sprintf("outage-%d", i)
	}
	r.talk(between(all, 0, 40), r.anywhere)
	goes()
	r.talk(between(all, 40, 60), r.anywhere)
	if refused := r.double.Rejected(); refused > 0 {
		r.t.Errorf("the provider refused %d prompts", refused)
	}
	kept := r.waiting()
	comesBack()
	if kept == 0 {
		r.t.Error("no session outgrew its window while the database was away")
	}
	if r.t.Failed() {
		return
	}
	r.t.Logf("%d epochs were kept on the disk", kept)
	r.until(func() bool { return r.waiting() == 0 })
	r.talk(between(all, 60, turns), r.anywhere)
	if refused := r.double.Rejected(); refused > 0 {
		r.t.Fatalf("the provider refused %d prompts", refused)
	}
	owner, err := pgxpool.New(r.t.Context(), databaseURL)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(owner.Close)
	for _, one := range all {
		r.until(func() bool { return r.isWhole(owner, one) })
	}
}

// untilKnown waits until a program remembers all lanes that were compacted.
func (r *replicas) untilKnown(database *dbtest.Database, program *program) {
	r.t.Helper()
	compacted := r.compacted(database)
	if len(compacted) == 0 {
		r.t.Fatal("none was compacted")
	}
	r.until(func() bool {
		return !slices.ContainsFunc(compacted, func(lane uuid.UUID) bool { return program.sites[0].seams.writer.Resolver.Known(lane) == nil })
	})
}

// compacted returns the lane of each compaction that is stored.
func (r *replicas) compacted(database *dbtest.Database) []uuid.UUID {
	r.t.Helper()
	rows, err := database.Owner(r.t).Query(r.t.Context(), "SELECT lane_id FROM epochs")
	if err != nil {
		r.t.Fatal(err)
	}
	lanes, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		r.t.Fatal(err)
	}
	return lanes
}

// between returns the requests of sessions from one on and before another.
func between(all []chat, from, to int) []chat {
	some := make([]chat, len(all))
	for i, one := range all {
		some[i] = chat{name: one.name, envelope: one.envelope, ends: one.ends[min(from, len(one.ends)):min(to, len(one.ends))]}
	}
	return some
}

// waiting counts the epochs that wait on the disks of all replicas.
func (r *replicas) waiting() int {
	count := 0
	for _, program := range r.programs {
		count += program.sites[0].seams.journal.Stats().Entries
	}
	return count
}

// isWhole reports whether the archive has every message of a session at its place.
func (r *replicas) isWhole(owner *pgxpool.Pool, one chat) bool {
	r.t.Helper()
	rows, err := owner.Query(r.t.Context(), `SELECT DISTINCT ON (e.index) e.index, e.hash FROM archive_entries e
		JOIN sessions s ON s.workspace_id = e.workspace_id AND s.id = e.session_id WHERE s.name = $1 ORDER BY e.index`, one.name)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	next := 0
	for rows.Next() {
		var index int
		var hash []byte
		if err := rows.Scan(&index, &hash); err != nil {
			r.t.Fatal(err)
		}
		if sum := sha256.Sum256(one.envelope.Element(next)); index != next || string(hash) != string(sum[:]) {
			return false
		}
		next++
	}
	return next == one.ends[len(one.ends)-1]
}

// A replica that starts shortly before the database goes away takes API keys that it has not seen, and sends
// sessions that others have compacted as they do: it has read all that by then, and what it compacts comes
// after what they did.
func TestReplicaThatStartsBeforeAnOutageKnowsCompactedSessions(t *testing.T) {
	t.Parallel()
	const sessions, before, turns = 4, 40, 46
	database := dbtest.New(t)
	r := startReplicas(t, database.OwnerURL, 1)
	all := r.chats(sessions, turns)
	r.talk(between(all, 0, before), r.anywhere)
	r.waitRecorded(database)

	started := &instance{t: t, config: r.config, log: &syncBuffer{}, double: r.double}
	started.config.Storage.DataDir = t.TempDir()
	started.boot()
	takesItsTime(started.program)
	fresh := started.program.addr()
	r.programs = append(r.programs, started.program)
	r.untilKnown(database, started.program)
	busts, epochs := r.busts(), len(r.compacted(database))
	r.allowConnections(false)
	r.talk(between(all, before, turns), func(*rand.Rand) string { return fresh })
	kept := r.waiting()
	r.allowConnections(true)
	database.Owner(t).Reset() // its connections have ended
	if more := r.busts() - busts; more > kept {
		t.Errorf("%d caches broke, with %d compactions", more, kept)
	}
	r.until(func() bool { return r.waiting() == 0 })
	if stored := len(r.compacted(database)) - epochs; stored != kept {
		t.Errorf("%d of %d compactions came after those that others had made", stored, kept)
	}
}
