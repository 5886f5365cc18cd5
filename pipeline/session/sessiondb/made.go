package sessiondb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	sqlMadeInserts   = "SELECT module, count(*) FROM lane_inserts WHERE workspace_id = $1 AND put_at >= $2 GROUP BY module"
	sqlMadeSummaries = "SELECT status, count(*) FROM summaries WHERE workspace_id = $1 AND created_at >= $2 GROUP BY status"
)

// Made counts the inserts and summaries of a workspace's sessions since a moment.
func (s Browser) Made(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (session.Made, error) {
	made := session.Made{Inserts: map[string]int64{}}
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := counts(tx, made.Inserts, sqlMadeInserts, workspace, since); err != nil {
			return err
		}
		summaries := map[string]int64{}
		err := counts(tx, summaries, sqlMadeSummaries, workspace, since)
		made.Rejected = summaries["rejected"]
		made.Summaries = summaries["accepted"] + made.Rejected
		return err
	})
	return made, batchdb.Wrapf(err, "what modules made in workspace %s", workspace)
}

// counts reads rows of a name and a count.
func counts(tx *gorm.DB, into map[string]int64, query string, arguments ...any) error {
	return batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var name string
		var count int64
		if err := row.Scan(&name, &count); err != nil {
			return err
		}
		into[name] = count
		return nil
	}, query, arguments...)
}
