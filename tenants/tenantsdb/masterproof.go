package tenantsdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// KeepMasterProof stores the proof of a database's master key and returns the stored one, which differs if
// one existed. It uses the owner's login because no other is available yet at startup.
func KeepMasterProof(ctx context.Context, ownerURL string, proof []byte) ([]byte, error) {
	var kept []byte
	err := asOwner(ctx, ownerURL, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO master_proof (sealed) VALUES ($1) ON CONFLICT DO NOTHING", proof); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT sealed FROM master_proof").Scan(&kept)
	})
	return kept, batchdb.Wrapf(err, "keep proof of the master key")
}

// StoredMasterProof returns the stored proof; nil before the first start. It only reads, with the owner's
// login.
func StoredMasterProof(ctx context.Context, ownerURL string) ([]byte, error) {
	var kept []byte
	err := asOwner(ctx, ownerURL, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT sealed FROM master_proof").Scan(&kept)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return kept, batchdb.Wrapf(err, "read proof of the master key")
}

// MasterProof returns the proof of the database's master key, or tenants.ErrNotFound.
func (db DataKeys) MasterProof(ctx context.Context) ([]byte, error) {
	var proofs [][]byte
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT sealed FROM master_proof").Scan(&proofs).Error
	})
	proof, err := batchdb.First(proofs, err, tenants.ErrNotFound)
	return proof, batchdb.Wrapf(err, "read proof of the master key")
}

// ResealMasterProof replaces the proof, unless it has been replaced already.
func (db DataKeys) ResealMasterProof(ctx context.Context, old, sealed []byte) error {
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE master_proof SET sealed_at = now(), sealed = ? WHERE sealed = ?", sealed, old).Error
	})
	return batchdb.Wrapf(err, "replace proof of the master key")
}

// asOwner runs a transaction with the owner's login. Most policies apply to it as well.
func asOwner(ctx context.Context, ownerURL string, work func(tx pgx.Tx) error) error {
	connection, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return fmt.Errorf("connect as the database's owner: %w", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	return pgx.BeginFunc(ctx, connection, work)
}
