package tenantsdb

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// grantor returns the current state of the actor who creates or changes API keys of a workspace in this
// context; the product acts for person. Roles in the workspace cannot change until the transaction ends.
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
	member, err := memberOf(tx, workspace, person)
	return tenants.Grantor{Person: person, Role: member.role(), Rights: member.rights()}, err
}

// actingKey returns the acting API key with the scopes that it may use now, or without scopes if it has
// ended. It ends with the secret that it was presented with.
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
	return tenants.Grantor{Person: key.Person, Role: role, Rights: key.Rights, Key: &key}, nil
}

// back reduces a key's scopes to those that the person behind its secret may use now. start is a key or a
// person from which that person is found. The rest of the transaction also works for the key's workspace.
func back(tx *gorm.DB, key *tenants.APIKey, start uuid.UUID) error {
	if err := workFor(tx, forWorkspace, key.Workspace.String()); err != nil {
		return err
	}
	_, err := backWith(tx, key, start)
	return err
}

func backWith(tx *gorm.DB, key *tenants.APIKey, start uuid.UUID) (tenants.Role, error) {
	behind, err := personBehind(tx, key.Workspace, start)
	if err != nil {
		return "", err
	}
	key.Person, key.Owner, key.Scopes, key.Rights = behind.Person, behind.Owner, key.Backed(behind.role()), behind.rights()
	if key.CreatedBy != key.Person {
		creator, err := personBehind(tx, key.Workspace, key.CreatedBy)
		if err != nil {
			return "", err
		}
		key.Rights = key.Rights.And(creator.rights())
	}
	key.Rights.Private = key.Limits.NamesPrivate(behind.role())
	return behind.role(), nil
}

// endKeysOf ends a leaving member's access through API keys. The keys that they are responsible for are
// revoked. If the keys are to be kept, they can only send requests from then on, and the remover of the
// person, or else the first owner, becomes responsible for them.
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

// handOver reduces a key to the scope proxy and makes another person responsible for it.
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

// heirOf returns the person who becomes responsible for a leaving member's keys.
func heirOf(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID) (heir uuid.UUID, err error) {
	actor := tenants.ActorOf(tx.Statement.Context)
	heir = actor.User
	if actor.APIKey != uuid.Nil {
		behind, err := personBehind(tx, workspace, actor.APIKey)
		if err != nil {
			return uuid.Nil, err
		}
		heir = behind.Person
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
