package tenantsdb

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// grantor returns who hands out or changes API keys of a workspace on behalf of the
// context's actor, as they are now; the product acts for a person. Nobody changes their
// role until the transaction ends.
func grantor(tx *gorm.DB, workspace tenants.WorkspaceID, person uuid.UUID) (tenants.Grantor, error) {
	if err := tx.Exec("SELECT FROM workspaces WHERE workspace_id = ? FOR SHARE", workspace).Error; err != nil {
		return tenants.Grantor{}, err
	}
	actor := tenants.ActorOf(tx.Statement.Context)
	if actor.APIKey != uuid.Nil {
		return actingKey(tx, workspace, actor)
	}
	if actor.User != uuid.Nil {
		person = actor.User
	}
	by := tenants.Grantor{Person: person}
	err := tx.Raw("SELECT role FROM members WHERE workspace_id = ? AND user_id = ?", workspace, person).Scan(&by.Role).Error
	return by, err
}

// actingKey returns the API key that acts, with the scopes that it may use now: none, if
// it has ended. It ends with the secret that it was presented with.
func actingKey(tx *gorm.DB, workspace tenants.WorkspaceID, actor tenants.Actor) (tenants.Grantor, error) {
	var rows []apiKeyRow
	err := tx.Raw("SELECT "+apiKeyColumns+" FROM api_keys WHERE workspace_id = ? AND id = ?", workspace, actor.APIKey).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrDenied)
	if err != nil {
		return tenants.Grantor{}, err
	}
	key, err := row.toAPIKey()
	if err != nil {
		return tenants.Grantor{}, err
	}
	role, err := backWith(tx, &key, key.ID)
	if err != nil {
		return tenants.Grantor{}, err
	}
	if key.RevokedAt != nil || key.ExpiresAt != nil && !time.Now().Before(*key.ExpiresAt) {
		key.Scopes = nil
	}
	if actor.Until != nil && (key.ExpiresAt == nil || actor.Until.Before(*key.ExpiresAt)) {
		key.ExpiresAt = actor.Until
	}
	return tenants.Grantor{Person: key.Person, Role: role, Key: &key}, nil
}

// back leaves a key the scopes that the person behind its secret may use now: who is found
// from start, a key or a person. The rest of the
// transaction works for the key's workspace, too.
func back(tx *gorm.DB, key *tenants.APIKey, start uuid.UUID) error {
	if err := workFor(tx, forWorkspace, key.Workspace.String()); err != nil {
		return err
	}
	_, err := backWith(tx, key, start)
	return err
}

func backWith(tx *gorm.DB, key *tenants.APIKey, start uuid.UUID) (tenants.Role, error) {
	person, role, err := personBehind(tx, key.Workspace, start)
	key.Person, key.Scopes, key.NamesPrivate = person, key.Backed(role), key.Limits.NamesPrivate(role)
	return role, err
}

// personBehind returns who stands behind an API key, and their role; empty if they are
// not a member. A key that another key made is followed to who made that one. It may
// start with a person, too.
func personBehind(tx *gorm.DB, workspace tenants.WorkspaceID, start uuid.UUID) (person uuid.UUID, role tenants.Role, err error) {
	var found []struct {
		Person uuid.UUID
		Role   string
	}
	err = tx.Raw(`WITH RECURSIVE behind (person) AS (
			SELECT ?::uuid
			UNION
			SELECT coalesce(k.person_id, k.created_by) FROM behind b JOIN api_keys k ON k.workspace_id = ? AND k.id = b.person)
		SELECT b.person, coalesce(m.role, '') AS role FROM behind b LEFT JOIN members m ON m.workspace_id = ? AND m.user_id = b.person
		WHERE NOT EXISTS (SELECT FROM api_keys k WHERE k.workspace_id = ? AND k.id = b.person)`,
		start, workspace, workspace, workspace).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return uuid.Nil, "", err
	}
	return found[0].Person, tenants.Role(found[0].Role), nil
}

// endKeysOf ends what a member who leaves a workspace could do with API keys. Those that
// they stand behind are revoked; or, if they are to be kept, go on to send requests and
// nothing else, and who removes the person stands behind them, or else the first owner.
func endKeysOf(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID, revoke bool) error {
	var rows []apiKeyRow
	err := tx.Raw(`WITH RECURSIVE theirs (key) AS (
			SELECT id FROM api_keys WHERE workspace_id = ? AND coalesce(person_id, created_by) = ?
			UNION
			SELECT k.id FROM theirs t JOIN api_keys k ON k.workspace_id = ? AND coalesce(k.person_id, k.created_by) = t.key)
		SELECT `+apiKeyColumns+` FROM api_keys WHERE workspace_id = ? AND revoked_at IS NULL AND id IN (SELECT key FROM theirs)
		ORDER BY id FOR UPDATE`, workspace, user, workspace, workspace).Scan(&rows).Error
	if err != nil {
		return err
	}
	heir, err := heirOf(tx, workspace, user)
	if err != nil {
		return err
	}
	for _, row := range rows {
		key, err := row.toAPIKey()
		if err != nil {
			return err
		}
		if revoke || !slices.Contains(key.Scopes, tenants.ScopeProxy) {
			err = endKey(tx, key)
		} else {
			err = handOver(tx, key, heir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func endKey(tx *gorm.DB, key tenants.APIKey) error {
	if err := revokeAPIKey(tx, key.Workspace, key.ID); err != nil {
		return err
	}
	return audit(tx, key.Workspace, tenants.Change{Action: tenants.KeyRevoked, Target: key.ID.String()})
}

// handOver leaves a key the scope proxy and has another person stand behind it.
func handOver(tx *gorm.DB, key tenants.APIKey, to uuid.UUID) error {
	after := key
	after.Scopes = []tenants.Scope{tenants.ScopeProxy}
	err := tx.Exec("UPDATE api_keys SET scopes = ?, person_id = ? WHERE workspace_id = ? AND id = ?",
		tenants.JoinScopes(after.Scopes, ","), to, key.Workspace, key.ID).Error
	if err != nil {
		return err
	}
	return audit(tx, key.Workspace, tenants.Change{Action: tenants.KeyChanged, Target: key.ID.String(), Before: key.Fields(), After: after.Fields()})
}

// heirOf returns who stands behind the kept keys of a member who leaves.
func heirOf(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID) (heir uuid.UUID, err error) {
	actor := tenants.ActorOf(tx.Statement.Context)
	heir = actor.User
	if actor.APIKey != uuid.Nil {
		if heir, _, err = personBehind(tx, workspace, actor.APIKey); err != nil {
			return uuid.Nil, err
		}
	}
	if heir != uuid.Nil && heir != user {
		return heir, nil
	}
	var owners []uuid.UUID
	err = tx.Raw("SELECT user_id FROM members WHERE workspace_id = ? AND user_id <> ? AND role = 'owner' ORDER BY created_at, user_id LIMIT 1",
		workspace, user).Scan(&owners).Error
	if err != nil || len(owners) == 0 {
		return uuid.Nil, err
	}
	return owners[0], nil
}
