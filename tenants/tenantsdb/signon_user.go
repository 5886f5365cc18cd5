package tenantsdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// SignOnUser returns the person whom a workspace's single sign-on has proven, as a member of it. It creates
// an account for a new address.
//
// An account that belongs to other workspaces or to an operator is connected once, by a person who has proven
// to us that it is theirs. Until then the error is tenants.ErrSignOnLink. For other accounts with an
// unverified address, the previous person loses the account: its password, logins, passkeys and second factor
// end. It returns tenants.ErrSignOn if the address's domain is not proven for the workspace.
func (db SignOn) SignOnUser(ctx context.Context, workspace tenants.WorkspaceID, proof tenants.SignOnProof, role tenants.Role) (tenants.User, error) {
	user, _, err := Accounts(db).UserByEmail(ctx, proof.Email)
	isNew := errors.Is(err, tenants.ErrNotFound)
	if err != nil && !isNew {
		return tenants.User{}, err
	}
	if isNew {
		user = tenants.User{ID: uuid.Must(uuid.NewV7()), Email: proof.Email}
	}
	ctx = tenants.WithActor(ctx, tenants.Actor{User: user.ID, Name: proof.Email, From: tenants.ActorOf(ctx).From})
	err = db.inUser(ctx, user.ID, func(tx *gorm.DB) error {
		if err := workFor(tx, forWorkspace, workspace.String()); err != nil {
			return err
		}
		if err := keepOpen(tx, workspace); errors.Is(err, tenants.ErrNotFound) {
			return fmt.Errorf("%w: the workspace is deleted", tenants.ErrSignOn)
		} else if err != nil {
			return err
		}
		if err := provenDomain(tx, workspace, tenants.DomainOf(proof.Email)); err != nil {
			return err
		}
		if isNew {
			if err := insertUser(tx, &user, ""); err != nil {
				return err
			}
		}
		if err := connect(tx, workspace, &user, isNew, proof); err != nil {
			return err
		}
		return joinBySignOn(tx, workspace, user, role, proof)
	})
	return user, batchdb.Wrapf(err, "sign on")
}

// provenDomain returns tenants.ErrSignOn if a domain is not proven for a workspace.
func provenDomain(tx *gorm.DB, workspace tenants.WorkspaceID, domain string) error {
	var proven bool
	err := tx.Raw("SELECT EXISTS (SELECT FROM sign_on_domains WHERE workspace_id = ? AND domain = ? AND proven_at IS NOT NULL)", workspace, domain).Scan(&proven).Error
	if err == nil && !proven {
		err = fmt.Errorf("%w: the domain is not proven", tenants.ErrSignOn)
	}
	return err
}

// connect checks that a workspace's identity provider may vouch for an account, and marks its address as
// verified.
func connect(tx *gorm.DB, workspace tenants.WorkspaceID, user *tenants.User, isNew bool, proof tenants.SignOnProof) error {
	var found struct{ Beyond, Connected bool }
	err := tx.Raw(`SELECT
			EXISTS (SELECT FROM members WHERE user_id = ? AND workspace_id <> ?) OR EXISTS (SELECT FROM operators WHERE user_id = ?) AS beyond,
			EXISTS (SELECT FROM members WHERE user_id = ? AND workspace_id = ? AND sign_on_issuer = ? AND sign_on_subject = ?) AS connected`,
		user.ID, workspace, user.ID, user.ID, workspace, proof.Issuer, proof.Subject).Scan(&found).Error
	switch {
	case err != nil:
		return err
	case found.Beyond && !found.Connected && proof.Account != user.ID:
		return tenants.ErrSignOnLink
	case user.VerifiedAt != nil:
		return nil
	case found.Beyond:
		now := time.Now()
		user.VerifiedAt = &now
		return tx.Exec("UPDATE users SET verified_at = ? WHERE id = ?", now, user.ID).Error
	}
	return takeOver(tx, user, isNew)
}

// takeOver gives an account with an unverified address to the person who has proven it.
func takeOver(tx *gorm.DB, user *tenants.User, isNew bool) error {
	now := time.Now()
	user.VerifiedAt = &now
	if err := tx.Exec("UPDATE users SET verified_at = ?, password_hash = '' WHERE id = ?", now, user.ID).Error; err != nil || isNew {
		return err
	}
	for _, statement := range []string{"DELETE FROM second_factors WHERE user_id = ?", "DELETE FROM passkeys WHERE user_id = ?", "DELETE FROM recovery_codes WHERE user_id = ?", "DELETE FROM user_tokens WHERE user_id = ?"} {
		if err := tx.Exec(statement, user.ID).Error; err != nil {
			return err
		}
	}
	if err := endLogins(tx, user.ID, "id <> ?", uuid.Nil); err != nil {
		return err
	}
	return auditPerson(tx, user.ID, tenants.Change{Action: tenants.EmailVerified, Target: user.Email})
}

func joinBySignOn(tx *gorm.DB, workspace tenants.WorkspaceID, user tenants.User, role tenants.Role, proof tenants.SignOnProof) error {
	if err := workFor(tx, forWorkspace, workspace.String()); err != nil {
		return err
	}
	joined := tx.Exec("INSERT INTO members (workspace_id, user_id, role, seen_at) VALUES (?, ?, ?, now()) ON CONFLICT DO NOTHING", workspace, user.ID, string(role))
	if joined.Error != nil {
		return joined.Error
	}
	err := tx.Exec("UPDATE members SET sign_on_issuer = ?, sign_on_subject = ? WHERE workspace_id = ? AND user_id = ?",
		proof.Issuer, proof.Subject, workspace, user.ID).Error
	if err != nil || joined.RowsAffected == 0 {
		return err
	}
	return audit(tx, workspace, tenants.Change{
		Action: tenants.MemberJoined, Target: user.ID.String(), After: tenants.Fields{"email": user.Email, "role": string(role), "through": "single sign-on"},
	})
}

// ownersOnly returns tenants.ErrDenied unless the context's actor owns the workspace now.
func ownersOnly(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	by, err := lockAsActor(tx, workspace)
	if err == nil && !by.May(tenants.ManageSignOn) {
		err = tenants.ErrDenied
	}
	return err
}

// unproveDomains deactivates a workspace's domains until newly published records prove them again.
func unproveDomains(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	var domains []string
	if err := tx.Raw("DELETE FROM sign_on_domains WHERE workspace_id = ? RETURNING domain", workspace).Scan(&domains).Error; err != nil {
		return err
	}
	for _, domain := range domains {
		err := tx.Exec("INSERT INTO sign_on_domains (workspace_id, domain, token) VALUES (?, ?, ?)", workspace, domain, strings.ToLower(rand.Text())).Error
		if err != nil {
			return err
		}
	}
	return nil
}
