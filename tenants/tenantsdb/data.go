package tenantsdb

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Data stores the rules for storing and reading a workspace's data, and its retention.
type Data struct{ *core }

// DataSettings returns a workspace's data settings. It returns tenants.ErrNotFound.
func (db Data) DataSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.DataSettings, error) {
	var settings tenants.DataSettings
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		var err error
		settings, err = findDataSettings(tx, workspace, "")
		return err
	})
	return settings, batchdb.Wrapf(err, "data settings of workspace %s", workspace)
}

// SetDataSettings sets a workspace's data settings on all replicas. It returns tenants.Invalid or
// tenants.ErrNotFound.
func (db Data) SetDataSettings(ctx context.Context, tenant tenants.Tenant, settings tenants.DataSettings) error {
	workspace := tenant.Workspace()
	if err := settings.Validate(); err != nil {
		return err
	}
	settings = settings.Normal()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := findDataSettings(tx, workspace, " FOR UPDATE")
		if err != nil {
			return err
		}
		if reflect.DeepEqual(before, settings) {
			return nil
		}
		err = tx.Exec(`UPDATE workspaces SET time_zone = ?, managers_read = ?, members_read = ?, viewers_read = ?, no_store = ?,
			redact = ?, redact_names = ?, end_user_ids = ?, browser_origins = ?, failover = ?, own_credentials = ? WHERE workspace_id = ?`,
			settings.TimeZone, string(settings.Text.Managers), string(settings.Text.Members), string(settings.Text.Viewers), settings.NoStore,
			inOne(settings.Redact.Kinds, ","), inOne(settings.Redact.Names, "\n"), string(settings.EndUsers), inOne(settings.Origins, "\n"),
			string(settings.Failover), settings.OwnCredentials, workspace).Error
		if err != nil {
			return err
		}
		if !slices.Equal(before.Origins, settings.Origins) {
			if err := keepOrigins(tx, workspace); err != nil {
				return err
			}
		}
		if settings.EndUsers == tenants.EndUsersHashed {
			if err := tx.Exec("UPDATE end_users SET name = NULL WHERE workspace_id = ? AND name IS NOT NULL", workspace).Error; err != nil {
				return err
			}
		}
		change := tenants.Change{Action: tenants.SettingsSaved, Before: before.Fields(), After: settings.Fields()}
		if err := audit(tx, workspace, change); err != nil {
			return err
		}
		if before.Text != settings.Text { // cached keys contain it
			if err := notify(tx, KeysChannel, workspace.String()); err != nil {
				return err
			}
		}
		return notify(tx, SettingsChannel, workspace.String())
	})
	return batchdb.Wrapf(err, "set data settings of workspace %s", workspace)
}

func findDataSettings(tx *gorm.DB, workspace tenants.WorkspaceID, lock string) (tenants.DataSettings, error) {
	var rows []struct {
		TimeZone     string
		ManagersRead string
		MembersRead  string
		ViewersRead  string
		NoStore      bool
		Redact       string // kinds, separated by commas
		RedactNames  string // one a line
		EndUserIDs   string `gorm:"column:end_user_ids"`

		BrowserOrigins string // one a line
		Failover       string
		OwnCredentials bool
	}
	err := tx.Raw("SELECT time_zone, managers_read, members_read, viewers_read, no_store, redact, redact_names, end_user_ids, browser_origins, failover, own_credentials FROM workspaces WHERE workspace_id = ?"+lock, workspace).
		Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	return tenants.DataSettings{
		TimeZone: row.TimeZone, NoStore: row.NoStore,
		Text: tenants.TextPolicy{
			Managers: tenants.Reads(row.ManagersRead), Members: tenants.Reads(row.MembersRead), Viewers: tenants.Reads(row.ViewersRead),
		},
		EndUsers: tenants.EndUserIDs(row.EndUserIDs),
		Redact:   tenants.Redaction{Kinds: split[tenants.RedactionKind](row.Redact, ","), Names: split[string](row.RedactNames, "\n")},
		Origins:  split[string](row.BrowserOrigins, "\n"),
		Failover: tenants.Failover(row.Failover), OwnCredentials: row.OwnCredentials,
	}, err
}

// inOne joins values for split. They must not be empty or contain the separator.
func inOne[S ~string](values []S, separator string) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, separator)
}

func split[S ~string](text, separator string) []S {
	var values []S
	for value := range strings.SplitSeq(text, separator) {
		if value != "" {
			values = append(values, S(value))
		}
	}
	return values
}

// RedactionCounts returns the number of replacements per kind of personal data in a workspace.
func (db Data) RedactionCounts(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.RedactionCount, error) {
	var counts []tenants.RedactionCount
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT kind, found FROM redaction_counts WHERE workspace_id = ?", workspace).Scan(&counts).Error
	})
	kinds := tenants.RedactionKinds()
	slices.SortFunc(counts, func(a, b tenants.RedactionCount) int {
		return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind))
	})
	return counts, batchdb.Wrapf(err, "counts of what was redacted in workspace %s", workspace)
}
