package passkey

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Ask returns the options for the browser of an unknown person, as JSON, and the state that it must hold
// until it answers with LogIn. It returns tenants.ErrPasskey if passkeys are off.
func (s *Service) Ask() (options []byte, held string, err error) {
	if !s.IsOn() {
		return nil, "", fmt.Errorf("%w: passkeys are off", tenants.ErrPasskey)
	}
	under, held, err := s.ask(asked{For: toLogIn})
	if err != nil {
		return nil, "", err
	}
	assertion, _, err := s.relying.BeginDiscoverableLogin(webauthn.WithChallenge(under.Challenge), webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, "", fmt.Errorf("passkey: %w", err)
	}
	options, err = optionsJSON(assertion)
	return options, held, err
}

// LogIn logs in anyone with a passkey that answers the held challenge, and returns their login's token. It
// needs no second factor because the device has verified its user. It returns tenants.ErrPasskey, or a
// tenants.TooMany.
func (s *Service) LogIn(ctx context.Context, held, answer, userAgent string) (token string, err error) {
	return s.throttled(ctx, func() (string, error) {
		under, err := s.open(held, toLogIn)
		if err != nil {
			return "", err
		}
		parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
		if err != nil {
			return "", refused(err)
		}
		user, err := uuid.FromBytes(parsed.Response.UserHandle)
		if err != nil {
			return "", refused(err)
		}
		person, err := s.owner(ctx, user)
		if err != nil {
			return "", err
		}
		_, session, err := s.relying.BeginDiscoverableLogin(webauthn.WithChallenge(under.Challenge), webauthn.WithUserVerification(protocol.VerificationRequired))
		if err != nil {
			return "", fmt.Errorf("passkey: %w", err)
		}
		_, credential, err := s.relying.ValidatePasskeyLogin(func([]byte, []byte) (webauthn.User, error) { return person, nil }, *session, parsed)
		if err != nil {
			return "", refused(err)
		}
		return s.admit(ctx, under, person, credential, userAgent)
	})
}

// AskSecond returns the options for the browser of someone who has typed their password, as JSON, and the
// state that it must hold until it answers with LogInSecond. It returns tenants.ErrLoginEnded for an expired
// log-in, and tenants.ErrPasskey for someone without a passkey.
func (s *Service) AskSecond(ctx context.Context, pending string) (options []byte, held string, err error) {
	user, err := s.Accounts.Pending(ctx, pending)
	if err != nil {
		return nil, "", err
	}
	if !s.IsOn() {
		return nil, "", fmt.Errorf("%w: passkeys are off", tenants.ErrPasskey)
	}
	person, err := s.owner(ctx, user.ID)
	if err != nil {
		return nil, "", err
	}
	under, held, err := s.ask(asked{For: toFollow, User: user.ID})
	if err != nil {
		return nil, "", err
	}
	assertion, _, err := s.second(under, person)
	if err != nil {
		return nil, "", err
	}
	options, err = optionsJSON(assertion)
	return options, held, err
}

// LogInSecond logs in someone who has typed their password and whose passkey answers the held challenge. It
// returns the errors of LogIn, and tenants.ErrLoginEnded for an expired log-in.
func (s *Service) LogInSecond(ctx context.Context, pending, held, answer, userAgent string) (token string, err error) {
	user, err := s.Accounts.Pending(ctx, pending)
	if err != nil {
		return "", err
	}
	return s.throttled(ctx, func() (string, error) {
		under, err := s.open(held, toFollow)
		if err != nil {
			return "", err
		}
		if under.User != user.ID {
			return "", fmt.Errorf("%w: someone else was asked", tenants.ErrPasskey)
		}
		parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
		if err != nil {
			return "", refused(err)
		}
		person, err := s.owner(ctx, user.ID)
		if err != nil {
			return "", err
		}
		_, session, err := s.second(under, person)
		if err != nil {
			return "", err
		}
		credential, err := s.relying.ValidateLogin(person, *session, parsed)
		if err != nil {
			return "", refused(err)
		}
		return s.admit(ctx, under, person, credential, userAgent)
	})
}

// second returns the options for a known person's browser. Their device need not verify them because the
// password has.
func (s *Service) second(under asked, person owner) (*protocol.CredentialAssertion, *webauthn.SessionData, error) {
	assertion, session, err := s.relying.BeginLogin(person, webauthn.WithChallenge(under.Challenge), webauthn.WithUserVerification(protocol.VerificationPreferred))
	if err != nil {
		return nil, nil, refused(err) // no passkey
	}
	return assertion, session, nil
}

// admit logs in the owner of a passkey after its answer. If the passkey's count has not risen, it was copied:
// this log-in and all later ones are refused (level 3, section 6.1.1).
func (s *Service) admit(ctx context.Context, under asked, person owner, credential *webauthn.Credential, userAgent string) (string, error) {
	var used tenants.Passkey
	for _, passkey := range person.passkeys {
		if bytes.Equal(passkey.Credential, credential.ID) {
			used = passkey
		}
	}
	ctx = tenants.WithActor(ctx, tenants.Actor{User: person.user.ID, Name: person.user.Email, From: tenants.ActorOf(ctx).From})
	if !used.CopiedAt.IsZero() {
		return "", tenants.ErrPasskeyCopied
	}
	if credential.Authenticator.CloneWarning {
		notice := s.Accounts.FactorMail(person.user, tenants.PasskeyCopied, used.Name)
		return "", errors.Join(tenants.ErrPasskeyCopied, s.Store.NotePasskeyCopied(ctx, person.user.ID, used, s.Now(), notice))
	}
	used.SignCount, used.BackedUp, used.UsedAt = credential.Authenticator.SignCount, credential.Flags.BackupState, s.Now()
	if err := s.Store.UsePasskey(ctx, person.user.ID, used, under.hash()); err != nil {
		return "", err
	}
	_, token, err := s.Accounts.OpenWithPasskey(ctx, person.user, userAgent)
	if errors.Is(err, tenants.ErrWrongLogin) {
		return "", refused(err)
	}
	return token, err
}

// owner returns a user with their passkeys, or tenants.ErrPasskey if the user does not exist.
func (s *Service) owner(ctx context.Context, user uuid.UUID) (owner, error) {
	found, passkeys, err := s.Store.PasskeyOwner(ctx, user)
	if errors.Is(err, tenants.ErrNotFound) {
		return owner{}, refused(err)
	}
	return owner{user: found, passkeys: passkeys}, err
}

// throttled counts refused passkeys by place.
func (s *Service) throttled(ctx context.Context, try func() (string, error)) (string, error) {
	const attempt = "passkeys"
	if err := s.Throttle.Check(ctx, attempt); err != nil {
		return "", err
	}
	token, err := try()
	if errors.Is(err, tenants.ErrPasskey) {
		return "", errors.Join(err, s.Throttle.Failed(ctx, attempt))
	}
	return token, err
}

// purpose is the purpose of a challenge.
type purpose string

const (
	toRegister purpose = "register"
	toLogIn    purpose = "log in"          // in place of a password
	toFollow   purpose = "follow password" // as second factor
)

// about is the context to which challenges are sealed.
const about = "challenge of a passkey"

// challengeBytes is the length of a challenge; the specification requires at least 16.
const challengeBytes = 32

// asked is a challenge with its purpose. The browser that must answer it holds it sealed.
type asked struct {
	For       purpose   `json:"for"`
	Challenge []byte    `json:"challenge"`
	User      uuid.UUID `json:"user"`  // Nil: the passkey's owner
	Login     uuid.UUID `json:"login"` // that registers
	Name      string    `json:"name"`  // of the passkey to be registered
	Until     time.Time `json:"until"`
}

// hash is the stored hash of an answered challenge.
func (a asked) hash() []byte {
	sum := sha256.Sum256(a.Challenge)
	return sum[:]
}

// ask creates a challenge and returns it with its sealed form for the browser.
func (s *Service) ask(a asked) (asked, string, error) {
	a.Challenge, a.Until = make([]byte, challengeBytes), s.Now().Add(tenants.PasskeyAge)
	_, _ = rand.Read(a.Challenge) // never fails
	plain, err := json.Marshal(a)
	if err != nil {
		return asked{}, "", fmt.Errorf("passkey: %w", err)
	}
	sealed, err := s.Sealer.SealAbout(about, string(plain))
	if err != nil {
		return asked{}, "", err
	}
	return a, base64.RawURLEncoding.EncodeToString(sealed), nil
}

// open returns the browser's challenge, or a tenants.ErrPasskey.
func (s *Service) open(held string, wanted purpose) (asked, error) {
	if !s.IsOn() {
		return asked{}, fmt.Errorf("%w: passkeys are off", tenants.ErrPasskey)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(held)
	if err != nil || held == "" {
		return asked{}, fmt.Errorf("%w: this browser was asked nothing", tenants.ErrPasskey)
	}
	plain, _, err := s.Sealer.OpenAbout(about, sealed)
	if err != nil {
		return asked{}, fmt.Errorf("%w: %w", tenants.ErrPasskey, err)
	}
	var a asked
	if err := json.Unmarshal([]byte(plain), &a); err != nil {
		return asked{}, fmt.Errorf("%w: %w", tenants.ErrPasskey, err)
	}
	switch {
	case a.For != wanted:
		return asked{}, fmt.Errorf("%w: the challenge was to %s", tenants.ErrPasskey, a.For)
	case s.Now().After(a.Until):
		return asked{}, fmt.Errorf("%w: the answer took too long", tenants.ErrPasskey)
	}
	return a, nil
}
