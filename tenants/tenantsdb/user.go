package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// SignUp creates a person, a workspace and the person's ownership of it in one transaction, and sends their
// letters. The address must be in lower case. It returns tenants.ErrEmailTaken.
func (db Accounts) SignUp(ctx context.Context, email, passwordHash, workspaceName string, letters ...tenants.LinkMail) (tenants.User, tenants.Workspace, error) {
	return db.signUp(ctx, email, passwordHash, workspaceName, false, letters)
}

// SignUpFirst is SignUp for the first person of the installation. It succeeds for exactly one of several
// concurrent calls, and returns tenants.ErrNotFirst for the others.
func (db Accounts) SignUpFirst(ctx context.Context, email, passwordHash, workspaceName string, letters ...tenants.LinkMail) (tenants.User, tenants.Workspace, error) {
	return db.signUp(ctx, email, passwordHash, workspaceName, true, letters)
}

func (db Accounts) signUp(ctx context.Context, email, passwordHash, workspaceName string, onlyFirst bool, letters []tenants.LinkMail) (tenants.User, tenants.Workspace, error) {
	user := tenants.User{ID: uuid.Must(uuid.NewV7()), Email: email}
	workspace := tenants.Workspace{ID: tenants.NewWorkspaceID(), Name: workspaceName}
	ctx = tenants.WithActor(ctx, tenants.Actor{User: user.ID, Name: email, From: tenants.ActorOf(ctx).From})
	err := db.inUser(ctx, user.ID, func(tx *gorm.DB) error { return signUp(tx, &user, passwordHash, &workspace, onlyFirst, letters) })
	return user, workspace, batchdb.Wrapf(err, "sign up")
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

// HasWorkspaces reports whether anyone has signed up.
func (db Accounts) HasWorkspaces(ctx context.Context) (bool, error) {
	has, err := batchdb.Scan[bool](ctx, db.asWorker, "SELECT EXISTS (SELECT FROM workspaces)")
	return has, batchdb.Wrapf(err, "look for workspaces")
}

// UserByEmail returns the person with an address, in lower case, and the hash of
// their password. It returns tenants.ErrNotFound.
func (db Accounts) UserByEmail(ctx context.Context, email string) (tenants.User, string, error) {
	var found struct {
		tenants.User

		PasswordHash string
	}
	err := db.withEmail(ctx, email, func(tx *gorm.DB) error {
		return tx.Table("users").Select("id, email, password_hash, created_at, verified_at, must_verify").Where("email = ?", email).Take(&found).Error
	})
	return found.User, found.PasswordHash, batchdb.Wrapf(kind(err), "find user")
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

// signUp works in a transaction of the new person.
func signUp(tx *gorm.DB, user *tenants.User, passwordHash string, workspace *tenants.Workspace, onlyFirst bool, letters []tenants.LinkMail) error {
	if err := insertUser(tx, user, passwordHash); err != nil {
		return err
	}
	isFirst, err := claimOperator(tx)
	if err != nil {
		return err
	}
	if onlyFirst && !isFirst {
		return tenants.ErrNotFirst
	}
	if err := createWorkspace(tx, workspace, user.ID); err != nil {
		return err
	}
	return sendAll(tx, user.ID, letters)
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

func insertUser(tx *gorm.DB, user *tenants.User, passwordHash string) error {
	err := tx.Raw("INSERT INTO users (id, email, password_hash, must_verify) VALUES (?, ?, ?, ?) RETURNING created_at",
		user.ID, user.Email, passwordHash, user.MustVerify).Scan(&user.CreatedAt).Error
	if isDuplicate(err) {
		return tenants.ErrEmailTaken
	}
	return err
}

func insertWorkspace(tx *gorm.DB, workspace *tenants.Workspace) error {
	return tx.Raw("INSERT INTO workspaces (workspace_id, name) VALUES (?, ?) RETURNING created_at",
		workspace.ID, storable(workspace.Name)).Scan(&workspace.CreatedAt).Error
}

// userWhere returns the person who matches a condition, or tenants.ErrNotFound.
func userWhere(tx *gorm.DB, condition string, values ...any) (tenants.User, error) {
	return find[tenants.User](tx.Table("users").Select("id, email, created_at, verified_at").Where(condition, values...))
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

// kind converts the database's error for a missing row to ours.
func kind(err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return tenants.ErrNotFound
	}
	return err
}

// isDuplicate reports whether a row was rejected as a duplicate. It is needed because gorm does not translate
// the errors of statements that return rows.
func isDuplicate(err error) bool {
	const uniqueViolation = "23505"
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == uniqueViolation
}
