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
	// claimFor is how long a lane is one process's: what is not indexed by then, others may do.
	claimFor = 2 * time.Minute
	// claimAhead is how many claimed lanes of a workspace a claim looks past at most, beside as
	// many as it takes.
	claimAhead = 512
	// freeTimeout bounds giving a lane back when the work is ended.
	freeTimeout = 5 * time.Second
	// groupLanes is how many lanes are read and stored together at most: most have a message or
	// two that are new, and planning the statements and the commit take longer than those.
	groupLanes = 64
	// indexWorkers is how many groups of lanes one process works on at once.
	indexWorkers = 4
)

// IndexPending indexes up to limit lanes that have messages which are not indexed, and
// returns how many messages it took. Workspaces take turns; in each, what waits longest goes
// first. Lanes are claimed, so that processes that do this at once do different lanes; what a
// killed process had claimed is free again after two minutes. A lane that fails goes to the
// end of the queue, the others go on, and the failures are returned.
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

// claim claims up to limit lanes. No group has more than its share of the workers' time, so
// that the lanes of one workspace are indexed in parallel, too.
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

// indexGroup indexes claimed lanes: their first steps together, and then the rest of those
// that have more. Where they cannot be indexed together, each lane is alone.
func (x *Index) indexGroup(ctx context.Context, group laneGroup) (done int, err error) {
	rest := group.lanes
	if works, err := x.open(ctx, group.workspace, group.lanes...); err == nil {
		rest = slices.DeleteFunc(rest, func(lane uuid.UUID) bool { // what is left is gone
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

// together returns how many of the first of some lanes have about as many messages as one batch.
func together(works []*laneWork) int {
	some, messages := 0, 0
	for some < len(works) && (some == 0 || messages+works[some].about <= indexBatch) {
		messages += works[some].about
		some++
	}
	return some
}

// firstSteps indexes the first steps of lanes together. It returns how many messages that
// were, and the lanes that have more: all of them if it failed.
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

// Index indexes the messages of a lane that are not indexed yet and returns how many
// it took. A call whose result is still to come waits for it. What is indexed twice is
// there once.
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
