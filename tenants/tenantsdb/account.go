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
	err := db.unscoped(ctx, func(tx *gorm.DB) error {
		err := tx.Exec("INSERT INTO account_requests (id, kind, email, password_hash, workspace, address) VALUES (?, ?, ?, ?, ?, ?)",
			uuid.Must(uuid.NewV7()), string(request.Kind), storable(request.Email), request.PasswordHash, storable(request.Workspace), request.From).Error
		if err != nil {
			return err
		}
		return notify(tx, MailsChannel, "")
	})
	return batchdb.Wrapf(err, "keep the request to %s", request.Kind)
}

// AccountRequests returns unanswered requests, the oldest first.
func (db Accounts) AccountRequests(ctx context.Context, limit int) ([]tenants.AccountRequest, error) {
	var rows []requestRow
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Table("account_requests").Select("id, kind, email, password_hash, workspace, address").Order("id").Limit(limit).Find(&rows).Error
	})
	return each(rows, (*requestRow).toRequest), batchdb.Wrapf(err, "account requests")
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
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM account_requests WHERE id = ?", request.ID).Error
	})
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
		for _, letter := range letters {
			if err := send(tx, user, letter); err != nil {
				return err
			}
		}
		for _, mail := range mails {
			if err := queueMail(tx, mail); err != nil {
				return err
			}
		}
		return nil
	})
	return batchdb.Wrapf(err, "send letters to user %s", user)
}

// Token returns the token with a hash if it is valid at a time, or tenants.ErrLinkEnded.
func (db Accounts) Token(ctx context.Context, hash []byte, at time.Time) (tenants.Token, error) {
	var token tenants.Token
	err := db.withToken(ctx, hash, func(tx *gorm.DB) error {
		var err error
		token, err = findToken(tx, hash, at)
		return err
	})
	return token, batchdb.Wrapf(err, "find token")
}

// withToken runs fn in a transaction that sees the token with a hash.
func (db Accounts) withToken(ctx context.Context, hash []byte, fn func(tx *gorm.DB) error) error {
	return db.transaction(ctx, forToken, hex.EncodeToString(hash), fn)
}

// accountOf returns the person with an address, or tenants.ErrNotFound. The rest of the transaction works for
// them.
func accountOf(tx *gorm.DB, email string) (tenants.User, error) {
	if err := workFor(tx, forEmail, email); err != nil {
		return tenants.User{}, err
	}
	var found userRow
	err := tx.Table("users").Select("id, email, created_at, verified_at").Where("email = ?", email).Take(&found).Error
	if err != nil {
		return tenants.User{}, kind(err)
	}
	return found.toUser(), workFor(tx, forUser, found.ID.String())
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
	if err := tx.Exec("DELETE FROM user_tokens WHERE user_id = ? AND expires_at < ?", user, token.CreatedAt).Error; err != nil {
		return err
	}
	// The hash is not the first value because gorm expands bytes behind a parenthesis to a list.
	err := tx.Exec("INSERT INTO user_tokens (kind, hash, user_id, email, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
		string(token.Kind), token.Hash, user, token.Email, token.CreatedAt, token.ExpiresAt).Error
	if err != nil {
		return fmt.Errorf("keep token: %w", err)
	}
	return queueMail(tx, letter.Mail)
}

// hasRecent reports whether a person was recently sent such a letter.
func hasRecent(tx *gorm.DB, user uuid.UUID, token tenants.Token) (bool, error) {
	var recent bool
	err := tx.Raw("SELECT EXISTS (SELECT FROM user_tokens WHERE user_id = ? AND kind = ? AND used_at IS NULL AND created_at > ?)",
		user, string(token.Kind), token.CreatedAt.Add(-letterPause)).Scan(&recent).Error
	return recent, err
}

// findToken returns a token valid at a time, or tenants.ErrLinkEnded.
func findToken(tx *gorm.DB, hash []byte, at time.Time) (tenants.Token, error) {
	var row tokenRow
	err := tx.Table("user_tokens").Select("hash, kind, user_id, email, created_at, expires_at").
		Where("hash = ? AND used_at IS NULL AND expires_at > ?", hash, at).Take(&row).Error
	if errors.Is(kind(err), tenants.ErrNotFound) {
		return tenants.Token{}, tenants.ErrLinkEnded
	}
	return row.toToken(), err
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
	used := tx.Exec("UPDATE user_tokens SET used_at = ? WHERE hash = ? AND used_at IS NULL", at, hash)
	if used.Error == nil && used.RowsAffected == 0 {
		return tenants.Token{}, tenants.ErrLinkEnded
	}
	return token, used.Error
}

type requestRow struct {
	ID           uuid.UUID
	Kind         string
	Email        string
	PasswordHash string
	Workspace    string
	Address      string
}

func (r requestRow) toRequest() tenants.AccountRequest {
	return tenants.AccountRequest{
		ID: r.ID, Kind: tenants.RequestKind(r.Kind), Email: r.Email, PasswordHash: r.PasswordHash, Workspace: r.Workspace, From: r.Address,
	}
}

type tokenRow struct {
	Hash      []byte
	Kind      string
	UserID    uuid.UUID
	Email     string
	CreatedAt time.Time
	ExpiresAt time.Time
}

func (r tokenRow) toToken() tenants.Token {
	return tenants.Token{
		Hash: r.Hash, Kind: tenants.TokenKind(r.Kind), User: r.UserID, Email: r.Email, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
	}
}
