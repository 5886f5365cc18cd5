package identity

import (
	"context"
	"crypto/rand"
	"encoding/base64"
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

// The paths of links, also defined in web/paths.
const (
	resetPath  = "/reset/"
	verifyPath = "/verify/"
)

// letters writes mails.
type letters struct {
	mails Mails
	now   func() time.Time
}

func (l *letters) resetLetter(email string) tenants.LinkMail {
	secret, token := l.newToken(tenants.TokenReset, email, tenants.ResetAge)
	return tenants.LinkMail{Token: token, Mail: tenants.Mail{To: email, Subject: "Set a new password", Text: `Someone asked to set a new password for the Palimpsest account of this address. Open this link to do so:

` + l.mails.PublicURL + resetPath + secret + `

It works once, within an hour. All logins of the account end then.

If that was not you, ignore this mail: nothing has changed.
`}}
}

func (l *letters) verifyLetter(email string) tenants.LinkMail {
	secret, token := l.newToken(tenants.TokenVerify, email, tenants.VerifyAge)
	return tenants.LinkMail{Token: token, Mail: tenants.Mail{To: email, Subject: "Verify your e-mail address", Text: `This address was given for a Palimpsest account. Open this link to verify that it is yours:

` + l.mails.PublicURL + verifyPath + secret + `

It works once, within 24 hours.

If you did not sign up, ignore this mail.
`}}
}

func (l *letters) emailLetter(email string) tenants.LinkMail {
	secret, token := l.newToken(tenants.TokenEmail, email, tenants.VerifyAge)
	return tenants.LinkMail{Token: token, Mail: tenants.Mail{To: email, Subject: "Confirm your new e-mail address", Text: `This address is to become that of a Palimpsest account. Open this link to confirm it:

` + l.mails.PublicURL + verifyPath + secret + `

It works once, within 24 hours. Until then the account keeps its old address.

If that was not you, ignore this mail: nothing has changed.
`}}
}

func (l *letters) knownMail(email string) tenants.Mail {
	return tenants.Mail{To: email, Subject: "You have an account already", Text: `Someone signed up at Palimpsest with this address, which has an account already. Nothing has changed. Log in here:

` + l.mails.PublicURL + `/login

If you do not know your password, set a new one here:

` + l.mails.PublicURL + `/reset
`}
}

func (l *letters) refusedMail(email string) tenants.Mail {
	return tenants.Mail{To: email, Subject: "Sign-up is by invitation", Text: `Someone signed up at Palimpsest with this address. This installation takes no sign-up from it, so no account was made. Ask someone who is there already for an invitation:

` + l.mails.PublicURL + `

If you did not sign up, ignore this mail.
`}
}

func (l *letters) passwordMail(user tenants.User) tenants.Mail {
	return tenants.Mail{To: user.Email, Subject: "Your password was changed", Text: `The password of your Palimpsest account was changed, and its other logins have ended.

If that was not you, set a new password here at once:

` + l.mails.PublicURL + `/reset
`}
}

func (l *letters) emailAskedMail(before, after string) tenants.Mail {
	return tenants.Mail{To: before, Subject: "Your e-mail address is to be changed", Text: `Someone who is logged in to your Palimpsest account, and knows its password, asked to change its address to ` + after + `. It changes once the link in a mail to that address is opened.

If that was not you, set a new password here at once:

` + l.mails.PublicURL + `/reset
`}
}

func (l *letters) emailChangedMail(before, after string) tenants.Mail {
	return tenants.Mail{To: before, Subject: "Your e-mail address was changed", Text: `The address of your Palimpsest account is now ` + after + `. Mails for it no longer come here.
`}
}

// newToken returns the secret of a link and its stored token.
func (l *letters) newToken(kind tenants.TokenKind, email string, age time.Duration) (secret string, token tenants.Token) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails
	secret = base64.RawURLEncoding.EncodeToString(random)
	now := l.now()
	return secret, tenants.Token{Hash: hashToken(secret), Kind: kind, Email: email, CreatedAt: now, ExpiresAt: now.Add(age)}
}
