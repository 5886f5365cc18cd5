package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// ChangeRole gives a member of a workspace another role, on behalf of the context's actor, with the actor's
// current role. It returns tenants.ErrNotFound for non-members, and the errors of tenants.CheckRoleChange.
func (db Workspaces) ChangeRole(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, role tenants.Role) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		change, err := lockMember(tx, workspace, user)
		if err != nil {
			return err
		}
		if err := tenants.CheckRoleChange(change.by, change.Role, role, change.Owners); err != nil || role == change.Role {
			return err
		}
		err = errors.Join(batchdb.Write(tx, "UPDATE members SET role = ? WHERE workspace_id = ? AND user_id = ?", role, workspace, user), revokeInvitationsOf(tx, workspace, user, role))
		if err != nil {
			return err
		}
		before, after := change.fields(), tenants.Fields{"email": change.Email, "role": string(role)}
		return endChange(tx, workspace, user, tenants.Change{Action: tenants.MemberRoleChanged, Before: before, After: after})
	})
	return batchdb.Wrapf(err, "change role of %s", user)
}

// RemoveMember ends a membership with all logins in the workspace and the member's invitations, on behalf of
// the context's actor. The member's API keys are revoked or kept. It returns tenants.ErrNotFound for
// non-members, and the errors of tenants.CheckRemoval.
func (db Workspaces) RemoveMember(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, revokeKeys bool) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		change, err := lockMember(tx, workspace, user)
		if err != nil {
			return err
		}
		if err := tenants.CheckRemoval(change.by, change.Role, change.Owners); err != nil {
			return err
		}
		if err := endMembership(tx, workspace, user, revokeKeys); err != nil {
			return err
		}
		return endChange(tx, workspace, user, tenants.Change{Action: tenants.MemberRemoved, Before: change.fields()})
	})
	return batchdb.Wrapf(err, "remove member %s", user)
}

// LeaveWorkspace ends a person's own membership. Their logins in the workspace switch to the last used one of
// their others, or to no workspace. It returns tenants.ErrNotFound for non-members, and tenants.ErrLastOwner.
func (db Workspaces) LeaveWorkspace(ctx context.Context, user uuid.UUID, workspace tenants.WorkspaceID, revokeKeys bool) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error { return leave(tx, workspace, user, revokeKeys) })
	return batchdb.Wrapf(err, "leave workspace %s", workspace)
}

// leave ends the membership of the transaction's person.
func leave(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID, revokeKeys bool) error {
	if err := workFor(tx, forWorkspace, workspace.String()); err != nil {
		return err
	}
	change, err := lockMember(tx, workspace, user)
	if err != nil {
		return err
	}
	if err := tenants.CheckLeaving(change.Role, change.Owners); err != nil {
		return err
	}
	err = batchdb.Write(tx, `UPDATE logins SET workspace_id = (
			SELECT m.workspace_id FROM members m WHERE m.user_id = ? AND m.workspace_id <> ?
			ORDER BY m.seen_at DESC NULLS LAST, m.created_at, m.workspace_id LIMIT 1)
		WHERE user_id = ? AND workspace_id = ? AND sign_on_workspace IS NULL`, user, workspace, user, workspace)
	if err != nil {
		return err
	}
	if err := endMembership(tx, workspace, user, revokeKeys); err != nil {
		return err
	}
	return endChange(tx, workspace, user, tenants.Change{Action: tenants.MemberLeft, Before: change.fields()})
}

// memberChange is a member before a change, and the actor who changes them.
type memberChange struct {
	by     tenants.Role // of the actor
	Role   tenants.Role
	Email  string
	Owners int // of the workspace
}

func (c memberChange) fields() tenants.Fields {
	return tenants.Fields{"email": c.Email, "role": string(c.Role)}
}

// lockMember returns a member and locks the workspace's members until the transaction ends, so that of two
// owners who leave at once, one stays.
func lockMember(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID) (memberChange, error) {
	by, err := lockAsActor(tx, workspace)
	if err != nil {
		return memberChange{}, err
	}
	found, err := batchdb.Query[[]memberChange](tx, `SELECT m.role, u.email, (SELECT count(*) FROM members o WHERE o.workspace_id = m.workspace_id AND o.role = 'owner') AS owners
		FROM members m JOIN users u ON u.id = m.user_id WHERE m.workspace_id = ? AND m.user_id = ?`, workspace, user)
	one, err := batchdb.First(found, err, tenants.ErrNotFound)
	one.by = by
	return one, err
}

// lockAsActor locks the workspace's members and invitations until the transaction ends, and returns the
// current role of the context's actor, since a right checked earlier in the request may have ended. An API
// key with ScopeManage has the role of an admin, if the person behind it has those rights too. It returns
// tenants.ErrDenied for others.
func lockAsActor(tx *gorm.DB, workspace tenants.WorkspaceID) (tenants.Role, error) {
	if err := batchdb.Write(tx, "SELECT FROM workspaces WHERE workspace_id = ? FOR NO KEY UPDATE", workspace); err != nil {
		return "", err
	}
	actor := tenants.ActorOf(tx.Statement.Context)
	if actor.APIKey != uuid.Nil {
		by, err := actingKey(tx, workspace, actor)
		if err == nil && !by.May(tenants.ManageMembers) {
			err = tenants.ErrDenied
		}
		return tenants.Admin, err
	}
	role, err := batchdb.Query[tenants.Role](tx, "SELECT role FROM members WHERE workspace_id = ? AND user_id = ?", workspace, actor.User)
	if err == nil && role == "" {
		err = tenants.ErrDenied
	}
	return role, err
}

// endMembership ends a membership, and with it the logins in the workspace through the foreign key of logins.
func endMembership(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID, revokeKeys bool) error {
	if err := revokeInvitationsOf(tx, workspace, user, ""); err != nil {
		return err
	}
	if err := endKeysOf(tx, workspace, user, revokeKeys); err != nil {
		return err
	}
	return batchdb.Write(tx, "DELETE FROM members WHERE workspace_id = ? AND user_id = ?", workspace, user)
}

// endChange records a change of a member and makes all replicas forget their cached state.
func endChange(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID, change tenants.Change) error {
	change.Target = user.String()
	return errors.Join(audit(tx, workspace, change),
		notify(tx, KeysChannel, workspace.String()), // the rights of their keys changed
		notify(tx, LoginsChannel, user.String()))
}

// grantor returns the current state of the actor who creates or changes API keys of a workspace in this
// context; the product acts for person. Roles in the workspace cannot change until the transaction ends.
func grantor(tx *gorm.DB, workspace tenants.WorkspaceID, person uuid.UUID) (tenants.Grantor, error) {
	if err := batchdb.Write(tx, "SELECT FROM workspaces WHERE workspace_id = ? FOR SHARE", workspace); err != nil {
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
	return tenants.Grantor{Person: person, Role: member.Role, Rights: member.rights()}, err
}

// actingKey returns the acting API key with the scopes that it may use now, or without scopes if it has
// ended. It ends with the secret that it was presented with.
func actingKey(tx *gorm.DB, workspace tenants.WorkspaceID, actor tenants.Actor) (tenants.Grantor, error) {
	key, err := findAPIKey(tx.Table("api_keys").Where("workspace_id = ? AND id = ?", workspace, actor.APIKey))
	if errors.Is(err, tenants.ErrNotFound) {
		err = tenants.ErrDenied
	}
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
	key.Person, key.Owner, key.Scopes, key.Rights = behind.Person, behind.Owner, key.Backed(behind.Role), behind.rights()
	if key.CreatedBy != key.Person {
		creator, err := personBehind(tx, key.Workspace, key.CreatedBy)
		if err != nil {
			return "", err
		}
		key.Rights = key.Rights.And(creator.rights())
	}
	key.Rights.Private = key.Limits.NamesPrivate(behind.Role)
	return behind.Role, nil
}

// endKeysOf ends a leaving member's access through API keys. The keys that they are responsible for are
// revoked. If the keys are to be kept, they can only send requests from then on, and the remover of the
// person, or else the first owner, becomes responsible for them.
func endKeysOf(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID, revoke bool) error {
	rows, err := batchdb.Query[[]apiKeyRow](tx, `WITH RECURSIVE theirs (key) AS (
			SELECT id FROM api_keys WHERE workspace_id = ? AND coalesce(person_id, created_by) = ?
			UNION
			SELECT k.id FROM theirs t JOIN api_keys k ON k.workspace_id = ? AND coalesce(k.person_id, k.created_by) = t.key)
		SELECT `+apiKeyColumns+` FROM api_keys WHERE workspace_id = ? AND revoked_at IS NULL AND id IN (SELECT key FROM theirs)
		ORDER BY id FOR UPDATE`, workspace, user, workspace, workspace)
	if err != nil {
		return err
	}
	heir, err := heirOf(tx, workspace, user)
	if err != nil {
		return err
	}
	for i := range rows {
		key, err := rows[i].toAPIKey()
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
	return errors.Join(
		batchdb.Write(tx, "UPDATE api_keys SET scopes = ?, person_id = ? WHERE workspace_id = ? AND id = ?", tenants.JoinScopes(after.Scopes, ","), to, key.Workspace, key.ID),
		audit(tx, key.Workspace, tenants.Change{Action: tenants.KeyChanged, Target: key.ID.String(), Before: key.Fields(), After: after.Fields()}))
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
	owners, err := batchdb.Query[[]uuid.UUID](tx, "SELECT user_id FROM members WHERE workspace_id = ? AND user_id <> ? AND role = 'owner' ORDER BY created_at, user_id LIMIT 1",
		workspace, user)
	return append(owners, uuid.Nil)[0], err
}

// Workspaces stores workspaces and their members.
type Workspaces struct{ *core }

// EnterWorkspace switches a login to another workspace of its user. It returns tenants.ErrNotFound if the
// user is not a member, or the login has ended or is limited to another workspace.
func (db Workspaces) EnterWorkspace(ctx context.Context, user, login uuid.UUID, workspace tenants.WorkspaceID) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error { return enter(tx, user, login, workspace) })
	return batchdb.Wrapf(err, "enter workspace %s", workspace)
}

// WorkspaceName returns the name of a workspace, or tenants.ErrNotFound.
func (db Workspaces) WorkspaceName(ctx context.Context, workspace tenants.WorkspaceID) (string, error) {
	names, err := batchdb.Scan[[]string](ctx, db.tenant(workspace), "SELECT name FROM workspaces WHERE workspace_id = ?", workspace)
	name, err := batchdb.First(names, err, tenants.ErrNotFound)
	return name, batchdb.Wrapf(err, "name of workspace %s", workspace)
}

// RenameWorkspace renames a workspace. It returns tenants.ErrNotFound.
func (db Workspaces) RenameWorkspace(ctx context.Context, workspace tenants.WorkspaceID, name string) error {
	name = storable(name)
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		names, err := batchdb.Query[[]string](tx, "SELECT name FROM workspaces WHERE workspace_id = ? FOR NO KEY UPDATE", workspace)
		before, err := batchdb.First(names, err, tenants.ErrNotFound)
		if err != nil || before == name {
			return err
		}
		return errors.Join(
			batchdb.Write(tx, "UPDATE workspaces SET name = ? WHERE workspace_id = ?", name, workspace),
			audit(tx, workspace, tenants.Change{
				Action: tenants.WorkspaceRenamed, Target: workspace.String(), Before: tenants.Fields{"name": before}, After: tenants.Fields{"name": name},
			}),
			notify(tx, LoginsChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "rename workspace %s", workspace)
}

// enter switches a login to a workspace; the transaction works for the user.
func enter(tx *gorm.DB, user, login uuid.UUID, workspace tenants.WorkspaceID) error {
	err := changedOne(tx.Exec(`UPDATE logins l SET workspace_id = m.workspace_id FROM members m
		WHERE l.id = ? AND l.user_id = ? AND l.revoked_at IS NULL AND m.user_id = l.user_id AND m.workspace_id = ?
			AND (l.sign_on_workspace IS NULL OR l.sign_on_workspace = m.workspace_id)`, login, user, workspace), tenants.ErrNotFound)
	if err != nil {
		return err
	}
	return errors.Join(seen(tx, user, workspace), notify(tx, LoginsChannel, login.String()))
}

// seen records that someone uses a workspace; the rest of the transaction also works for it.
func seen(tx *gorm.DB, user uuid.UUID, workspace tenants.WorkspaceID) error {
	return errors.Join(workFor(tx, forWorkspace, workspace.String()),
		batchdb.Write(tx, "UPDATE members SET seen_at = clock_timestamp() WHERE workspace_id = ? AND user_id = ?", workspace, user))
}

// AllWorkspaces returns the ids of all workspaces, for upkeep.
func (db Workspaces) AllWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error) {
	workspaces, err := batchdb.Scan[[]tenants.WorkspaceID](ctx, db.asWorker, "SELECT workspace_id FROM workspaces ORDER BY workspace_id")
	return workspaces, batchdb.Wrapf(err, "list workspaces")
}

// OriginAllowed reports whether a workspace, or one of its API keys, allows pages of an origin to read
// answers.
func (db APIKeys) OriginAllowed(ctx context.Context, origin string) (allowed bool, err error) {
	err = db.transaction(ctx, forOrigin, origin, func(tx *gorm.DB) error {
		return tx.Raw("SELECT EXISTS (SELECT FROM browser_origins WHERE origin = ?)", origin).Scan(&allowed).Error
	})
	return allowed, batchdb.Wrapf(err, "look for origin")
}

// keepOrigins stores, for preflights, the origins that a workspace and its API keys allow now.
func keepOrigins(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	return errors.Join(batchdb.Write(tx, "DELETE FROM browser_origins WHERE workspace_id = ?", workspace), batchdb.Write(tx, `INSERT INTO browser_origins (workspace_id, origin)
		SELECT w.workspace_id, o.origin FROM workspaces w CROSS JOIN LATERAL string_to_table(w.browser_origins, E'\n') AS o (origin)
		WHERE w.workspace_id = ? AND o.origin <> ''
		UNION
		SELECT k.workspace_id, o.origin FROM api_keys k CROSS JOIN LATERAL jsonb_array_elements_text(coalesce(k.limits -> 'origins', '[]'::jsonb)) AS o (origin)
		WHERE k.workspace_id = ? AND k.revoked_at IS NULL`, workspace, workspace))
}

// CreateWorkspace creates a workspace that a person owns. It returns a tenants.Invalid if they own most
// workspaces already, where 0 means no limit.
func (db Workspaces) CreateWorkspace(ctx context.Context, owner uuid.UUID, name string, most int) (tenants.Workspace, error) {
	workspace := tenants.Workspace{ID: tenants.NewWorkspaceID(), Name: name}
	err := db.inUser(ctx, owner, func(tx *gorm.DB) error {
		if err := checkOwned(tx, owner, most); err != nil {
			return err
		}
		return createWorkspace(tx, &workspace, owner)
	})
	return workspace, batchdb.Wrapf(err, "create workspace")
}

// checkOwned returns a tenants.Invalid if a person owns the maximum number of workspaces. It locks, so that
// two concurrent creations run one after the other.
func checkOwned(tx *gorm.DB, owner uuid.UUID, most int) error {
	if most == 0 {
		return nil
	}
	if err := batchdb.Write(tx, "SELECT FROM users WHERE id = ? FOR NO KEY UPDATE", owner); err != nil {
		return err
	}
	owned, err := batchdb.Query[int](tx, "SELECT count(*) FROM members WHERE user_id = ? AND role = 'owner'", owner)
	if err == nil && owned >= most {
		return tenants.Invalid{Field: "workspace", Message: fmt.Sprintf(
			"cannot be used: you own %d workspaces, and one person may own %d here. Delete one that you no longer need, or ask the person who runs this installation to raise the limit", owned, most)}
	}
	return err
}

// Memberships returns the workspaces of a person, in the order of joining.
func (db Workspaces) Memberships(ctx context.Context, user uuid.UUID) ([]tenants.Membership, error) {
	memberships, err := batchdb.Read(ctx, db.user(user), func(tx *gorm.DB) ([]tenants.Membership, error) { return findMemberships(tx, user) })
	return memberships, batchdb.Wrapf(err, "memberships of user %s", user)
}

// findMemberships returns the workspaces of the transaction's user.
func findMemberships(tx *gorm.DB, user uuid.UUID) ([]tenants.Membership, error) {
	rows, err := list[membershipRow](tx.Table("members m").
		Select(`m.role, m.seen_at, w.workspace_id, w.name AS workspace_name, w.created_at AS workspace_created_at,
			s.since AS suspended_since, coalesce(s.reason, '') AS suspended_reason`).
		Joins("JOIN workspaces w ON w.workspace_id = m.workspace_id").
		Joins("LEFT JOIN suspensions s ON s.workspace_id = m.workspace_id").
		Where("m.user_id = ?", user).Order("m.created_at, m.workspace_id"))
	return each(rows, func(row *membershipRow) tenants.Membership {
		row.Workspace.Suspension = row.Suspended.suspension()
		return row.Membership
	}), err
}

// Members returns the members of a workspace in the order of joining.
func (db Workspaces) Members(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Member, error) {
	members, err := batchdb.Scan[[]tenants.Member](ctx, db.tenant(workspace), `SELECT m.role, m.created_at AS joined_at, m.seen_at, u.id, u.email, u.created_at, u.verified_at
		FROM members m JOIN users u ON u.id = m.user_id WHERE m.workspace_id = ? ORDER BY m.created_at, u.id`, workspace)
	return members, batchdb.Wrapf(err, "members of workspace %s", workspace)
}

// createWorkspace makes the rest of the transaction work for the workspace, too.
func createWorkspace(tx *gorm.DB, workspace *tenants.Workspace, owner uuid.UUID) error {
	if err := workFor(tx, forWorkspace, workspace.ID.String()); err != nil {
		return err
	}
	if err := insertWorkspace(tx, workspace); err != nil {
		return err
	}
	return errors.Join(
		batchdb.Write(tx, "INSERT INTO members (workspace_id, user_id, role) VALUES (?, ?, ?)", workspace.ID, owner, tenants.Owner),
		audit(tx, workspace.ID, tenants.Change{
			Action: tenants.WorkspaceCreated, Target: workspace.ID.String(), After: tenants.Fields{"name": workspace.Name},
		}))
}

func insertWorkspace(tx *gorm.DB, workspace *tenants.Workspace) error {
	return tx.Raw("INSERT INTO workspaces (workspace_id, name) VALUES (?, ?) RETURNING created_at",
		workspace.ID, storable(workspace.Name)).Scan(&workspace.CreatedAt).Error
}

type membershipRow struct {
	tenants.Membership

	Suspended suspended `gorm:"embedded"`
}

// suspended is the suspension in a row.
type suspended struct {
	SuspendedSince  *time.Time // nil if the workspace is active
	SuspendedReason string
}

// suspension returns nil if the workspace is active.
func (s *suspended) suspension() *tenants.Suspension {
	if s.SuspendedSince == nil {
		return nil
	}
	return &tenants.Suspension{Reason: s.SuspendedReason, Since: *s.SuspendedSince}
}
