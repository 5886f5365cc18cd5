package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"palimpsest/tenants"
)

const (
	codePeriod = 30 // seconds of a time step
	codeSkew   = 1  // steps before and after that are also accepted (RFC 6238, section 5.2)

	recoveryLetters = 16 // of 32: 80 bits, so that a fast hash is enough
)

// Factors stores second factors. The methods of tenantsdb.Factors document its return values.
type Factors interface {
	FactorsOf(ctx context.Context, user uuid.UUID) (tenants.Factors, error)
	SecondFactor(ctx context.Context, user uuid.UUID) (tenants.SecondFactor, error)
	StartSecondFactor(ctx context.Context, user uuid.UUID, sealed []byte, at time.Time) error
	ConfirmSecondFactor(ctx context.Context, user tenants.User, keep uuid.UUID, factor tenants.SecondFactor, hashes [][]byte, notices ...tenants.Mail) error
	UseStep(ctx context.Context, user uuid.UUID, step int64, at time.Time) error
	UseRecoveryCode(ctx context.Context, user tenants.User, hash []byte, at time.Time, notices ...tenants.Mail) error
	ReplaceRecoveryCodes(ctx context.Context, user tenants.User, hashes [][]byte, notices ...tenants.Mail) error
	RemoveSecondFactor(ctx context.Context, user tenants.User, keep uuid.UUID, notices ...tenants.Mail) error
}

// secondFactors handles people's second factors.
type secondFactors struct {
	parts  *parts
	sealer tenants.Sealer
}

// SetSealer sets the Sealer of second factors' secrets. It must be called before the service is used. Without
// a Sealer, second factors cannot be set up.
func (f *secondFactors) SetSealer(sealer tenants.Sealer) { f.sealer = sealer }

// errNoSealer says that the program was built without a Sealer.
var errNoSealer = errors.New("second factor: nothing seals its secret")

// SecondFactor returns the second factor of a person, or tenants.ErrNotFound. An unconfirmed one is returned
// for tenants.SetUpAge.
func (f *secondFactors) SecondFactor(ctx context.Context, user uuid.UUID) (tenants.SecondFactor, error) {
	factor, err := f.parts.store.SecondFactor(ctx, user)
	if err == nil && !factor.IsOn() && f.parts.now().Sub(factor.CreatedAt) > tenants.SetUpAge {
		return tenants.SecondFactor{}, tenants.ErrNotFound
	}
	return factor, err
}

// StartSecondFactor creates a secret for a logged-in person who knows their password. It returns a
// tenants.Invalid for password, a tenants.TooMany, or tenants.ErrConflict if they have a second factor.
func (f *secondFactors) StartSecondFactor(ctx context.Context, who tenants.Principal, password string) error {
	if f.sealer == nil {
		return errNoSealer
	}
	if err := f.parts.prover.confirm(ctx, who, "password", password); err != nil {
		return err
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: "Palimpsest", AccountName: who.User.Email})
	if err != nil {
		return fmt.Errorf("second factor: %w", err)
	}
	sealed, err := f.sealer.SealAbout(tenants.AboutSecondFactor(who.User.ID), key.Secret())
	if err != nil {
		return err
	}
	return f.parts.store.StartSecondFactor(ctx, who.User.ID, sealed, f.parts.now())
}

// SetUp returns a person's unconfirmed secret, or tenants.ErrNotFound.
func (f *secondFactors) SetUp(ctx context.Context, user tenants.User) (tenants.SetUp, error) {
	factor, err := f.SecondFactor(ctx, user.ID)
	if err != nil {
		return tenants.SetUp{}, err
	}
	if factor.IsOn() {
		return tenants.SetUp{}, tenants.ErrNotFound // it is not shown again
	}
	secret, err := f.openFactor(factor)
	if err != nil {
		return tenants.SetUp{}, err
	}
	return tenants.SetUp{Secret: secret, URL: setUpURL(user.Email, secret)}, nil
}

// ConfirmSecondFactor activates a person's second factor with a first code. From then on, log-ins need a
// code. It ends their other logins and returns their recovery codes, which are stored hashed. It returns a
// tenants.Invalid for code, a tenants.TooMany, or tenants.ErrNotFound without a pending secret.
func (f *secondFactors) ConfirmSecondFactor(ctx context.Context, who tenants.Principal, code string) ([]string, error) {
	factor, err := f.SecondFactor(ctx, who.User.ID)
	if err != nil {
		return nil, err
	}
	if factor.IsOn() {
		return nil, tenants.ErrNotFound
	}
	var step int64
	err = f.guess(ctx, who.User, func() (err error) {
		step, err = f.stepOf(factor, plainCode(code))
		return err
	})
	if err != nil {
		return nil, wrongCode(err)
	}
	codes, hashes := newRecoveryCodes(who.User.ID)
	factor.ConfirmedAt, factor.LastStep = f.parts.now(), step
	defer f.parts.logins.Forget()
	return codes, f.parts.store.ConfirmSecondFactor(ctx, who.User, who.Login.ID, factor, hashes, f.parts.letters.FactorMail(who.User, tenants.SecondFactorOn, ""))
}

// RenewRecoveryCodes replaces the recovery codes of a logged-in person who knows their password and has a
// code. It returns the errors of RemoveSecondFactor.
func (f *secondFactors) RenewRecoveryCodes(ctx context.Context, who tenants.Principal, password, code string) ([]string, error) {
	if err := f.prove(ctx, who, password, code); err != nil {
		return nil, err
	}
	codes, hashes := newRecoveryCodes(who.User.ID)
	return codes, f.parts.store.ReplaceRecoveryCodes(ctx, who.User, hashes, f.parts.letters.FactorMail(who.User, tenants.RecoveryCodesChanged, ""))
}

// RemoveSecondFactor turns off codes for a logged-in person who knows their password and has a code, and ends
// their other logins. It returns a tenants.Invalid for password or code, a tenants.TooMany, or
// tenants.ErrNotFound.
func (f *secondFactors) RemoveSecondFactor(ctx context.Context, who tenants.Principal, password, code string) error {
	if err := f.prove(ctx, who, password, code); err != nil {
		return err
	}
	defer f.parts.logins.Forget()
	return f.parts.store.RemoveSecondFactor(ctx, who.User, who.Login.ID, f.parts.letters.FactorMail(who.User, tenants.SecondFactorOff, ""))
}

// LogInWithCode logs in the person with a pending token of LogIn and a code of their app or a recovery code.
// It returns tenants.ErrWrongLogin for a wrong or used code, tenants.ErrLoginEnded for an invalid pending
// token, and a tenants.TooMany.
func (f *secondFactors) LogInWithCode(ctx context.Context, pending, code, userAgent string) (tenants.Principal, string, error) {
	user, signOn, err := f.pending(ctx, pending)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	ctx = tenants.WithActor(ctx, tenants.Actor{User: user.ID, Name: user.Email, From: tenants.ActorOf(ctx).From})
	if err := f.useCode(ctx, user, code); err != nil {
		return tenants.Principal{}, "", err
	}
	if !signOn.IsZero() { // single sign-on was the first proof and the code the second
		return f.parts.logins.openBound(ctx, user, signOn, userAgent)
	}
	return f.parts.logins.OpenLogin(ctx, user, userAgent)
}

// needsCode returns a tenants.CodeNeeded for a person with a second factor, after their password or single
// sign-on.
func (f *secondFactors) needsCode(ctx context.Context, user tenants.User, signOn tenants.WorkspaceID) error {
	factors, err := f.parts.store.FactorsOf(ctx, user.ID)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if !factors.AreOn() {
		return nil
	}
	_, hash, err := f.parts.store.UserByEmail(ctx, user.Email)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	pending, err := f.parts.logins.tokens.issuePending(user, fingerprint(hash), signOn)
	if err != nil {
		return err
	}
	return tenants.CodeNeeded{Pending: pending}
}

// prove requires a logged-in person's password and a code.
func (f *secondFactors) prove(ctx context.Context, who tenants.Principal, password, code string) error {
	if err := f.parts.prover.confirm(ctx, who, "password", password); err != nil {
		return err
	}
	return wrongCode(f.useCode(ctx, who.User, code))
}

// useCode uses up a person's code. People with passkeys and without an app have recovery codes only.
func (f *secondFactors) useCode(ctx context.Context, user tenants.User, code string) error {
	factors, err := f.parts.store.FactorsOf(ctx, user.ID)
	if err != nil {
		return err
	}
	if !factors.AreOn() {
		return tenants.ErrNotFound
	}
	code = plainCode(code)
	return f.guess(ctx, user, func() error {
		if len(code) == recoveryLetters {
			return f.parts.store.UseRecoveryCode(ctx, user, hashRecovery(user.ID, code), f.parts.now(), f.parts.letters.FactorMail(user, tenants.RecoveryCodeUsed, ""))
		}
		if !factors.App {
			return tenants.ErrWrongLogin
		}
		factor, err := f.parts.store.SecondFactor(ctx, user.ID)
		if err != nil {
			return err
		}
		step, err := f.stepOf(factor, code)
		if err != nil {
			return err
		}
		return f.parts.store.UseStep(ctx, user.ID, step, f.parts.now())
	})
}

// guess throttles try, which returns tenants.ErrWrongLogin for a wrong code. Its limits are lower than those
// of passwords because codes are short.
func (f *secondFactors) guess(ctx context.Context, user tenants.User, try func() error) error {
	tries := codeTries(user, tenants.ActorOf(ctx).Place())
	if err := f.parts.prover.mayTry(ctx, tries); err != nil {
		return err
	}
	release, err := f.parts.prover.passwords.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	// Check again, because concurrent attempts may have failed meanwhile.
	if err := f.parts.prover.mayTry(ctx, tries); err != nil {
		return err
	}
	if err := try(); err != nil {
		if errors.Is(err, tenants.ErrWrongLogin) {
			return f.parts.prover.failed(ctx, tries, err)
		}
		return err
	}
	return nil
}

// stepOf returns the time step of a code, or tenants.ErrWrongLogin for an unknown or used code.
func (f *secondFactors) stepOf(factor tenants.SecondFactor, code string) (int64, error) {
	secret, err := f.openFactor(factor)
	if err != nil {
		return 0, err
	}
	now := f.parts.now().Unix() / codePeriod
	for step := now - codeSkew; step <= now+codeSkew; step++ {
		//nolint:gosec // the time is after 1970
		good, err := hotp.ValidateCustom(code, uint64(step), secret, hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err == nil && good && step > factor.LastStep {
			return step, nil
		}
	}
	return 0, tenants.ErrWrongLogin
}

func (f *secondFactors) openFactor(factor tenants.SecondFactor) (string, error) {
	if f.sealer == nil {
		return "", errNoSealer
	}
	secret, _, err := f.sealer.OpenAbout(tenants.AboutSecondFactor(factor.User), factor.Sealed)
	if err != nil {
		return "", fmt.Errorf("second factor of %s: %w", factor.User, err)
	}
	return secret, nil
}

// setUpURL returns the URL for the QR code of an authenticator app (the Key URI Format of Google
// Authenticator).
func setUpURL(email, secret string) string {
	query := url.Values{"secret": {secret}, "issuer": {"Palimpsest"}}
	return (&url.URL{Scheme: "otpauth", Host: "totp", Path: "/Palimpsest:" + email, RawQuery: query.Encode()}).String()
}

// wrongCode returns the error that a logged-in person sees for a wrong code.
func wrongCode(err error) error {
	if errors.Is(err, tenants.ErrWrongLogin) {
		return tenants.Invalid{Field: "code", Message: "is wrong, too old, or was used"}
	}
	return err
}

// plainCode removes the separators that people type in a code.
func plainCode(code string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(strings.TrimSpace(code)))
}

// newRecoveryCodes returns readable codes and their stored hashes.
func newRecoveryCodes(user uuid.UUID) (codes []string, hashes [][]byte) {
	for range tenants.RecoveryCodes {
		code := rand.Text()[:recoveryLetters]
		hashes = append(hashes, hashRecovery(user, code))
		codes = append(codes, strings.ToLower(code[:4]+"-"+code[4:8]+"-"+code[8:12]+"-"+code[12:]))
	}
	return codes, hashes
}

func hashRecovery(user uuid.UUID, code string) []byte {
	sum := sha256.Sum256([]byte("palimpsest recovery code " + user.String() + " " + code))
	return sum[:]
}

// Pending returns the person of a tenants.CodeNeeded, who has typed their password. It returns
// tenants.ErrLoginEnded for an invalid token, for example after a change of the password or the address.
func (f *secondFactors) Pending(ctx context.Context, pending string) (tenants.User, error) {
	user, _, err := f.pending(ctx, pending)
	return user, err
}

// pending is Pending with the workspace whose single sign-on replaced the password; zero if the password was
// typed.
func (f *secondFactors) pending(ctx context.Context, pending string) (user tenants.User, signOn tenants.WorkspaceID, err error) {
	claims, err := f.parts.logins.tokens.pending(pending)
	if err != nil {
		return tenants.User{}, tenants.WorkspaceID{}, err
	}
	user, hash, err := f.parts.store.UserByEmail(ctx, claims.Email)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && (user.ID != claims.user || fingerprint(hash) != claims.Password) {
		return tenants.User{}, tenants.WorkspaceID{}, tenants.ErrLoginEnded
	}
	if err != nil {
		return tenants.User{}, tenants.WorkspaceID{}, fmt.Errorf("log in: %w", err)
	}
	return user, claims.SignOn, nil
}

// PendingFactors returns the second factors of someone who has typed their password, or the error of Pending.
func (f *secondFactors) PendingFactors(ctx context.Context, pending string) (tenants.Factors, error) {
	user, err := f.Pending(ctx, pending)
	if err != nil {
		return tenants.Factors{}, err
	}
	return f.parts.store.FactorsOf(ctx, user.ID)
}

// OpenWithPasskey opens a login for a user whose passkey was verified, and returns its token. If addresses
// must be verified first, it returns tenants.ErrWrongLogin for an unverified one.
func (s *Service) OpenWithPasskey(ctx context.Context, user tenants.User, userAgent string) (tenants.Principal, string, error) {
	if s.mails.RequireVerified && user.VerifiedAt == nil {
		return tenants.Principal{}, "", tenants.ErrWrongLogin
	}
	return s.OpenLogin(ctx, user, userAgent)
}

// NewRecoveryCodes returns readable recovery codes and their stored hashes.
func (f *secondFactors) NewRecoveryCodes(user uuid.UUID) (codes []string, hashes [][]byte) {
	return newRecoveryCodes(user)
}
