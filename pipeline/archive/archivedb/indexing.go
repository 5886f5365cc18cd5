package archivedb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

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
	err := x.archive.runner.AsWorker(ctx, func(tx *gorm.DB) error {
		return batchdb.Each(tx, func(row pgx.CollectableRow) error {
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
	})
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
	return x.archive.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, statement, arguments...)
		return err
	})
}
