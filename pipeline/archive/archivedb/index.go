package archivedb

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

const (
	// indexBatch is how many messages are indexed in one transaction.
	indexBatch = 200
	// indexBytes bounds the size of a batch. The message that exceeds it is the last one.
	indexBytes = 8 << 20
	// indexSteps bounds the transactions for a lane in one run, so that a long lane takes turns with others.
	indexSteps = 25
	// callsBehind is how many messages before a lane's own ones, or before a batch, are searched for the call
	// of a result.
	callsBehind = 32
	// sampleShare and fewShare are how many documents there are for each one in the larger and the smaller
	// sample. search_within uses the same figures.
	sampleShare = 64
	fewShare    = 1024
)

// The statements of the index.
const (
	// The lanes that a process claims for indexing: first the longest waiting one of each workspace, then the
	// second of each, and so on, including those being indexed. A workspace with a long queue therefore
	// delays others by at most one lane at a time.
	sqlClaim = `WITH RECURSIVE busy AS (
			(SELECT workspace_id FROM archive_unindexed ORDER BY workspace_id LIMIT 1)
			UNION ALL
			SELECT (SELECT u.workspace_id FROM archive_unindexed u WHERE u.workspace_id > busy.workspace_id ORDER BY u.workspace_id LIMIT 1)
			FROM busy WHERE busy.workspace_id IS NOT NULL
		), lines AS MATERIALIZED (
			SELECT u.workspace_id, u.lane_id, u.since, u.turn FROM busy CROSS JOIN LATERAL (
				SELECT workspace_id, lane_id, since, claimed_until, row_number() OVER (ORDER BY since, lane_id) AS turn FROM (
					SELECT workspace_id, lane_id, since, claimed_until FROM archive_unindexed WHERE workspace_id = busy.workspace_id ORDER BY since, lane_id LIMIT $1::int + $3::int
				) oldest
			) u WHERE u.claimed_until IS NULL OR u.claimed_until <= now()
			ORDER BY u.turn, u.since, u.lane_id LIMIT $1::int
		), free AS MATERIALIZED (
			SELECT u.workspace_id, u.lane_id FROM lines CROSS JOIN LATERAL (
				SELECT workspace_id, lane_id FROM archive_unindexed WHERE workspace_id = lines.workspace_id AND lane_id = lines.lane_id
					AND (claimed_until IS NULL OR claimed_until <= now()) FOR NO KEY UPDATE SKIP LOCKED
			) u
		)
		UPDATE archive_unindexed u SET claimed_until = now() + make_interval(secs => $2) FROM free
		WHERE u.workspace_id = free.workspace_id AND u.lane_id = free.lane_id
		RETURNING u.workspace_id, u.lane_id`
	// Failed lanes go to the end of the queue, so the oldest may be anywhere in it. The limit keeps a long
	// queue cheap to check.
	sqlWaitsSince = `SELECT min(waits_since) FROM (SELECT waits_since FROM archive_unindexed ORDER BY since LIMIT 10000) waiting`
	// Whether lanes of a workspace have waited since a time or earlier, and that time; by default the
	// database's current time.
	sqlBehind = `SELECT EXISTS (SELECT 1 FROM archive_unindexed WHERE workspace_id = $1 AND waits_since <= asked.at), asked.at
		FROM (SELECT coalesce($2::timestamptz, clock_timestamp()) AS at) asked`
	// Lanes indexed up to a write leave the queue, unless they have been written to since. Those, and lanes
	// with the number 0, become free for the next claim.
	sqlIndexed = `WITH claimed AS MATERIALIZED (
			SELECT t.lane_id, u.number = t.number AS done FROM unnest($2::uuid[], $3::bigint[]) AS t (lane_id, number)
			CROSS JOIN LATERAL (SELECT number FROM archive_unindexed WHERE workspace_id = $1 AND lane_id = t.lane_id FOR UPDATE) u
		), gone AS (
			DELETE FROM archive_unindexed u USING claimed WHERE u.workspace_id = $1 AND u.lane_id = claimed.lane_id AND claimed.done
		)
		UPDATE archive_unindexed u SET claimed_until = NULL FROM claimed
		WHERE u.workspace_id = $1 AND u.lane_id = claimed.lane_id AND NOT claimed.done AND u.claimed_until IS NOT NULL`
	sqlFree  = `UPDATE archive_unindexed SET claimed_until = NULL WHERE workspace_id = $1 AND lane_id = $2 AND claimed_until IS NOT NULL`
	sqlLater = `UPDATE archive_unindexed SET since = now(), claimed_until = NULL WHERE workspace_id = $1 AND lane_id = $2`
	sqlLines = `SELECT l.id, l.session_id, s.api_key_id, s.format, coalesce(i.position, l.fork_at), coalesce(u.number, 0),
			greatest(l.chain_messages - coalesce(i.position, l.fork_at), 0)
		FROM unnest($2::uuid[]) AS wanted (id)
		CROSS JOIN LATERAL (SELECT id, session_id, fork_at, chain_messages FROM lanes WHERE workspace_id = $1 AND id = wanted.id OFFSET 0) l
		CROSS JOIN LATERAL (SELECT api_key_id, format FROM sessions WHERE workspace_id = $1 AND id = l.session_id OFFSET 0) s
		LEFT JOIN LATERAL (SELECT position FROM archive_indexed WHERE workspace_id = $1 AND lane_id = l.id OFFSET 0) i ON true
		LEFT JOIN LATERAL (SELECT number FROM archive_unindexed WHERE workspace_id = $1 AND lane_id = l.id OFFSET 0) u ON true`
	sqlDocuments = `INSERT INTO archive_documents (workspace_id, lane_id, first, part, after, session_id, api_key_id, at, sampled, terms)
		SELECT $1, lane_id, first, part, after, session_id, api_key_id, at, sampled, terms::bigint[]
		FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::int[], $6::int[], $7::int[], $8::timestamptz[], $9::smallint[], $10::text[])
			AS t (lane_id, session_id, api_key_id, first, part, after, at, sampled, terms)
		ON CONFLICT (workspace_id, lane_id, first, part) DO UPDATE SET after = excluded.after, at = excluded.at, terms = excluded.terms
			WHERE archive_documents.terms <> excluded.terms`
	sqlPosition = `INSERT INTO archive_indexed (workspace_id, lane_id, position)
		SELECT $1, lane_id, position FROM unnest($2::uuid[], $3::int[]) AS t (lane_id, position)
		ON CONFLICT (workspace_id, lane_id) DO UPDATE SET position = greatest(archive_indexed.position, excluded.position)`
)

// Parse parses an archived message of a wire format.
type Parse func(format conversation.Format, raw []byte) (conversation.Message, error)

// Index is the search index of all workspaces' archives. The database holds hashes of terms and not their
// text.
type Index struct {
	archive *DB
	parse   Parse

	embeddings *embeddings // nil for text search only
}

// NewIndex returns the index of an archive, whose keys it uses to hash terms.
func NewIndex(originals *DB, parse Parse) *Index {
	return &Index{archive: originals, parse: parse}
}

// WaitsSince returns the time since which the oldest lane has waited to be indexed, or the zero time if the
// queue is empty.
func (x *Index) WaitsSince(ctx context.Context) (time.Time, error) {
	return waitsSince(ctx, x.archive.runner, sqlWaitsSince)
}

// Behind reports whether messages that a workspace archived up to a time are not indexed yet. The zero time
// means now. asOf is that time, by the clock of the database.
func (x *Index) Behind(ctx context.Context, workspace tenants.WorkspaceID, upTo time.Time) (behind bool, asOf time.Time, err error) {
	asked := sql.NullTime{Time: upTo, Valid: !upTo.IsZero()}
	err = batchdb.Row(ctx, batchdb.Of(x.archive.runner, workspace), sql.ErrNoRows, []any{&behind, &asOf}, sqlBehind, workspace, asked)
	return behind, asOf, batchdb.Wrapf(err, "see what is not indexed yet")
}

// waitsSince returns the time from a statement across workspaces, or the zero time for NULL.
func waitsSince(ctx context.Context, runner batchdb.TxRunner, statement string) (time.Time, error) {
	var since sql.NullTime
	err := batchdb.Row(ctx, runner.AsWorker, sql.ErrNoRows, []any{&since}, statement)
	return since.Time, batchdb.Wrapf(err, "find what has waited longest")
}

// hasher hashes terms. It is not safe for concurrent use.
type hasher struct{ keyed hash.Hash }

// hashBytes is the size of a hash in the database.
const hashBytes = 8

func newHasher(key []byte) (*hasher, error) {
	keyed, err := blake2b.New(hashBytes, key)
	if err != nil {
		return nil, fmt.Errorf("key of the terms: %w", err)
	}
	return &hasher{keyed: keyed}, nil
}

// term returns the hash of a term, with its two lowest bits free for a level.
func (h *hasher) term(text string) int64 {
	h.keyed.Reset()
	_, _ = h.keyed.Write([]byte(text))
	var sum [hashBytes]byte
	return int64(binary.LittleEndian.Uint64(h.keyed.Sum(sum[:0])) &^ (search.Levels - 1)) //nolint:gosec // all bits are wanted
}

// terms returns the hashes of terms with their levels.
func (h *hasher) terms(terms []search.Term) []int64 {
	hashes := make([]int64, len(terms))
	for i, term := range terms {
		hashes[i] = h.term(term.Text) | int64(term.Level)
	}
	return hashes
}

const (
	// claimFor is how long a process may claim a lane. After that, others may index the rest.
	claimFor = 2 * time.Minute
	// claimAhead bounds how many claimed lanes of a workspace a claim skips, in addition to the number that
	// it takes.
	claimAhead = 512
	// freeTimeout bounds releasing a lane after cancellation.
	freeTimeout = 5 * time.Second
	// groupLanes is the maximum number of lanes that are read and stored together. Most have one or two new
	// messages, for which planning the statements and the commit would take longer than the work.
	groupLanes = 64
	// indexWorkers is how many groups of lanes one process indexes in parallel.
	indexWorkers = 4
)

// IndexPending indexes up to limit lanes with unindexed messages and returns the number of messages.
// Workspaces take turns, and in each the longest waiting lane comes first. Lanes are claimed, so that
// concurrent processes index different lanes. The claims of a killed process end after two minutes. A failing
// lane goes to the end of the queue while the others continue, and the failures are returned.
func (x *Index) IndexPending(ctx context.Context, limit int) (int, error) {
	groups, err := x.claim(ctx, limit)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	total, failures := 0, []error(nil)
	var workers errgroup.Group
	workers.SetLimit(indexWorkers)
	for _, group := range groups {
		workers.Go(func() error {
			done, err := x.indexGroup(ctx, group)
			mu.Lock()
			defer mu.Unlock()
			total += done
			if err != nil {
				failures = append(failures, err)
			}
			return nil
		})
	}
	_ = workers.Wait()
	return total, errors.Join(failures...)
}

// laneGroup is lanes of one workspace.
type laneGroup struct {
	workspace tenants.WorkspaceID
	lanes     []uuid.UUID
}

// claim claims up to limit lanes. It divides them into groups of at most a worker's share, so that the lanes
// of one workspace are also indexed in parallel.
func (x *Index) claim(ctx context.Context, limit int) ([]laneGroup, error) {
	of := map[tenants.WorkspaceID][]uuid.UUID{}
	var order []tenants.WorkspaceID // the turns of the workspaces
	err := batchdb.ForEach(ctx, x.archive.runner.AsWorker, func(row pgx.CollectableRow) error {
		var workspace tenants.WorkspaceID
		var lane uuid.UUID
		if err := row.Scan(&workspace, &lane); err != nil {
			return err
		}
		if of[workspace] == nil {
			order = append(order, workspace)
		}
		of[workspace] = append(of[workspace], lane)
		return nil
	}, sqlClaim, limit, claimFor.Seconds(), claimAhead)
	if err != nil {
		return nil, fmt.Errorf("claim lanes to be indexed: %w", err)
	}
	var groups []laneGroup
	for _, workspace := range order {
		for lanes := range slices.Chunk(of[workspace], groupLanes) {
			groups = append(groups, laneGroup{workspace, lanes})
		}
	}
	return groups, nil
}

// indexGroup indexes claimed lanes: their first steps together, and then the rest of longer ones. If they
// cannot be indexed together, it indexes each lane alone.
func (x *Index) indexGroup(ctx context.Context, group laneGroup) (done int, err error) {
	rest := group.lanes
	if works, err := x.open(ctx, group.workspace, group.lanes...); err == nil {
		rest = slices.DeleteFunc(rest, func(lane uuid.UUID) bool { // the remaining ones were deleted
			return slices.ContainsFunc(works, func(w *laneWork) bool { return w.lane == lane })
		})
		for len(works) > 0 {
			some := together(works)
			stored, left := x.firstSteps(ctx, group.workspace, works[:some])
			done += stored
			rest = append(rest, left...)
			works = works[some:]
		}
	}
	var failures []error
	for _, lane := range rest {
		work, err := x.openOne(ctx, group.workspace, lane)
		if err == nil {
			var more int
			more, err = work.run(ctx, indexSteps)
			done += more
		}
		if err != nil {
			failures = append(failures, x.failed(ctx, group.workspace, lane, err))
		}
	}
	return done, errors.Join(failures...)
}

// together returns how many of the first lanes have about as many messages as one batch.
func together(works []*laneWork) int {
	some, messages := 0, 0
	for some < len(works) && (some == 0 || messages+works[some].about <= indexBatch) {
		messages += works[some].about
		some++
	}
	return some
}

// firstSteps indexes the first steps of lanes together. It returns the number of messages and the lanes with
// more: all of them if it failed.
func (x *Index) firstSteps(ctx context.Context, workspace tenants.WorkspaceID, works []*laneWork) (done int, left []uuid.UUID) {
	spans, all := make([]Span, len(works)), make([]uuid.UUID, len(works))
	for i, w := range works {
		spans[i], all[i] = Span{Lane: w.lane, From: w.position, To: w.position + indexBatch}, w.lane
	}
	entries, err := x.archive.Spans(ctx, workspace, spans)
	if err != nil {
		return 0, all
	}
	steps := make([]step, len(works))
	for i, w := range works {
		if steps[i], err = w.step(ctx, entries[i]); err != nil {
			return 0, all
		}
	}
	if x.store(ctx, workspace, steps...) != nil {
		return 0, all
	}
	for _, first := range steps {
		done += first.done
		if !first.last {
			left = append(left, first.lane)
		}
	}
	return done, left
}

// Index indexes the unindexed messages of a lane and returns how many. A call without its result waits for
// it. Indexing a message twice has no effect.
func (x *Index) Index(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (done int, err error) {
	work, err := x.openOne(ctx, workspace, lane)
	if err == nil {
		done, err = work.run(ctx, 1<<30)
	}
	return done, batchdb.Wrapf(err, "index lane %s", lane)
}

func (x *Index) exec(ctx context.Context, workspace tenants.WorkspaceID, statement string, arguments ...any) error {
	_, err := batchdb.Changed(ctx, batchdb.Of(x.archive.runner, workspace), statement, arguments...)
	return err
}
