package archivedb_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
)

// E2: a chain is proven for its own lane. The chain of another lane of the workspace, or
// one of another workspace, is damage where it is copied to, though its proof is genuine.
func TestChainOfAnotherLaneIsNoProof(t *testing.T) {
	t.Parallel()
	f := setup(t)
	elsewhere := f.sibling(t)
	elsewhere.archive = f.archive
	same := *f
	same.lane = f.addLane(t, time.Now())
	for name, other := range map[string]*fixture{"of the workspace": &same, "of another workspace": elsewhere} {
		victim := *f
		victim.lane = f.addLane(t, time.Now())
		for index := range 3 {
			victim.put(t, entry(index, fmt.Appendf(nil, "%s: message %d", name, index)))
			if head, _ := f.archive.Head(t.Context(), other.workspace, other.lane); head.Messages <= index {
				other.put(t, entry(index, fmt.Appendf(nil, "%s: another message %d", name, index)))
			}
		}
		var messages int
		var link, proof []byte
		other.in(t, func(tx *gorm.DB) error {
			return tx.Raw("SELECT chain_messages, chain_link, chain_proof FROM lanes WHERE id = ?", other.lane).Row().Scan(&messages, &link, &proof)
		})
		if messages != 3 || len(proof) == 0 {
			t.Fatalf("lane %s: %d messages are linked, with a proof of %d bytes", name, messages, len(proof))
		}

		victim.in(t, func(tx *gorm.DB) error {
			return tx.Exec("UPDATE lanes SET chain_messages = ?, chain_link = ?, chain_proof = ? WHERE id = ?", messages, link, proof, victim.lane).Error
		})
		if head, err := f.archive.Head(t.Context(), victim.workspace, victim.lane); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("the chain of a lane %s is taken: %+v, %v", name, head, err)
		}
		if head, err := f.archive.Head(t.Context(), other.workspace, other.lane); err != nil || head.Messages != 3 {
			t.Errorf("the lane %s itself: %+v, %v", name, head, err)
		}
	}
}
