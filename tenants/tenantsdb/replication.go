package tenantsdb

import (
	"context"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// ReplicationLags returns the lag of each standby of the database. It omits lags that the database hides from
// its owner, because reading them needs pg_monitor.
func (db *DB) ReplicationLags(ctx context.Context) ([]tenants.ReplicationLag, error) {
	var lags []tenants.ReplicationLag
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT standby, seconds, bytes FROM replication_lags() WHERE bytes IS NOT NULL ORDER BY standby").Scan(&lags).Error
	})
	return lags, batchdb.Wrapf(err, "read the replication lag")
}
