package tenantsdb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// letterPause is the minimum time between two letters of a kind to one person, for requests by address.
const letterPause = time.Minute

// Accounts stores people: their sign-ups, addresses, passwords and requests by mail.
type Accounts struct{ *core }

// AskAccount stores a request by an address. It does the same for known and unknown addresses.
func (db Accounts) AskAccount(ctx context.Context, request tenants.AccountRequest) error {
	request.ID = uuid.Must(uuid.NewV7())
	err := db.unscoped(ctx, func(tx *gorm.DB) error {
		return errors.Join(create(tx, "account_requests", &request), notify(tx, MailsChannel, ""))
	})
	return batchdb.Wrapf(err, "keep the request to %s", request.Kind)
}

// AccountRequests returns unanswered requests, the oldest first.
func (db Accounts) AccountRequests(ctx context.Context, limit int) ([]tenants.AccountRequest, error) {
	requests, err := batchdb.Read(ctx, db.asWorker, func(tx *gorm.DB) ([]tenants.AccountRequest, error) {
		return list[tenants.AccountRequest](tx.Table("account_requests").Order("id").Limit(limit))
	})
	return requests, batchdb.Wrapf(err, "account requests")
}

// AnswerRequest performs a request and sends its letter, or only the mail known if a sign-up names a known
// address. It sends no mail to people without an account, or for an address that is already verified. A
// request that was answered before has no effect. A sign-up for the first person alone stays in the queue if
// another was first: tenants.ErrNotFirst.
func (db Accounts) AnswerRequest(ctx context.Context, request tenants.AccountRequest, letter tenants.LinkMail, known tenants.Mail) error {
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		deleted := tx.Exec("DELETE FROM account_requests WHERE id = ?", request.ID)
		if deleted.Error != nil || deleted.RowsAffected == 0 {
			return deleted.Error
		}
		user, err := accountOf(tx, request.Email)
		isKnown := err == nil
		switch {
		case err != nil && !errors.Is(err, tenants.ErrNotFound):
			return err
		case request.Kind == tenants.RequestSignUp && isKnown:
			return queueMail(tx, known)
		case request.Kind == tenants.RequestSignUp:
			return answerSignUp(tx, request, letter)
		case !isKnown, request.Kind == tenants.RequestVerify && user.VerifiedAt != nil:
			return nil
		}
		if recent, err := hasRecent(tx, user.ID, letter.Token); err != nil || recent {
			return err
		}
		return send(tx, user.ID, letter)
	})
	return batchdb.Wrapf(err, "answer the request to %s", request.Kind)
}

// DropRequest deletes a request without an answer.
func (db Accounts) DropRequest(ctx context.Context, request tenants.AccountRequest) error {
	err := batchdb.Exec(ctx, db.asWorker, "DELETE FROM account_requests WHERE id = ?", request.ID)
	return batchdb.Wrapf(err, "drop the request to %s", request.Kind)
}

// RefuseSignUp deletes a sign-up request and sends the mail refused, or known if its address is known. A
// request that was answered before has no effect.
func (db Accounts) RefuseSignUp(ctx context.Context, request tenants.AccountRequest, refused, known tenants.Mail) error {
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		deleted := tx.Exec("DELETE FROM account_requests WHERE id = ?", request.ID)
		if deleted.Error != nil || deleted.RowsAffected == 0 {
			return deleted.Error
		}
		switch _, err := accountOf(tx, request.Email); {
		case errors.Is(err, tenants.ErrNotFound):
			return queueMail(tx, refused)
		case err != nil:
			return err
		}
		return queueMail(tx, known)
	})
	return batchdb.Wrapf(err, "refuse a sign-up")
}

// SendLetters sends letters to a person.
func (db Accounts) SendLetters(ctx context.Context, user uuid.UUID, letters []tenants.LinkMail, mails ...tenants.Mail) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		return errors.Join(sendAll(tx, user, letters), queueMails(tx, mails))
	})
	return batchdb.Wrapf(err, "send letters to user %s", user)
}

// Token returns the token with a hash if it is valid at a time, or tenants.ErrLinkEnded.
func (db Accounts) Token(ctx context.Context, hash []byte, at time.Time) (tenants.Token, error) {
	token, err := batchdb.Read(ctx, db.withToken(hash), func(tx *gorm.DB) (tenants.Token, error) { return findToken(tx, hash, at) })
	return token, batchdb.Wrapf(err, "find token")
}

// withToken is the scope of the token, invitation or login with a hash.
func (c *core) withToken(hash []byte) batchdb.Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error {
		return c.transaction(ctx, forToken, hex.EncodeToString(hash), fn)
	}
}

// accountOf returns the person with an address, or tenants.ErrNotFound. The rest of the transaction works for
// them.
func accountOf(tx *gorm.DB, email string) (tenants.User, error) {
	if err := workFor(tx, forEmail, email); err != nil {
		return tenants.User{}, err
	}
	found, err := userWhere(tx, "email = ?", email)
	if err != nil {
		return tenants.User{}, err
	}
	return found, workFor(tx, forUser, found.ID.String())
}

func answerSignUp(tx *gorm.DB, request tenants.AccountRequest, letter tenants.LinkMail) error {
	user := tenants.User{ID: uuid.Must(uuid.NewV7()), Email: request.Email, MustVerify: true}
	workspace := tenants.Workspace{ID: tenants.NewWorkspaceID(), Name: request.Workspace}
	actor := tenants.Actor{User: user.ID, Name: user.Email, From: request.From}
	tx = tx.WithContext(tenants.WithActor(tx.Statement.Context, actor))
	if err := workFor(tx, forUser, user.ID.String()); err != nil {
		return err
	}
	return signUp(tx, &user, request.PasswordHash, &workspace, request.OnlyFirst, []tenants.LinkMail{letter})
}

// send stores a letter's token and queues its mail, in a transaction of the person.
func send(tx *gorm.DB, user uuid.UUID, letter tenants.LinkMail) error {
	token := letter.Token
	if err := batchdb.Write(tx, "DELETE FROM user_tokens WHERE user_id = ? AND expires_at < ?", user, token.CreatedAt); err != nil {
		return err
	}
	token.User = user
	return errors.Join(create(tx, "user_tokens", &token), queueMail(tx, letter.Mail))
}

// sendAll sends letters to a person.
func sendAll(tx *gorm.DB, user uuid.UUID, letters []tenants.LinkMail) error {
	var failures []error
	for _, letter := range letters {
		failures = append(failures, send(tx, user, letter))
	}
	return errors.Join(failures...)
}

// hasRecent reports whether a person was recently sent such a letter.
func hasRecent(tx *gorm.DB, user uuid.UUID, token tenants.Token) (bool, error) {
	return batchdb.Query[bool](tx, "SELECT EXISTS (SELECT FROM user_tokens WHERE user_id = ? AND kind = ? AND used_at IS NULL AND created_at > ?)",
		user, token.Kind, token.CreatedAt.Add(-letterPause))
}

// findToken returns a token valid at a time, or tenants.ErrLinkEnded.
func findToken(tx *gorm.DB, hash []byte, at time.Time) (tenants.Token, error) {
	token, err := find[tenants.Token](tx.Table("user_tokens").Where("hash = ? AND used_at IS NULL AND expires_at > ?", hash, at))
	if errors.Is(err, tenants.ErrNotFound) {
		err = tenants.ErrLinkEnded
	}
	return token, err
}

// useToken uses up a token: exactly one of several concurrent transactions succeeds. The rest of the
// transaction works for the token's person.
func useToken(tx *gorm.DB, hash []byte, at time.Time) (tenants.Token, error) {
	token, err := findToken(tx, hash, at)
	if err != nil {
		return tenants.Token{}, err
	}
	if err := workFor(tx, forUser, token.User.String()); err != nil {
		return tenants.Token{}, err
	}
	return token, changedOne(tx.Exec("UPDATE user_tokens SET used_at = ? WHERE hash = ? AND used_at IS NULL", at, hash), tenants.ErrLinkEnded)
}

// ResetPassword sets another password for the person of a token valid at a time, and ends all their logins.
// The token also verifies the person's address. notice returns the mail to them. It returns
// tenants.ErrLinkEnded.
func (db Accounts) ResetPassword(ctx context.Context, hash []byte, at time.Time, passwordHash string, notice func(tenants.User) tenants.Mail) error {
	err := db.withToken(hash)(ctx, func(tx *gorm.DB) error {
		tx, _, user, err := redeem(tx, hash, at, tenants.TokenReset)
		if err != nil {
			return err
		}
		if err := setPassword(tx, user, uuid.Nil, passwordHash, notice(user)); err != nil {
			return err
		}
		return errors.Join(
			batchdb.Write(tx, "UPDATE users SET verified_at = coalesce(verified_at, ?) WHERE id = ?", at, user.ID),
			notify(tx, KeysChannel, user.ID.String()), // their workspaces may now be usable
			batchdb.Write(tx, "UPDATE user_tokens SET used_at = ? WHERE user_id = ? AND kind = ? AND used_at IS NULL", at, user.ID, tenants.TokenReset))
	})
	return batchdb.Wrapf(err, "reset password")
}

// ChangePassword sets another password, notifies the person, and ends all their logins except one.
func (db Accounts) ChangePassword(ctx context.Context, user tenants.User, keep uuid.UUID, passwordHash string, notice tenants.Mail) error {
	err := db.inUser(ctx, user.ID, func(tx *gorm.DB) error { return setPassword(tx, user, keep, passwordHash, notice) })
	return batchdb.Wrapf(err, "change password")
}

// RenewPasswordHash stores another hash of a person's password, unless the password was changed meanwhile.
func (db Accounts) RenewPasswordHash(ctx context.Context, user uuid.UUID, old, hash string) error {
	err := batchdb.Exec(ctx, db.user(user), "UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?", hash, user, old)
	return batchdb.Wrapf(err, "renew the hash of a password")
}

// ConfirmEmail redeems a token that proves an address. It marks the person's address as verified, or changes
// their address to the proven one and sends the mail of notice to the old one. It returns the token,
// tenants.ErrLinkEnded, or tenants.ErrEmailTaken.
func (db Accounts) ConfirmEmail(ctx context.Context, hash []byte, at time.Time, notice func(before, after string) tenants.Mail) (tenants.Token, error) {
	var token tenants.Token
	err := db.withToken(hash)(ctx, func(tx *gorm.DB) error {
		tx, used, user, err := redeem(tx, hash, at, tenants.TokenVerify, tenants.TokenEmail)
		if err != nil {
			return err
		}
		token = used
		change := tenants.Change{Action: tenants.EmailVerified, Target: user.Email}
		if token.Kind == tenants.TokenEmail {
			change = tenants.Change{
				Action: tenants.EmailChanged, Target: user.ID.String(),
				Before: tenants.Fields{"email": user.Email}, After: tenants.Fields{"email": token.Email},
			}
			if err := queueMail(tx, notice(user.Email, token.Email)); err != nil {
				return err
			}
		}
		err = tx.Exec("UPDATE users SET email = ?, verified_at = ? WHERE id = ?", token.Email, at, user.ID).Error
		if isDuplicate(err) || errors.Is(err, gorm.ErrDuplicatedKey) {
			return tenants.ErrEmailTaken
		}
		if err != nil {
			return err
		}
		if err := auditPerson(tx, user.ID, change); err != nil {
			return err
		}
		return errors.Join(
			notify(tx, KeysChannel, user.ID.String()),   // their workspaces may now be usable
			notify(tx, LoginsChannel, user.ID.String())) // cached logins contain the address
	})
	return token, batchdb.Wrapf(err, "confirm address")
}

// VerifyUser marks a person's address as their own.
func (db Accounts) VerifyUser(ctx context.Context, user uuid.UUID) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		return errors.Join(batchdb.Write(tx, "UPDATE users SET verified_at = coalesce(verified_at, now()) WHERE id = ?", user), notify(tx, KeysChannel, user.String()))
	})
	return batchdb.Wrapf(err, "verify user %s", user)
}

// redeem uses up a token of the given kinds and returns it with its person. The returned transaction works on
// behalf of that person. A token for an address that the person no longer has is invalid, unless it changes the
// address.
func redeem(tx *gorm.DB, hash []byte, at time.Time, kinds ...tenants.TokenKind) (*gorm.DB, tenants.Token, tenants.User, error) {
	token, err := useToken(tx, hash, at)
	if err != nil {
		return nil, tenants.Token{}, tenants.User{}, err
	}
	found, err := userWhere(tx, "id = ?", token.User)
	if err != nil {
		return nil, tenants.Token{}, tenants.User{}, err
	}
	good := false
	for _, kind := range kinds {
		good = good || token.Kind == kind && (kind == tenants.TokenEmail || token.Email == found.Email)
	}
	if !good {
		return nil, tenants.Token{}, tenants.User{}, tenants.ErrLinkEnded
	}
	ctx := tx.Statement.Context
	actor := tenants.Actor{User: found.ID, Name: found.Email, From: tenants.ActorOf(ctx).From}
	return tx.WithContext(tenants.WithActor(ctx, actor)), token, found, nil
}

// setPassword works in a transaction of the person.
func setPassword(tx *gorm.DB, user tenants.User, keep uuid.UUID, passwordHash string, notice tenants.Mail) error {
	if err := batchdb.Write(tx, "UPDATE users SET password_hash = ? WHERE id = ?", passwordHash, user.ID); err != nil {
		return err
	}
	if err := endLogins(tx, user.ID, "id <> ?", keep); err != nil {
		return err
	}
	return errors.Join(auditPerson(tx, user.ID, tenants.Change{Action: tenants.PasswordChanged, Target: user.Email}), queueMail(tx, notice))
}

// auditPerson records a person's change to their account in the audit log of each of their workspaces.
func auditPerson(tx *gorm.DB, user uuid.UUID, change tenants.Change) error {
	workspaces, err := batchdb.Query[[]tenants.WorkspaceID](tx, "SELECT workspace_id FROM members WHERE user_id = ? ORDER BY workspace_id", user)
	if err != nil {
		return err
	}
	for _, workspace := range workspaces {
		if err := errors.Join(workFor(tx, forWorkspace, workspace.String()), audit(tx, workspace, change)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteAccount deletes a person with their memberships, logins, second factors and passkeys. If their API
// keys are not revoked, they continue as endKeysOf describes. Entries about the person in audit logs
// stay. It returns a tenants.OnlyOwner of a workspace without another owner, and tenants.ErrOperator.
func (db Accounts) DeleteAccount(ctx context.Context, user uuid.UUID, revokeKeys bool) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		workspaces, err := batchdb.Query[[]tenants.Workspace](tx, `SELECT w.workspace_id AS id, w.name FROM members m JOIN workspaces w USING (workspace_id)
			WHERE m.user_id = ? ORDER BY w.workspace_id`, user)
		if err != nil {
			return err
		}
		for _, workspace := range workspaces {
			err := leave(tx, workspace.ID, user, revokeKeys)
			if errors.Is(err, tenants.ErrLastOwner) {
				return tenants.OnlyOwner{Workspace: workspace.Name}
			}
			if err != nil {
				return fmt.Errorf("leave workspace %s: %w", workspace.ID, err)
			}
		}
		deleted, err := deleteUser(tx, user)
		if err == nil && !deleted {
			return tenants.ErrOperator
		}
		return err
	})
	return batchdb.Wrapf(err, "delete account %s", user)
}

// deleteUser deletes the transaction's person, unless they belong to a workspace or are an operator, and
// makes all replicas forget their logins. Operators stay because otherwise the next person to sign up would
// become one.
func deleteUser(tx *gorm.DB, user uuid.UUID) (deleted bool, err error) {
	gone := tx.Exec(`DELETE FROM users u WHERE u.id = ? AND NOT EXISTS (SELECT FROM members m WHERE m.user_id = u.id)
		AND NOT EXISTS (SELECT FROM operators o WHERE o.user_id = u.id)`, user)
	if gone.Error != nil || gone.RowsAffected == 0 {
		return false, gone.Error
	}
	return true, notify(tx, LoginsChannel, user.String())
}

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

func insertUser(tx *gorm.DB, user *tenants.User, passwordHash string) error {
	err := tx.Raw("INSERT INTO users (id, email, password_hash, must_verify) VALUES (?, ?, ?, ?) RETURNING created_at",
		user.ID, user.Email, passwordHash, user.MustVerify).Scan(&user.CreatedAt).Error
	if isDuplicate(err) {
		return tenants.ErrEmailTaken
	}
	return err
}

// userWhere returns the person who matches a condition, or tenants.ErrNotFound.
func userWhere(tx *gorm.DB, condition string, values ...any) (tenants.User, error) {
	return find[tenants.User](tx.Table("users").Select("id, email, created_at, verified_at").Where(condition, values...))
}
