package sessiondb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// UsersChannel notifies all replicas of an end user's erasure, with the id of the workspace, so that they
// drop answers cached in memory and read patterns again.
const UsersChannel = "palimpsest_end_users"

// The statements about end users for recording exchanges. An erasure takes the lock exclusively, so a record
// either comes completely before it or sees it.
const (
	sqlShareUsers = `SELECT pg_advisory_xact_lock_shared(key) FROM unnest($1::bigint[]) AS key`
	sqlErased     = `SELECT id, erased_at FROM end_users WHERE workspace_id = $1 AND id = ANY($2::text[]) AND erased_at IS NOT NULL`
	sqlNameUsers  = `INSERT INTO end_users (workspace_id, id, name)
		SELECT $1, id, name FROM unnest($2::text[], $3::bytea[]) AS t (id, name)
		WHERE (SELECT end_user_ids FROM workspaces WHERE workspace_id = $1) = 'plain'
			AND (SELECT u.name FROM end_users u WHERE u.workspace_id = $1 AND u.id = t.id) IS NULL
		ON CONFLICT (workspace_id, id) DO UPDATE SET name = excluded.name WHERE end_users.name IS NULL`
	sqlUserNames = `SELECT id, name FROM end_users WHERE workspace_id = $1 AND id = ANY($2::text[]) AND name IS NOT NULL`
)

// The statements of an erasure, in order, one for each kind of data.
const (
	sqlLockUser = `SELECT pg_advisory_xact_lock($1)`
	sqlErase    = `INSERT INTO end_users (workspace_id, id, erased_at) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id, id) DO UPDATE SET name = NULL, erased_at = greatest(end_users.erased_at, excluded.erased_at)`
	sqlOfUser = `SELECT id, exchanges FROM sessions WHERE workspace_id = $1 AND end_user = $2 AND end_user <> ''
		ORDER BY id LIMIT $3 FOR UPDATE`
	// A pattern that other people's sessions also show does not belong to the end user alone.
	sqlUserPatterns = `DELETE FROM patterns p WHERE workspace_id = $1 AND source = 'mined'
		AND EXISTS (SELECT FROM pattern_evidence e WHERE e.workspace_id = $1 AND e.pattern_id = p.id AND e.session_id = ANY($2::uuid[]))
		AND NOT EXISTS (SELECT FROM pattern_evidence e WHERE e.workspace_id = $1 AND e.pattern_id = p.id AND e.session_id <> ALL($2::uuid[]))`
	sqlUserAnswers  = `DELETE FROM cached_answers WHERE workspace_id = $1 AND end_user = $2`
	sqlUserRequests = `WITH gone AS (
			DELETE FROM exchange_tags WHERE workspace_id = $1 AND tag = '@user=' || $2 AND (at, exchange_id) IN (
				SELECT at, exchange_id FROM exchange_tags WHERE workspace_id = $1 AND tag = '@user=' || $2 ORDER BY at, exchange_id LIMIT $3)
			RETURNING exchange_id)
		UPDATE exchanges SET end_user = NULL, error_text = NULL FROM gone WHERE exchanges.workspace_id = $1 AND exchanges.id = gone.exchange_id`
)

// eraseSessions and eraseRequests bound one transaction of an erasure, because others wait for its locks.
const (
	eraseSessions = 200
	eraseRequests = 5000
)

// Erase implements session.Records.
func (s Browser) Erase(ctx context.Context, tenant tenants.Tenant, user string, at time.Time) (erased session.Erased, err error) {
	workspace := tenant.Workspace()
	err = s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		err := errors.Join(
			batchdb.Later(tx, sqlLockUser, userKey(workspace, user)),
			batchdb.Later(tx, sqlErase, workspace, user, at),
		)
		if err != nil {
			return err
		}
		ids, err := sessionsOf(tx, workspace, user)
		if err != nil {
			return err
		}
		pool := tx.Statement.ConnPool
		for _, part := range []struct {
			count     *int64
			statement string
			values    []any
		}{
			{&erased.Patterns, sqlUserPatterns, []any{workspace, ids}},
			{&erased.Answers, sqlUserAnswers, []any{workspace, user}},
			{&erased.Requests, sqlUserRequests, []any{workspace, user, eraseRequests}},
		} {
			result, err := pool.ExecContext(ctx, part.statement, part.values...)
			if err == nil {
				*part.count, err = result.RowsAffected()
			}
			if err != nil {
				return err
			}
		}
		if erased.Sessions = int64(len(ids)); len(ids) > 0 {
			if err := deleteSessions(tx, workspace, ids); err != nil {
				return err
			}
		}
		return batchdb.Later(tx, sqlNotify, UsersChannel, workspace.String())
	})
	if err != nil {
		return session.Erased{}, fmt.Errorf("erase end user %s: %w", user, err)
	}
	return erased, nil
}

// sessionsOf locks and returns as many sessions of an end user as one transaction deletes.
func sessionsOf(tx *gorm.DB, workspace tenants.WorkspaceID, user string) (ids []uuid.UUID, err error) {
	exchanges := int64(0)
	ids = []uuid.UUID{}
	err = batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var id uuid.UUID
		var has int64
		if err := row.Scan(&id, &has); err != nil {
			return err
		}
		if exchanges += has; exchanges <= sweepExchanges || len(ids) == 0 {
			ids = append(ids, id)
		}
		return nil
	}, sqlOfUser, workspace, user, eraseSessions)
	return ids, err
}

// EndUserNames implements session.Records.
func (s Browser) EndUserNames(ctx context.Context, workspace tenants.WorkspaceID, users []string) (map[string]string, error) {
	key, err := s.keys.Key(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("ids of end users: %w", err)
	}
	slices.Sort(users)
	users = slices.Compact(users)
	names := make(map[string]string, len(users))
	err = batchdb.ForEach(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) error {
		var user string
		var sealed []byte
		if err := row.Scan(&user, &sealed); err != nil {
			return err
		}
		name, err := key.Open(aboutUser(user), sealed)
		names[user] = string(name)
		return err
	}, sqlUserNames, workspace, users)
	return names, batchdb.Wrapf(err, "ids of end users of workspace %s", workspace)
}

// nameUsers fills in the applications' own ids of the end users of sessions.
func (s Browser) nameUsers(ctx context.Context, workspace tenants.WorkspaceID, sessions []session.Overview) error {
	var users []string
	for i := range sessions {
		if sessions[i].EndUser != "" {
			users = append(users, sessions[i].EndUser)
		}
	}
	if len(users) == 0 {
		return nil
	}
	names, err := s.EndUserNames(ctx, workspace, users)
	for i := range sessions {
		sessions[i].EndUserName = names[sessions[i].EndUser]
	}
	return err
}

// recordUnerased runs record for exchanges, except those from before their end user's erasure.
func recordUnerased(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update, record func([]session.Update) error) error {
	erased, err := erasedAmong(tx, workspace, updates)
	if err != nil {
		return fmt.Errorf("end users who were erased: %w", err)
	}
	if len(erased) == 0 {
		return record(updates)
	}
	var places []int
	var rest []session.Update
	for i := range updates {
		if at, is := erased[updates[i].Scope.EndUser]; !is || updates[i].At.After(at) {
			places, rest = append(places, i), append(rest, updates[i])
		}
	}
	if len(rest) == 0 {
		return nil
	}
	if err := record(rest); err != nil {
		return err
	}
	for i, place := range places {
		updates[place] = rest[i] // record may have moved it to another lane
	}
	return nil
}

// erasedAmong returns the times of erasure of the erased end users of exchanges. No other of these users can
// be erased until the end of the transaction.
func erasedAmong(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) (map[string]time.Time, error) {
	users := usersOf(updates)
	if len(users) == 0 {
		return nil, nil //nolint:nilnil // a map of none
	}
	if err := shareUsers(tx, workspace, users); err != nil {
		return nil, err
	}
	erased := map[string]time.Time{}
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var user string
		var at time.Time
		err := row.Scan(&user, &at)
		erased[user] = at
		return err
	}, sqlErased, workspace, users)
	return erased, err
}

// shareUsers makes erasures of end users wait for the end of the transaction.
func shareUsers(tx *gorm.DB, workspace tenants.WorkspaceID, users []string) error {
	if len(users) == 0 {
		return nil
	}
	keys := make([]int64, len(users))
	for i, user := range users {
		keys[i] = userKey(workspace, user)
	}
	slices.Sort(keys)
	return batchdb.Later(tx, sqlShareUsers, keys)
}

// usersOf returns the end users of exchanges without duplicates.
func usersOf(updates []session.Update) []string {
	var users []string
	for i := range updates {
		if user := updates[i].Scope.EndUser; user != "" {
			users = append(users, user)
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// userKey is the key of an end user's lock.
func userKey(workspace tenants.WorkspaceID, user string) int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "erase end user %s %s", workspace, user))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // the bits are kept
}

// namesOf returns the end users of exchanges whose own ids are to be kept, and those ids, sealed.
func (c *core) namesOf(ctx context.Context, workspace tenants.WorkspaceID, updates []session.Update) (users []string, names [][]byte, err error) {
	byUser := map[string]string{}
	for i := range updates {
		if scope := &updates[i].Scope; scope.EndUser != "" && scope.EndUserName != "" {
			byUser[scope.EndUser] = scope.EndUserName
		}
	}
	if len(byUser) == 0 {
		return nil, nil, nil
	}
	key, err := c.keys.Key(ctx, workspace)
	if err != nil {
		return nil, nil, fmt.Errorf("ids of end users: %w", err)
	}
	for _, user := range usersOf(updates) {
		if name := byUser[user]; name != "" {
			users, names = append(users, user), append(names, sealName(key, user, name))
		}
	}
	return users, names, nil
}

func sealName(key *archive.Key, user, name string) []byte {
	return key.Seal(aboutUser(user), bytes.ToValidUTF8([]byte(name), nil))
}

// aboutUser is the associated data of an end user's sealed id, besides its workspace.
func aboutUser(user string) []byte { return []byte("end user " + user) }
