package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/tenants"
)

// prover verifies passwords and slows down guessing.
type prover struct {
	store     Store
	passwords *passwords
	throttle  tenants.Throttle
	now       func() time.Time
}

// verify returns the user with the address of tries and a password.
func (p *prover) verify(ctx context.Context, password string, tries tries) (tenants.User, error) {
	if err := p.mayTry(ctx, tries); err != nil {
		return tenants.User{}, err
	}
	release, err := p.passwords.acquire(ctx)
	if err != nil {
		return tenants.User{}, err
	}
	defer release()
	// Check again, because concurrent attempts may have failed meanwhile.
	if err := p.mayTry(ctx, tries); err != nil {
		return tenants.User{}, err
	}
	user, hash, err := p.store.UserByEmail(ctx, tries.email)
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return tenants.User{}, fmt.Errorf("log in: %w", err)
	}
	matches, current, err := p.passwords.matches(password, hash)
	if err != nil {
		return tenants.User{}, err
	}
	if !matches {
		return tenants.User{}, p.failed(ctx, tries, tenants.ErrWrongLogin)
	}
	if !current {
		return user, p.renewHash(ctx, user, password, hash)
	}
	return user, nil
}

// renewHash stores a verified password under a hash with the current parameters. The caller holds a slot.
func (p *prover) renewHash(ctx context.Context, user tenants.User, password, old string) error {
	hash, err := p.passwords.hash(password)
	if err != nil {
		return err
	}
	return p.store.RenewPasswordHash(ctx, user.ID, old, hash)
}

// Confirm returns nil if the password is that of a logged-in user. It is needed before actions that cannot be
// undone. It returns tenants.ErrWrongLogin, or tenants.ErrTooMany as LogIn does, since both share their count
// of failures.
func (p *prover) Confirm(ctx context.Context, user tenants.User, password, from string) error {
	_, err := p.verify(ctx, password, logInTries(user.Email, from))
	return err
}

// ConfirmPassword requires a logged-in person's password. It returns a tenants.Invalid for password, or a
// tenants.TooMany.
func (p *prover) ConfirmPassword(ctx context.Context, who tenants.Principal, password string) error {
	return p.confirm(ctx, who, "password", password)
}

// confirm requires a logged-in person's password. It also limits the mails that the confirmed action sends.
func (p *prover) confirm(ctx context.Context, who tenants.Principal, field, password string) error {
	_, err := p.verify(ctx, password, confirmTries(who.User, tenants.ActorOf(ctx).Place()))
	if errors.Is(err, tenants.ErrWrongLogin) {
		return tenants.Invalid{Field: field, Message: "is not your password"}
	}
	if err != nil {
		return err
	}
	return p.throttle.Take(ctx, tenants.Count{Of: "changes of " + who.User.ID.String(), Most: changesOfOne, Window: signUpWindow})
}

// hash hashes a password after waiting for a slot.
func (p *prover) hash(ctx context.Context, password string) (string, error) {
	release, err := p.passwords.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return p.passwords.hash(password)
}
