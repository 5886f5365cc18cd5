package tenantsdb

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
)

// tagSums returns the sums that are kept of tags: those that the API shows.
func tagSums() []sums.Sum {
	return slices.DeleteFunc(sums.Of[tenants.Usage](), func(sum sums.Sum) bool { return sum.JSON == "-" })
}

// tagUsage returns the usage of a workspace by the values of a tag, the ones with most tokens first. The last
// row, without a label, sums up requests without the tag, so that all rows add up to the whole.
func (db Usage) tagUsage(ctx context.Context, workspace tenants.WorkspaceID, name string, filter tenants.UsageFilter) ([]tenants.UsageRow, error) {
	if filter.Client != "" || filter.Model != "" {
		return nil, tenants.Invalid{Field: "by", Message: "cannot be a tag together with client or model: tags are added up by API key only"}
	}
	all := tagSums()
	selected := sums.SQL(all, "coalesce(sum(%), 0)::bigint AS %", ", ")
	filter = filter.Aligned()
	var rows []struct {
		Row usageRow `gorm:"embedded"`

		Tagged bool
	}
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		whole := rollups(tx, workspace, filter, day, filter.IsPart()).Select(selected)
		parts := within(tx.Table("tag_sums_now").Where("workspace_id = ? AND name = ?", workspace, name), filter, day)
		parts = ofKeys(parts, workspace, filter).Select("value AS label, " + selected).Group("value")
		// One statement: both are of the same moment.
		return tx.Raw("SELECT * FROM (SELECT false AS tagged, '' AS label, w.* FROM (?) w UNION ALL SELECT true, p.* FROM (?) p) u"+ //nolint:unqueryvet // both select
			" ORDER BY tagged, tokens_before DESC, exchanges DESC, label", whole, parts).Scan(&rows).Error
	})
	if err != nil {
		return nil, batchdb.Wrapf(err, "usage of workspace %s by tag %s", workspace, name)
	}
	split, rest := make([]tenants.UsageRow, 0, len(rows)), tenants.Usage{}
	for i := range rows {
		row := &rows[i].Row
		if !rows[i].Tagged {
			rest = row.Sums
			continue
		}
		split = append(split, tenants.UsageRow{Label: row.Label, Name: row.Label, Usage: row.Sums})
		for _, sum := range all {
			sum.Add(&rest, -sum.In(&row.Sums))
		}
	}
	if rest != (tenants.Usage{}) {
		split = append(split, tenants.UsageRow{Usage: rest})
	}
	return split, nil
}
