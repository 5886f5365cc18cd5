package archivedb

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cores"
	"palimpsest/tenants"
)

const (
	// gapBytes is the largest gap between two originals of a segment that are read in one request, because
	// another request would take longer.
	gapBytes = 64 << 10
	// rangeBytes bounds the size of one read, except its last original.
	rangeBytes = 8 << 20
)

// storedBytes is a stored message and the result of reading it.
type storedBytes struct {
	hash    conversation.Hash
	size    int // of the message
	form    encoding
	place   place
	segment uuid.NullUUID
	start   int // in the segment
	length  int
	bytes   []byte // in stored form; nil until they are read or fetched

	raw    []byte
	damage error // archive.ErrDamaged with details; nil if sound
}

// originals reads stored messages, each verified by its hash or with its damage.
func (d *DB) originals(ctx context.Context, workspace tenants.WorkspaceID, stored []*storedBytes) error {
	key, err := d.keys.Key(ctx, workspace)
	if err != nil {
		return err
	}
	if err := fetch(ctx, d.bucket, key, workspace, stored); err != nil {
		return err
	}
	return cores.Each(len(stored), runObjects, func(i int) error {
		one := stored[i]
		if one.damage != nil {
			return nil //nolint:nilerr // that message alone is damaged
		}
		var err error
		one.raw, err = d.packer.restore(key, one.form, one.bytes, one.hash, one.size)
		if errors.Is(err, archive.ErrDamaged) {
			one.damage, err = err, nil
		}
		return err
	})
}

// fetch reads bytes from the bucket, adjacent ones of a segment together.
func fetch(ctx context.Context, bucket archive.Bucket, key *archive.Key, workspace tenants.WorkspaceID, stored []*storedBytes) error {
	stored = slices.DeleteFunc(slices.Clone(stored), func(one *storedBytes) bool { return one.place == here })
	if len(stored) == 0 {
		return nil
	}
	if bucket == nil {
		return errNoBucket
	}
	slices.SortFunc(stored, func(a, b *storedBytes) int {
		return cmp.Or(bytes.Compare(a.segment.UUID[:], b.segment.UUID[:]), cmp.Compare(a.start, b.start))
	})
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchesAtOnce)
	for len(stored) > 0 {
		first, end, count := stored[0], stored[0].start+stored[0].length, 1
		for count < len(stored) {
			next := stored[count]
			if next.segment != first.segment || next.start > end+gapBytes || end-first.start >= rangeBytes {
				break
			}
			end = max(end, next.start+next.length)
			count++
		}
		neighbors := stored[:count]
		stored = stored[count:]
		group.Go(func() error {
			return fetchNeighbors(ctx, bucket, segmentName(key, workspace, first.segment.UUID), neighbors, end)
		})
	}
	return group.Wait()
}

// rangeTimeout bounds reading a part of a segment. A bucket that accepts requests but sends nothing counts as
// away.
const rangeTimeout = 10 * time.Second

// fetchNeighbors reads adjacent originals of a segment, which end at end.
func fetchNeighbors(ctx context.Context, bucket archive.Bucket, name string, neighbors []*storedBytes, end int) error {
	start := neighbors[0].start
	reading, cancel := context.WithTimeout(ctx, rangeTimeout)
	defer cancel()
	content, err := bucket.Range(reading, name, start, end-start)
	if errors.Is(err, archive.ErrNotFound) {
		err = fmt.Errorf("%w: the bucket has lost them", archive.ErrDamaged)
	}
	switch {
	case errors.Is(err, archive.ErrDamaged) && len(neighbors) > 1: // a prefix may be intact
		for _, one := range neighbors {
			if err := fetchNeighbors(ctx, bucket, name, []*storedBytes{one}, one.start+one.length); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, archive.ErrDamaged):
		neighbors[0].damage = err
		return nil
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("read bucket: %w: %w", archive.ErrAway, err)
	case err != nil:
		return fmt.Errorf("read bucket: %w", err)
	}
	for _, one := range neighbors {
		one.bytes = content[one.start-start : one.start-start+one.length]
	}
	return nil
}

// sqlSizes reads the sizes of a lane's messages as two arrays, because transferring a row for each takes
// longer than reading it.
const sqlSizes = `SELECT array_agg(e.index ORDER BY e.index)::text, array_agg(e.tokens ORDER BY e.index)::text FROM lane_entries($1, $2, 0, $3) e`

// Sizes returns the o200k tokens of the first messages of a lane, by index; -1 for messages that the archive
// does not hold.
func (d *DB) Sizes(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, messages int) ([]int, error) {
	var indexes, tokens sql.NullString
	err := batchdb.Row(ctx, batchdb.Of(d.runner, workspace), sql.ErrNoRows, []any{&indexes, &tokens}, sqlSizes, workspace, lane, messages)
	sizes := slices.Repeat([]int{-1}, messages)
	if err == nil && indexes.Valid {
		err = fill(sizes, indexes.String, tokens.String)
	}
	return sizes, batchdb.Wrapf(err, "sizes of the messages of lane %s", lane)
}

// fill sets the sizes at the indexes, both given as Postgres arrays.
func fill(sizes []int, indexes, values string) error {
	for indexes, values = strings.Trim(indexes, "{}"), strings.Trim(values, "{}"); indexes != ""; {
		var index, value string
		index, indexes, _ = strings.Cut(indexes, ",")
		value, values, _ = strings.Cut(values, ",")
		at, err := strconv.Atoi(index)
		if err != nil {
			return err
		}
		if sizes[at], err = strconv.Atoi(value); err != nil {
			return err
		}
	}
	return nil
}
