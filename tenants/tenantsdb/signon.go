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

// SignOn stores workspaces' single sign-ons and domains.
type SignOn struct{ *core }

// SignOn returns the single sign-on of a workspace, or tenants.ErrNotFound.
func (db SignOn) SignOn(ctx context.Context, workspace tenants.WorkspaceID) (tenants.SignOn, error) {
	found, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) (tenants.SignOn, error) { return findSignOn(tx, workspace) })
	return found, batchdb.Wrapf(err, "sign-on")
}

// SaveSignOn stores the single sign-on of a workspace, on behalf of an owner. After a change of the issuer,
// its domains must be proven again. It returns tenants.ErrDenied for others.
func (db SignOn) SaveSignOn(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.SignOn) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := ownersOnly(tx, workspace); err != nil {
			return err
		}
		change := tenants.Change{Action: tenants.SignOnSaved, Target: wanted.Issuer, After: wanted.Fields()}
		before, err := findSignOn(tx, workspace)
		if err == nil {
			change.Before = before.Fields()
			if before.Issuer != wanted.Issuer {
				if err := unproveDomains(tx, workspace); err != nil {
					return err
				}
			}
		} else if !errors.Is(err, tenants.ErrNotFound) {
			return err
		}
		return errors.Join(batchdb.Write(tx, `INSERT INTO sign_ons (workspace_id, issuer, client_id, sealed, role) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id, sealed = excluded.sealed,
				role = excluded.role, saved_at = now()`, workspace, wanted.Issuer, wanted.ClientID, wanted.Sealed, wanted.Role),
			audit(tx, workspace, change))
	})
	return batchdb.Wrapf(err, "save sign-on")
}

// RemoveSignOn ends the single sign-on of a workspace, on behalf of an owner, or returns tenants.ErrNotFound
// or tenants.ErrDenied. Its domains stay, but must be proven again.
func (db SignOn) RemoveSignOn(ctx context.Context, workspace tenants.WorkspaceID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := ownersOnly(tx, workspace); err != nil {
			return err
		}
		before, err := findSignOn(tx, workspace)
		if err != nil {
			return err
		}
		return errors.Join(unproveDomains(tx, workspace), batchdb.Write(tx, "DELETE FROM sign_ons WHERE workspace_id = ?", workspace),
			audit(tx, workspace, tenants.Change{Action: tenants.SignOnRemoved, Target: before.Issuer, Before: before.Fields()}))
	})
	return batchdb.Wrapf(err, "remove sign-on")
}

// ResealSignOn replaces a sealed client secret, unless it has been replaced already.
func (db SignOn) ResealSignOn(ctx context.Context, workspace tenants.WorkspaceID, old, sealed []byte) error {
	err := batchdb.Exec(ctx, db.tenant(workspace), "UPDATE sign_ons SET sealed = ? WHERE workspace_id = ? AND sealed = ?", sealed, workspace, old)
	return batchdb.Wrapf(err, "reseal sign-on")
}

// Domains returns the domains that a workspace claims, by name.
func (db SignOn) Domains(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Domain, error) {
	domains, err := all[tenants.Domain](ctx, db.tenant(workspace), "sign_on_domains", "domain", "workspace_id = ?", workspace)
	return domains, batchdb.Wrapf(err, "domains")
}

// ClaimDomain stores a domain for proof. An existing one stays unchanged.
func (db SignOn) ClaimDomain(ctx context.Context, workspace tenants.WorkspaceID, domain, token string) error {
	return db.changeDomain(ctx, workspace, tenants.Change{Action: tenants.DomainClaimed, Target: domain}, nil,
		"INSERT INTO sign_on_domains (workspace_id, domain, token) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", workspace, domain, token)
}

// ProveDomain activates a domain for a workspace. It returns tenants.ErrNotFound if the domain is unclaimed
// or already proven, and tenants.ErrConflict if it is active for another workspace.
func (db SignOn) ProveDomain(ctx context.Context, workspace tenants.WorkspaceID, domain string) error {
	return db.changeDomain(ctx, workspace, tenants.Change{Action: tenants.DomainProven, Target: domain}, tenants.ErrNotFound,
		"UPDATE sign_on_domains SET proven_at = now() WHERE workspace_id = ? AND domain = ? AND proven_at IS NULL", workspace, domain)
}

// RemoveDomain removes a domain from a workspace, or returns tenants.ErrNotFound.
func (db SignOn) RemoveDomain(ctx context.Context, workspace tenants.WorkspaceID, domain string) error {
	return db.changeDomain(ctx, workspace, tenants.Change{Action: tenants.DomainRemoved, Target: domain}, tenants.ErrNotFound,
		"DELETE FROM sign_on_domains WHERE workspace_id = ? AND domain = ?", workspace, domain)
}

// changeDomain runs a statement on behalf of an owner and records the change. It returns the error none if no
// row changed.
func (db SignOn) changeDomain(ctx context.Context, workspace tenants.WorkspaceID, change tenants.Change, none error, statement string, values ...any) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := ownersOnly(tx, workspace); err != nil {
			return err
		}
		done := tx.Exec(statement, values...)
		if isDuplicate(done.Error) || errors.Is(done.Error, gorm.ErrDuplicatedKey) {
			return tenants.ErrConflict
		}
		if done.Error != nil || done.RowsAffected == 0 {
			return changedOne(done, none)
		}
		return audit(tx, workspace, change)
	})
	return batchdb.Wrapf(err, "domain %s", change.Target)
}

// SignOnWorkspace returns the workspace with a proven domain, or tenants.ErrNotFound.
func (db SignOn) SignOnWorkspace(ctx context.Context, domain string) (tenants.WorkspaceID, error) {
	var found []tenants.WorkspaceID
	err := db.transaction(ctx, forDomain, domain, func(tx *gorm.DB) error {
		return tx.Raw("SELECT workspace_id FROM sign_on_domains WHERE domain = ? AND proven_at IS NOT NULL", domain).Scan(&found).Error
	})
	workspace, err := batchdb.First(found, err, tenants.ErrNotFound)
	return workspace, batchdb.Wrapf(err, "workspace of domain")
}

func findSignOn(tx *gorm.DB, workspace tenants.WorkspaceID) (tenants.SignOn, error) {
	return find[tenants.SignOn](tx.Table("sign_ons").Where("workspace_id = ?", workspace))
}

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
	proven, err := batchdb.Query[bool](tx, "SELECT EXISTS (SELECT FROM sign_on_domains WHERE workspace_id = ? AND domain = ? AND proven_at IS NOT NULL)", workspace, domain)
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
		return batchdb.Write(tx, "UPDATE users SET verified_at = ? WHERE id = ?", now, user.ID)
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
		if err := batchdb.Write(tx, statement, user.ID); err != nil {
			return err
		}
	}
	return errors.Join(endLogins(tx, user.ID, "id <> ?", uuid.Nil), auditPerson(tx, user.ID, tenants.Change{Action: tenants.EmailVerified, Target: user.Email}))
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
	domains, err := batchdb.Query[[]string](tx, "DELETE FROM sign_on_domains WHERE workspace_id = ? RETURNING domain", workspace)
	for _, domain := range domains {
		err = errors.Join(err, batchdb.Write(tx, "INSERT INTO sign_on_domains (workspace_id, domain, token) VALUES (?, ?, ?)", workspace, domain, strings.ToLower(rand.Text())))
	}
	return err
}
