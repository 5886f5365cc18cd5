package tenantsdb

import (
	"context"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// ReplicationLags returns how far each standby of the database is behind. What the database
// does not tell its owner, who needs pg_monitor for that, is left out.
func (db *DB) ReplicationLags(ctx context.Context) ([]tenants.ReplicationLag, error) {
	var lags []tenants.ReplicationLag
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT standby, seconds, bytes FROM replication_lags() WHERE bytes IS NOT NULL ORDER BY standby").Scan(&lags).Error
	})
	return lags, batchdb.Wrapf(err, "read the replication lag")
}
