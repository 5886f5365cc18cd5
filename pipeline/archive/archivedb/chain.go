package archivedb

import (
	"bytes"
	"context"
	"crypto/hmac"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// The statements that extend chains, in the transaction that stores the messages. A chain links the messages
// from index 0 to the first gap.
const (
	// Lanes and entries are looked up lane by lane, as in lane_entries.
	sqlChains = `SELECT l.id, l.forked, l.chain_messages, l.chain_link, l.chain_proof, e.index, e.hash
		FROM unnest($2::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
			SELECT id, parent_id IS NOT NULL AND chain_messages < fork_at AS forked, chain_messages, chain_link, chain_proof
			FROM lanes WHERE workspace_id = $1 AND id = wanted.id FOR NO KEY UPDATE
		) l LEFT JOIN LATERAL (
			SELECT index, hash FROM archive_entries
			WHERE workspace_id = $1 AND lane_id = l.id AND index >= l.chain_messages AND NOT l.forked OFFSET 0
		) e ON true
		ORDER BY l.id, e.index`
	// The first messages of a fork are stored with its parent lane.
	sqlForked = `SELECT t.id, e.index, e.hash
		FROM unnest($2::uuid[], $3::int[]) AS t (id, messages) CROSS JOIN LATERAL lane_entries($1, t.id, t.messages, 2147483647) AS e
		ORDER BY t.id, e.index`
	// An update would join the lanes and might read the whole workspace. Instead each lane is looked up and
	// its row proposed for insertion. It is never inserted, because it exists and is locked.
	sqlLinked = `INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at, chain_messages, chain_link, chain_proof)
		SELECT $1, t.id, l.session_id, l.created_at, l.last_at, t.messages, t.link, t.proof
		FROM unnest($2::uuid[], $3::int[], $4::bytea[], $5::bytea[]) AS t (id, messages, link, proof)
		CROSS JOIN LATERAL (SELECT session_id, created_at, last_at FROM lanes WHERE workspace_id = $1 AND id = t.id OFFSET 0) l
		ON CONFLICT (workspace_id, id) DO UPDATE SET
			chain_messages = excluded.chain_messages, chain_link = excluded.chain_link, chain_proof = excluded.chain_proof`
	sqlHead = `SELECT chain_messages, chain_link, chain_proof FROM lanes WHERE workspace_id = $1 AND id = $2`
)

// Head returns the head of a lane's chain. It returns archive.ErrNotFound for an unknown lane, and
// archive.ErrDamaged if the stored chain was changed without the workspace's key.
func (d *DB) Head(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (archive.Head, error) {
	key, err := d.keys.Key(ctx, workspace)
	if err != nil {
		return archive.Head{}, err
	}
	var chain chain
	err = batchdb.Row(ctx, batchdb.Of(d.runner, workspace), archive.ErrNotFound, []any{&chain.messages, &chain.link, &chain.proof}, sqlHead, workspace, lane)
	if err != nil {
		return archive.Head{}, fmt.Errorf("chain of lane %s: %w", lane, err)
	}
	chain.lane = lane
	head, err := chain.head(key)
	return head, batchdb.Wrapf(err, "chain of lane %s", lane)
}

// chain is a lane's stored chain and the entries that follow it.
type chain struct {
	lane     uuid.UUID
	forked   bool // it has not reached the place where the lane forked off yet
	messages int
	link     []byte
	proof    []byte

	following []link
}

// link is an entry that may extend a chain.
type link struct {
	index int
	hash  conversation.Hash
}

// head returns the stored head, verified with the key.
func (c *chain) head(key *archive.Key) (archive.Head, error) {
	if c.link == nil && c.messages == 0 {
		return archive.NewHead(), nil
	}
	if len(c.link) != len(conversation.Hash{}) {
		return archive.Head{}, fmt.Errorf("%w: its link has %d bytes", archive.ErrDamaged, len(c.link))
	}
	head := archive.Head{Messages: c.messages, Link: conversation.Hash(c.link)}
	if !hmac.Equal(c.proof, proofOf(key, c.lane, head)) {
		return archive.Head{}, fmt.Errorf("%w: its proof is another's", archive.ErrDamaged)
	}
	return head, nil
}

// proofOf returns the proof of a lane's head. It cannot be made with write access to the database alone,
// since it requires the key.
func proofOf(key *archive.Key, lane uuid.UUID, head archive.Head) []byte {
	about := append([]byte("chain "), lane[:]...)
	about = binary.BigEndian.AppendUint64(about, uint64(head.Messages)) //nolint:gosec // a count
	return key.Proof(append(about, head.Link[:]...))
}

// lanesOf returns the lanes of some runs, sorted and without duplicates.
func lanesOf(runs []Run) [][16]byte {
	lanes := make([][16]byte, len(runs))
	for i := range runs {
		lanes[i] = runs[i].Lane
	}
	slices.SortFunc(lanes, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(lanes)
}

// extendChains links new messages in some lanes. A chain with an invalid proof stays unchanged: it blocks
// nothing, and a check of the lane reports it.
func (d *DB) extendChains(tx *gorm.DB, workspace tenants.WorkspaceID, lanes [][16]byte) error {
	key, err := d.keys.Key(tx.Statement.Context, workspace)
	if err != nil {
		return err
	}
	chains, err := chainsOf(tx, workspace, lanes)
	if err != nil {
		return fmt.Errorf("read chains: %w", err)
	}
	if err := readForked(tx, workspace, chains); err != nil {
		return fmt.Errorf("read chains of forks: %w", err)
	}
	var (
		ids           [][16]byte
		messages      []int32
		links, proofs [][]byte
	)
	for i := range chains {
		chain := &chains[i]
		head, err := chain.head(key)
		if err != nil {
			continue
		}
		for _, next := range chain.following {
			if next.index != head.Messages {
				break
			}
			head = head.Extend(next.hash)
		}
		if head.Messages == chain.messages && chain.link != nil {
			continue
		}
		ids, messages = append(ids, chain.lane), append(messages, int32(head.Messages)) //nolint:gosec // messages of one lane
		links, proofs = append(links, head.Link[:]), append(proofs, proofOf(key, chain.lane, head))
	}
	if len(ids) == 0 {
		return nil
	}
	return batchdb.Later(tx, sqlLinked, workspace, ids, messages, links, proofs)
}

func chainsOf(tx *gorm.DB, workspace tenants.WorkspaceID, lanes [][16]byte) ([]chain, error) {
	var chains []chain
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var one chain
		var index sql.NullInt32
		var hash []byte
		if err := row.Scan(&one.lane, &one.forked, &one.messages, &one.link, &one.proof, &index, &hash); err != nil {
			return err
		}
		if len(chains) == 0 || chains[len(chains)-1].lane != one.lane {
			chains = append(chains, one)
		}
		if last := &chains[len(chains)-1]; index.Valid {
			last.following = append(last.following, link{index: int(index.Int32), hash: conversation.Hash(hash)})
		}
		return nil
	}, sqlChains, workspace, lanes)
	return chains, err
}

// readForked reads the next entries of forks' chains, for all of them at once, because nearly every request
// of a batch may have resent its newest message.
func readForked(tx *gorm.DB, workspace tenants.WorkspaceID, chains []chain) error {
	var (
		ids      [][16]byte
		messages []int32
		forked   = make(map[uuid.UUID]*chain)
	)
	for i := range chains {
		if chain := &chains[i]; chain.forked {
			ids, messages = append(ids, chain.lane), append(messages, int32(chain.messages)) //nolint:gosec // messages of one lane
			forked[chain.lane] = chain
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var lane uuid.UUID
		var next link
		var hash []byte
		if err := row.Scan(&lane, &next.index, &hash); err != nil {
			return err
		}
		next.hash = conversation.Hash(hash)
		forked[lane].following = append(forked[lane].following, next)
		return nil
	}, sqlForked, workspace, ids, messages)
}
