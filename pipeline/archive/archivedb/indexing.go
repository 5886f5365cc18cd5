package archivedb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
)

// indexing is one look at the lanes that wait to be indexed. Most of them have a message or
// two that are new: their first steps are stored together, because a commit that is
// flushed to disk takes longer than such a step.
type indexing struct {
	*Index

	steps    []step // of lanes of one workspace, not stored yet
	messages int    // of those steps
	bytes    int    // of their documents

	done    int
	failure error // of the first lane that failed
}

// add indexes a lane, but for what flush stores later. It returns the errors that end
// the look.
func (x *indexing) add(ctx context.Context, one waitingLane) error {
	if x.messages >= indexBatch || x.bytes >= indexBytes || len(x.steps) > 0 && x.steps[0].workspace != one.workspace {
		if err := x.flush(ctx); err != nil {
			return err
		}
	}
	work, err := x.open(ctx, one.workspace, one.lane)
	if err != nil {
		return x.failed(ctx, one, err)
	}
	first, err := work.next(ctx)
	if err != nil {
		return x.failed(ctx, one, err)
	}
	x.steps, x.messages = append(x.steps, first), x.messages+first.done
	for _, terms := range first.rows.terms {
		x.bytes += len(terms)
	}
	return nil
}

// flush stores the steps, and goes on with the lanes that have more; where the steps
// cannot be stored together, with each lane alone.
func (x *indexing) flush(ctx context.Context) error {
	steps := x.steps
	x.steps, x.messages, x.bytes = nil, 0, 0
	if len(steps) == 0 {
		return nil
	}
	// Who archives locks the same rows, in the same order.
	slices.SortFunc(steps, func(a, b step) int { return bytes.Compare(a.lane[:], b.lane[:]) })
	areStored := x.store(ctx, steps[0].workspace, steps...) == nil
	for _, first := range steps {
		if areStored {
			x.done += first.done
			if first.last {
				continue
			}
		}
		more, err := first.run(ctx)
		x.done += more
		if err == nil {
			continue
		}
		if err := x.failed(ctx, waitingLane{first.workspace, first.lane}, err); err != nil {
			return err
		}
	}
	return nil
}

// failed puts a lane to the end of the queue.
func (x *indexing) failed(ctx context.Context, one waitingLane, err error) error {
	err = fmt.Errorf("index lane %s: %w", one.lane, err)
	if ctx.Err() != nil {
		return err
	}
	if x.failure == nil {
		x.failure = err
	}
	if later := x.exec(ctx, one.workspace, sqlLater, one.workspace, one.lane); later != nil {
		return errors.Join(x.failure, later)
	}
	return nil
}
