package vault

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/tenants"
)

// aboutProof is what the proof of a database is bound to, and all that it holds.
const aboutProof = "master key of this database"

// ProofStore keeps the proof of a database.
type ProofStore interface {
	// MasterProof returns tenants.ErrNotFound where no start has left one yet.
	MasterProof(ctx context.Context) ([]byte, error)

	// ResealMasterProof replaces the proof, unless it has been replaced already.
	ResealMasterProof(ctx context.Context, old, sealed []byte) error
}

// Proof returns bytes by which OpensProof knows the master key again.
func (v *Vault) Proof() ([]byte, error) { return v.SealAbout(aboutProof, aboutProof) }

// OpensProof returns ErrSealedElsewhere if none of the master keys has made a proof.
func (v *Vault) OpensProof(proof []byte) error {
	_, _, err := v.OpenAbout(aboutProof, proof)
	return err
}

// ResealProof does for the proof what ResealAll does for provider keys, and reports
// whether that was needed.
func (v *Vault) ResealProof(ctx context.Context, store ProofStore) (bool, error) {
	needed, err := v.resealProof(ctx, store)
	if err != nil {
		return false, fmt.Errorf("reseal proof of the master key: %w", err)
	}
	return needed, nil
}

func (v *Vault) resealProof(ctx context.Context, store ProofStore) (bool, error) {
	proof, err := store.MasterProof(ctx)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, newest, err := v.OpenAbout(aboutProof, proof)
	if err != nil || newest {
		return false, err
	}
	sealed, err := v.Proof()
	if err != nil {
		return false, err
	}
	return true, store.ResealMasterProof(ctx, proof, sealed)
}
