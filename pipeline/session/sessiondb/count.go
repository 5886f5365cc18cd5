package sessiondb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// countRow is a row of counts.
type countRow struct {
	Everything, Conversations, Compressed, Bridged, Problems, Single int

	Workspace int
	Looked    int
}

// Counts returns how many sessions match a filter in each part of the list, and how many there are that the
// reader may see, each at most session.MostCounted. It ignores the filter's Show and Cursor.
func (s Browser) Counts(ctx context.Context, workspace tenants.WorkspaceID, filter session.Filter) (session.Counts, error) {
	filter.Show, filter.Cursor = session.ShowAll, ""
	var row countRow
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		all := visible(tx.Table("sessions").Select("1").Where("workspace_id = ?", workspace)).Limit(session.MostCounted)
		if filter.Query == "" {
			return countParts(tx, workspace, filter, all).Scan(&row).Error
		}
		look, err := lookAt(tx, workspace, filter, nil)
		if err != nil {
			return err
		}
		if err := countFound(tx, look, filter).Scan(&row).Error; err != nil {
			return err
		}
		return tx.Raw("SELECT count(*) FROM (?) present", all).Scan(&row.Workspace).Error
	})
	if err != nil {
		return session.Counts{}, fmt.Errorf("count sessions: %w", err)
	}
	return session.Counts{
		Of: map[session.Show]int{
			session.ShowAll: min(row.Everything, session.MostCounted), session.ShowCompressed: min(row.Compressed, session.MostCounted),
			session.ShowConversations: min(row.Conversations, session.MostCounted), session.ShowSingle: min(row.Single, session.MostCounted),
			session.ShowBridged: min(row.Bridged, session.MostCounted), session.ShowProblems: min(row.Problems, session.MostCounted),
		},
		Workspace: row.Workspace, More: row.Looked == mostLooked,
	}, nil
}

// Active returns how many sessions of a workspace have had a request since a time, at most
// session.MostCounted.
func (s Browser) Active(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (int, error) {
	var count int
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		active := narrow(tx.Table("sessions").Select("1").Where("workspace_id = ?", workspace), session.Filter{From: since}, nil)
		return tx.Raw("SELECT count(*) FROM (?) active", active.Limit(session.MostCounted)).Scan(&count).Error
	})
	return count, batchdb.Wrapf(err, "count active sessions")
}

// countParts counts along the index of each part, up to session.MostCounted.
func countParts(tx *gorm.DB, workspace tenants.WorkspaceID, filter session.Filter, all *gorm.DB) *gorm.DB {
	part := func(show session.Show) *gorm.DB {
		filter.Show = show
		return narrow(tx.Table("sessions").Select("1").Where("workspace_id = ?", workspace), filter, nil).Limit(session.MostCounted)
	}
	return tx.Raw(`SELECT (SELECT count(*) FROM (?) a) AS everything, (SELECT count(*) FROM (?) b) AS compressed,
			(SELECT count(*) FROM (?) c) AS bridged, (SELECT count(*) FROM (?) d) AS problems, (SELECT count(*) FROM (?) e) AS workspace,
			(SELECT count(*) FROM (?) f) AS conversations, (SELECT count(*) FROM (?) g) AS single`,
		part(session.ShowAll), part(session.ShowCompressed), part(session.ShowBridged), part(session.ShowProblems), all,
		part(session.ShowConversations), part(session.ShowSingle))
}

// countFound counts a query's matches among the sessions of its look.
func countFound(tx *gorm.DB, look look, filter session.Filter) *gorm.DB {
	counted := func(show session.Show, name string) string {
		return "count(*) FILTER (WHERE fits AND " + shown()[show] + ") AS " + name
	}
	looked := "0"
	found := look.from.Select("*, true AS fits")
	if look.bounded {
		looked = "count(*)"
		// LIMIT has the database match each session once and not for each count.
		found = look.from.Select("*, "+fits+" AS fits", fitting(filter)...).Limit(mostLooked)
	}
	return tx.Table("(?) AS found", found).Select(strings.Join([]string{
		"count(*) FILTER (WHERE fits) AS everything", counted(session.ShowCompressed, "compressed"),
		counted(session.ShowBridged, "bridged"), counted(session.ShowProblems, "problems"),
		counted(session.ShowConversations, "conversations"), counted(session.ShowSingle, "single"), looked + " AS looked",
	}, ", "))
}
