package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	// peersTimeout bounds how long a prompt waits for Redis.
	peersTimeout = 100 * time.Millisecond
	// peersKeep is how long Redis keeps a waiting epoch for other processes. By then it is in the store, or
	// the store has been away for so long that providers' caches have expired.
	peersKeep = 10 * time.Minute
	// peersKeepStored is how long Redis keeps a stored epoch: longer than a process treats the store as away
	// after one late answer.
	peersKeepStored = 30 * time.Second
)

// peersPut keeps an epoch unless the lane has one that takes precedence. KEYS: the lane. ARGV: the number,
// the epoch, milliseconds to keep it, the lowest number that takes precedence.
const peersPut = `
if tonumber(redis.call('HGET', KEYS[1], 'number') or '0') >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], 'number', ARGV[1], 'epoch', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`

// Peers offers epochs and inserts to all processes through Redis, so that they send the same prompts while
// the store is away for all or some of them. The content is sealed with the key of its workspace.
type Peers struct {
	client redis.UniversalClient
	put    *redis.Script
	away   *session.Outage
	within time.Duration // for Redis to answer
}

// NewPeers returns Peers on a Redis server.
func NewPeers(client redis.UniversalClient, now func() time.Time) *Peers {
	return &Peers{client: client, put: redis.NewScript(peersPut), away: session.NewOutage(now), within: peersTimeout}
}

// offer offers an epoch to all processes, unless there is a newer one or one with the same number. The first
// waiting epoch with a number is valid for all processes, but a stored one replaces it. An error says that
// Redis does not answer.
func (p *Peers) offer(ctx context.Context, key *archive.Key, workspace tenants.WorkspaceID, lane uuid.UUID, projection session.Projection, isStored bool) error {
	keep, stays := peersKeep, projection.Number
	if isStored {
		keep, stays = peersKeepStored, projection.Number+1
	}
	packed, err := pack(contentOf(session.Update{}, projection))
	if err != nil {
		return err
	}
	sealed := key.Seal(aboutOffer(lane, projection.Number), packed)
	err = p.ask(ctx, func(ctx context.Context) error {
		return p.put.Run(ctx, p.client, []string{placeOf(workspace, lane)}, projection.Number, sealed, keep.Milliseconds(), stays).Err()
	})
	if err != nil {
		return fmt.Errorf("offer an epoch: %w", err)
	}
	return nil
}

// shown returns the newest epoch and the inserts that processes have offered of a lane.
func (p *Peers) shown(ctx context.Context, key *archive.Key, workspace tenants.WorkspaceID, lane uuid.UUID) (session.Shown, error) {
	var epoch, inserts *redis.MapStringStringCmd
	err := p.ask(ctx, func(ctx context.Context) error {
		_, err := p.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			epoch, inserts = pipe.HGetAll(ctx, placeOf(workspace, lane)), pipe.HGetAll(ctx, insertsOf(workspace, lane))
			return nil
		})
		return err
	})
	if err != nil {
		return session.Shown{}, fmt.Errorf("look for what others show of a lane: %w", err)
	}
	var found struct {
		Number int    `redis:"number"`
		Epoch  []byte `redis:"epoch"`
	}
	if err := epoch.Scan(&found); err != nil {
		return session.Shown{}, fmt.Errorf("read an epoch: %w", err)
	}
	var shown session.Shown
	if found.Number > 0 {
		packed, err := key.Open(aboutOffer(lane, found.Number), found.Epoch)
		if err != nil {
			return session.Shown{}, fmt.Errorf("open an epoch: %w", err)
		}
		held, err := unpack(packed)
		if err != nil {
			return session.Shown{}, err
		}
		shown.Projection = &held.Projection
	}
	shown.Inserts, err = openInserts(key, lane, inserts.Val())
	return shown, err
}

// ask runs a query on Redis, unless Redis was away a moment ago.
func (p *Peers) ask(ctx context.Context, question func(ctx context.Context) error) error {
	if p.away.Lasts() {
		return session.ErrAway
	}
	asking, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	err := question(asking)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(session.ErrAway, err)
	}
	p.away.Note(err)
	return err
}

func placeOf(workspace tenants.WorkspaceID, lane uuid.UUID) string {
	return "palimpsest:epoch:" + workspace.String() + ":" + lane.String()
}

// aboutOffer binds a sealed epoch to its place.
func aboutOffer(lane uuid.UUID, number int) []byte {
	return binary.BigEndian.AppendUint64(append([]byte("offer "), lane[:]...), uint64(number)) //nolint:gosec // counts from 1
}
