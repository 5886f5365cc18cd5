package tenantsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

const (
	maxPending  = 500         // pending invitations of a workspace
	resendPause = time.Minute // between two mails to one address
)

// Invitations stores invitations under the hashes of their links.
type Invitations struct{ *core }

// CreateInvitations stores invitations under the hashes of their links' secrets and queues their mails, on
// behalf of the context's actor. It stores all or fails. A pending invitation to the same address is revoked.
// It returns tenants.ErrDenied if the actor does not manage the role, a tenants.Invalid for email if the
// address is a member's or has too many invitations, and the errors of their letters.
func (db Invitations) CreateInvitations(ctx context.Context, workspace tenants.WorkspaceID, wanted []tenants.NewInvitation) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		for _, invitation := range wanted {
			if err := createInvitation(tx, workspace, invitation); err != nil {
				return err
			}
		}
		return nil
	})
	return batchdb.Wrapf(err, "create invitation")
}

func createInvitation(tx *gorm.DB, workspace tenants.WorkspaceID, wanted tenants.NewInvitation) error {
	by, err := lockAsActor(tx, workspace)
	if err != nil {
		return err
	}
	if !by.Manages(wanted.Role) {
		return tenants.ErrDenied
	}
	if err := checkInvited(tx, workspace, wanted.Email); err != nil {
		return err
	}
	if err := revokeInvitations(tx, workspace, "email = ?", wanted.Email); err != nil {
		return err
	}
	err = batchdb.Write(tx, `INSERT INTO invitations (workspace_id, id, email, role, hash, invited_by, created_at, sent_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, workspace, wanted.ID, wanted.Email, wanted.Role, wanted.Hash,
		nullable(tenants.ActorOf(tx.Statement.Context).User), wanted.CreatedAt, wanted.SentAt, wanted.ExpiresAt)
	if err != nil {
		return err
	}
	created, err := invitationOf(tx, workspace, wanted.ID)
	if err != nil {
		return err
	}
	return errors.Join(
		audit(tx, workspace, tenants.Change{Action: tenants.InvitationCreated, Target: created.ID.String(), After: created.Fields()}),
		mailInvitation(tx, created, wanted.Mail))
}

// mailInvitation queues the mail that letter writes for an invitation.
func mailInvitation(tx *gorm.DB, invitation tenants.Invitation, letter tenants.InvitationMail) error {
	mail, err := letter(invitation)
	if err != nil {
		return err
	}
	return queueMail(tx, mail)
}

// checkInvited returns why an address cannot be invited.
func checkInvited(tx *gorm.DB, workspace tenants.WorkspaceID, email string) error {
	var found struct {
		IsMember bool
		Pending  int
	}
	err := tx.Raw(`SELECT
			EXISTS (SELECT FROM members m JOIN users u ON u.id = m.user_id WHERE m.workspace_id = ? AND u.email = ?) AS is_member,
			(SELECT count(*) FROM invitations WHERE workspace_id = ? AND accepted_at IS NULL AND revoked_at IS NULL) AS pending`,
		workspace, email, workspace).Scan(&found).Error
	switch {
	case err != nil:
		return err
	case found.IsMember:
		return tenants.Invalid{Field: "email", Message: email + " is a member already"}
	case found.Pending >= maxPending:
		return tenants.Invalid{Field: "email", Message: fmt.Sprintf("cannot be invited: %d invitations wait already, revoke some first", maxPending)}
	}
	return nil
}

// RenewInvitation gives a pending invitation another link and another expiry, and queues the mail with it.
// The previous link ends. It returns tenants.ErrNotFound, tenants.ErrDenied, a tenants.TooMany within a
// minute of the last time, and the error of the letter.
func (db Invitations) RenewInvitation(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, sent, expires time.Time, hash []byte, letter tenants.InvitationMail) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		before, err := managedInvitation(tx, workspace, id)
		if err != nil {
			return err
		}
		if wait := resendPause - sent.Sub(before.SentAt); wait > 0 {
			return tenants.TooMany{Wait: wait}
		}
		renewed := before
		renewed.SentAt, renewed.ExpiresAt = sent, expires
		return errors.Join(
			batchdb.Write(tx, "UPDATE invitations SET hash = ?, sent_at = ?, expires_at = ? WHERE workspace_id = ? AND id = ?", hash, sent, expires, workspace, id),
			audit(tx, workspace, tenants.Change{Action: tenants.InvitationResent, Target: id.String(), Before: before.Fields(), After: renewed.Fields()}),
			mailInvitation(tx, renewed, letter))
	})
	return batchdb.Wrapf(err, "renew invitation %s", id)
}

// RevokeInvitation ends a pending invitation. It returns tenants.ErrNotFound and tenants.ErrDenied.
func (db Invitations) RevokeInvitation(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if _, err := managedInvitation(tx, workspace, id); err != nil {
			return err
		}
		return revokeInvitations(tx, workspace, "id = ?", id)
	})
	return batchdb.Wrapf(err, "revoke invitation %s", id)
}

// Invitations returns the open invitations of a workspace, including expired ones, the newest first.
func (db Invitations) Invitations(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Invitation, error) {
	invitations, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) ([]tenants.Invitation, error) {
		return list[tenants.Invitation](waiting(tx).Where("i.workspace_id = ?", workspace).Order("i.created_at DESC, i.id DESC"))
	})
	return invitations, batchdb.Wrapf(err, "invitations of workspace %s", workspace)
}

// InvitationByHash returns the invitation with the hash of its link's secret, or tenants.ErrInvitation if it
// cannot be accepted.
func (db Invitations) InvitationByHash(ctx context.Context, hash []byte) (tenants.Invitation, error) {
	found, err := batchdb.Read(ctx, db.withToken(hash), func(tx *gorm.DB) (tenants.Invitation, error) { return presented(tx, hash) })
	return found, batchdb.Wrapf(err, "find invitation")
}

// AcceptInvitation makes a person a member, once, and switches their login to the workspace. It returns
// tenants.ErrInvitation if the invitation cannot be accepted, and tenants.ErrOtherAddress if the person's
// address is not the invited one. Existing members keep their role.
func (db Invitations) AcceptInvitation(ctx context.Context, hash []byte, user, login uuid.UUID) error {
	err := db.withToken(hash)(ctx, func(tx *gorm.DB) error {
		invitation, err := redeemable(tx, hash)
		if err != nil {
			return err
		}
		if err := workFor(tx, forUser, user.String()); err != nil {
			return err
		}
		email, err := batchdb.Query[string](tx, "SELECT email FROM users WHERE id = ? FOR KEY SHARE", user)
		if err != nil {
			return err
		}
		if email != invitation.Email {
			return tenants.ErrOtherAddress
		}
		if err := accept(tx, invitation, user); err != nil {
			return err
		}
		return enter(tx, user, login, invitation.Workspace.ID)
	})
	return batchdb.Wrapf(err, "accept invitation")
}

// SignUpInvited creates the person with the invited address, makes them a member and sends their letters, in
// one transaction. If joining names another workspace, it also creates that as theirs. It returns
// tenants.ErrInvitation, and tenants.ErrEmailTaken after notifying the owner of the address as joining says.
// If joining notifies owners, the person must verify the address.
func (db Invitations) SignUpInvited(ctx context.Context, hash []byte, joining tenants.Joining) (tenants.User, tenants.Membership, error) {
	var user tenants.User
	var membership tenants.Membership
	err := db.withToken(hash)(ctx, func(tx *gorm.DB) error {
		invitation, err := redeemable(tx, hash)
		if err != nil {
			return err
		}
		user = tenants.User{ID: uuid.Must(uuid.NewV7()), Email: invitation.Email, MustVerify: joining.Known != nil}
		if err := workFor(tx, forUser, user.ID.String()); err != nil {
			return err
		}
		tx = tx.WithContext(tenants.WithActor(tx.Statement.Context, tenants.Actor{User: user.ID, Name: user.Email, From: tenants.ActorOf(ctx).From}))
		if err := insertUser(tx, &user, joining.PasswordHash); err != nil {
			return err
		}
		if err := accept(tx, invitation, user.ID); err != nil {
			return err
		}
		if err := sendAll(tx, user.ID, joining.Mails(user.Email)); err != nil {
			return err
		}
		membership = tenants.Membership{Workspace: invitation.Workspace, Role: invitation.Role}
		if joining.Workspace == "" {
			return nil
		}
		return createWorkspace(tx, &tenants.Workspace{ID: tenants.NewWorkspaceID(), Name: joining.Workspace}, user.ID)
	})
	if errors.Is(err, tenants.ErrEmailTaken) && joining.Known != nil {
		if known := joining.Known(user.Email); known.To != "" {
			err = cmp.Or(db.unscoped(ctx, func(tx *gorm.DB) error { return queueMail(tx, known) }), err)
		}
	}
	return user, membership, batchdb.Wrapf(err, "sign up")
}

// presented returns the acceptable invitation with a hash; the rest of the transaction works for its
// workspace.
func presented(tx *gorm.DB, hash []byte) (tenants.Invitation, error) {
	found, err := batchdb.Query[[]tenants.WorkspaceID](tx, "SELECT workspace_id FROM invitations WHERE hash = ?", hash)
	workspace, err := batchdb.First(found, err, tenants.ErrInvitation)
	if err == nil {
		err = workFor(tx, forWorkspace, workspace.String())
	}
	if err != nil {
		return tenants.Invitation{}, err
	}
	invitations, err := list[tenants.Invitation](waiting(tx).Where("i.hash = ? AND i.expires_at > now()", hash))
	return batchdb.First(invitations, err, tenants.ErrInvitation)
}

// redeemable is presented for someone who joins. It prevents the deletion of the workspace until the
// transaction ends.
func redeemable(tx *gorm.DB, hash []byte) (tenants.Invitation, error) {
	invitation, err := presented(tx, hash)
	if err != nil {
		return tenants.Invitation{}, err
	}
	if err = keepOpen(tx, invitation.Workspace.ID); errors.Is(err, tenants.ErrNotFound) {
		err = tenants.ErrInvitation
	}
	return invitation, err
}

// accept uses up an invitation. Of two concurrent calls, one returns tenants.ErrInvitation.
func accept(tx *gorm.DB, invitation tenants.Invitation, user uuid.UUID) error {
	workspace := invitation.Workspace.ID
	err := changedOne(tx.Exec(`UPDATE invitations SET accepted_at = now()
		WHERE workspace_id = ? AND id = ? AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > now()`, workspace, invitation.ID), tenants.ErrInvitation)
	if err != nil {
		return err
	}
	joined := tx.Exec("INSERT INTO members (workspace_id, user_id, role, seen_at) VALUES (?, ?, ?, now()) ON CONFLICT DO NOTHING",
		workspace, user, string(invitation.Role))
	if joined.Error != nil || joined.RowsAffected == 0 {
		return joined.Error
	}
	return audit(tx, workspace, tenants.Change{
		Action: tenants.MemberJoined, Target: user.String(),
		After: tenants.Fields{"email": invitation.Email, "role": string(invitation.Role), "invitation": invitation.ID.String()},
	})
}

// managedInvitation returns a pending invitation that the context's actor may change.
func managedInvitation(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.Invitation, error) {
	by, err := lockAsActor(tx, workspace)
	if err != nil {
		return tenants.Invitation{}, err
	}
	invitation, err := invitationOf(tx, workspace, id)
	if err == nil && !by.Manages(invitation.Role) {
		err = tenants.ErrDenied
	}
	return invitation, err
}

// invitationOf returns a pending invitation.
func invitationOf(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.Invitation, error) {
	return find[tenants.Invitation](waiting(tx).Where("i.workspace_id = ? AND i.id = ?", workspace, id))
}

// revokeInvitationsOf ends the pending invitations that someone has made and could not make with their new
// role; "" ends all.
func revokeInvitationsOf(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID, role tenants.Role) error {
	for _, invited := range tenants.Roles() {
		if role.Manages(invited) {
			continue
		}
		if err := revokeInvitations(tx, workspace, "invited_by = ? AND role = ?", user, invited); err != nil {
			return err
		}
	}
	return nil
}

// revokeInvitations ends the pending invitations of a workspace that match a condition.
func revokeInvitations(tx *gorm.DB, workspace tenants.WorkspaceID, condition string, values ...any) error {
	revoked, err := batchdb.Query[[]tenants.Invitation](tx, `UPDATE invitations SET revoked_at = now()
		WHERE workspace_id = ? AND accepted_at IS NULL AND revoked_at IS NULL AND `+condition+`
		RETURNING id, email, role, expires_at`, append([]any{workspace}, values...)...)
	if err != nil {
		return err
	}
	for _, invitation := range revoked {
		err := audit(tx, workspace, tenants.Change{Action: tenants.InvitationRevoked, Target: invitation.ID.String(), Before: invitation.Fields()})
		if err != nil {
			return err
		}
	}
	return nil
}

// waiting selects pending invitations: not accepted and not revoked.
func waiting(tx *gorm.DB) *gorm.DB {
	return tx.Table("invitations i").
		Select("i.id, i.workspace_id, w.name AS workspace_name, w.created_at AS workspace_created_at, i.email, i.role, coalesce(u.email, '') AS inviter, i.created_at, i.sent_at, i.expires_at").
		Joins("JOIN workspaces w ON w.workspace_id = i.workspace_id").
		Joins("LEFT JOIN users u ON u.id = i.invited_by").
		Where("i.accepted_at IS NULL AND i.revoked_at IS NULL")
}
