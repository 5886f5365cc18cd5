package archivedb

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// sqlSizes reads the sizes of a lane's messages as two arrays, because transferring a row for each takes
// longer than reading it.
const sqlSizes = `SELECT array_agg(e.index ORDER BY e.index)::text, array_agg(e.tokens ORDER BY e.index)::text FROM lane_entries($1, $2, 0, $3) e`

// Sizes returns the o200k tokens of the first messages of a lane, by index; -1 for messages that the archive
// does not hold.
func (d *DB) Sizes(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, messages int) ([]int, error) {
	var indexes, tokens sql.NullString
	err := d.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Statement.ConnPool.QueryRowContext(ctx, sqlSizes, workspace, lane, messages).Scan(&indexes, &tokens)
	})
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
