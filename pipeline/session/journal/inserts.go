package journal

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// peersInserts is how many of a lane's newest inserts other processes find.
const peersInserts = 32

// Inject stores inserts as its Store does and offers them to other processes, because they may be unable to
// reach the store or learn of the inserts late.
func (j *Journal) Inject(ctx context.Context, update session.Update, inserts []session.Insert) error {
	if err := j.Store.Inject(ctx, update, inserts); err != nil || j.config.Peers == nil {
		return err
	}
	workspace := update.Scope.Workspace
	if key, err := j.config.Keys.Key(ctx, workspace); err == nil {
		_ = j.config.Peers.offerInserts(ctx, key, workspace, update.Lane, inserts) // if that fails, others find them in the store
	}
	return nil
}

// Withdraw removes inserts from the store as its Store does, and withdraws their offer.
func (j *Journal) Withdraw(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from int) error {
	if j.config.Peers != nil {
		_ = j.config.Peers.withdrawInserts(ctx, workspace, lane, from) // if that fails, the offer expires soon
	}
	return j.Store.Withdraw(ctx, workspace, lane, from)
}

// offerInserts offers stored inserts of a lane.
func (p *Peers) offerInserts(ctx context.Context, key *archive.Key, workspace tenants.WorkspaceID, lane uuid.UUID, inserts []session.Insert) error {
	fields := make(map[string]any, len(inserts))
	var gone []string
	for _, insert := range inserts {
		text, err := json.Marshal(insert)
		if err != nil {
			return fmt.Errorf("offer insert %d: %w", insert.Number, err)
		}
		fields[strconv.Itoa(insert.Number)] = key.Seal(aboutInsert(lane, insert.Number), text)
		gone = append(gone, strconv.Itoa(insert.Number-peersInserts))
	}
	place := insertsOf(workspace, lane)
	return p.ask(ctx, func(ctx context.Context) error {
		_, err := p.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.HSet(ctx, place, fields)
			pipe.HDel(ctx, place, gone...)
			pipe.PExpire(ctx, place, peersKeepStored)
			return nil
		})
		return err
	})
}

// withdrawInserts removes the offers of a lane's inserts from a number on.
func (p *Peers) withdrawInserts(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from int) error {
	gone := make([]string, peersInserts)
	for i := range gone {
		gone[i] = strconv.Itoa(from + i)
	}
	return p.ask(ctx, func(ctx context.Context) error { return p.client.HDel(ctx, insertsOf(workspace, lane), gone...).Err() })
}

// openInserts returns the inserts of a lane, by number, from the fields that offerInserts has set.
func openInserts(key *archive.Key, lane uuid.UUID, fields map[string]string) ([]session.Insert, error) {
	inserts := make([]session.Insert, 0, len(fields))
	for number, sealed := range fields {
		expected, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("number of an insert: %w", err)
		}
		text, err := key.Open(aboutInsert(lane, expected), []byte(sealed))
		if err != nil {
			return nil, fmt.Errorf("open insert %d: %w", expected, err)
		}
		var insert session.Insert
		if err := json.Unmarshal(text, &insert); err != nil {
			return nil, fmt.Errorf("read insert %d: %w", expected, err)
		}
		inserts = append(inserts, insert)
	}
	slices.SortFunc(inserts, func(a, b session.Insert) int { return cmp.Compare(a.Number, b.Number) })
	return inserts, nil
}

func insertsOf(workspace tenants.WorkspaceID, lane uuid.UUID) string {
	return "palimpsest:inserts:" + workspace.String() + ":" + lane.String()
}

// aboutInsert binds a sealed insert to its place.
func aboutInsert(lane uuid.UUID, number int) []byte {
	return binary.BigEndian.AppendUint64(append([]byte("insert "), lane[:]...), uint64(number)) //nolint:gosec // counts from 1
}
