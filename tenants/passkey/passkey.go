// Package passkey lets people create passkeys and log in with them: in place of a password, or after it (Web
// Authentication, level 3).
//
// The browser that must answer a challenge holds it sealed, with its person and purpose. The database stores
// answered challenges, so that each works only once.
package passkey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Store stores passkeys. The methods of tenantsdb.Factors document its return values.
type Store interface {
	FactorsOf(ctx context.Context, user uuid.UUID) (tenants.Factors, error)
	Passkeys(ctx context.Context, user uuid.UUID) ([]tenants.Passkey, error)
	PasskeyOwner(ctx context.Context, user uuid.UUID) (tenants.User, []tenants.Passkey, error)
	AddPasskey(ctx context.Context, user tenants.User, keep uuid.UUID, passkey tenants.Passkey, challenge []byte, hashes [][]byte, notices ...tenants.Mail) (isFirst bool, err error)
	UsePasskey(ctx context.Context, user uuid.UUID, passkey tenants.Passkey, challenge []byte) error
	NotePasskeyCopied(ctx context.Context, user uuid.UUID, passkey tenants.Passkey, at time.Time, notices ...tenants.Mail) error
	RenamePasskey(ctx context.Context, user, id uuid.UUID, name string) error
	RemovePasskey(ctx context.Context, user, keep, id uuid.UUID, notices ...tenants.Mail) error
	ReplaceRecoveryCodes(ctx context.Context, user tenants.User, hashes [][]byte, notices ...tenants.Mail) error
}

// Accounts finds people and opens logins.
type Accounts interface {
	// ConfirmPassword returns a tenants.Invalid for password, or a tenants.TooMany.
	ConfirmPassword(ctx context.Context, who tenants.Principal, password string) error
	// Pending returns the person who has typed their password, or tenants.ErrLoginEnded.
	Pending(ctx context.Context, pending string) (tenants.User, error)
	// OpenWithPasskey returns the token of a login, or tenants.ErrWrongLogin for someone
	// who must verify their address first.
	OpenWithPasskey(ctx context.Context, user tenants.User, userAgent string) (tenants.Principal, string, error)
	// NewRecoveryCodes returns codes and their stored hashes.
	NewRecoveryCodes(user uuid.UUID) (codes []string, hashes [][]byte)
	// FactorMail returns the notice about a change of the named passkey, or of the recovery codes.
	FactorMail(user tenants.User, change tenants.Action, passkey string) tenants.Mail
	// Forget makes the next use of every token ask the store.
	Forget()
}

// Config holds the dependencies of a Service. All fields are required.
type Config struct {
	Store     Store
	Sealer    tenants.Sealer
	Accounts  Accounts
	Throttle  tenants.PlaceThrottle
	PublicURL string // the product's URL; passkeys are bound to its host
	Now       func() time.Time
}

// Service creates passkeys and logs people in with them.
type Service struct {
	Config

	relying *webauthn.WebAuthn // nil if passkeys do not work at the public URL
	origin  string
}

// New returns a Service. IsOn returns false if the host of the public URL cannot have passkeys.
func New(config Config) *Service {
	s := &Service{Config: config}
	host, origin := place(config.PublicURL)
	relying, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "Palimpsest", RPOrigins: []string{origin},
		AttestationPreference: protocol.PreferNoAttestation,
		// Required because a log-in without a password must find its user through the passkey.
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
		// Some password managers answer with more than was requested.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if host != "" && err == nil {
		s.relying, s.origin = relying, origin
	}
	return s
}

// place returns the host and the origin of passkeys. Passkeys need a host name; an IP address does not work.
// The name of this machine is localhost.
func place(publicURL string) (host, origin string) {
	parsed, err := url.Parse(publicURL)
	if err != nil {
		return "", ""
	}
	host = strings.ToLower(parsed.Hostname())
	if ip := net.ParseIP(host); ip != nil {
		if !ip.IsLoopback() {
			return "", ""
		}
		host = "localhost"
	}
	if parsed.Scheme != "https" && host != "localhost" {
		return "", "" // browsers do not support passkeys there
	}
	origin = parsed.Scheme + "://" + host
	if port := parsed.Port(); port != "" {
		origin += ":" + port
	}
	return host, origin
}

// IsOn reports whether passkeys work at the public URL, which must be https with a name, or this machine.
func (s *Service) IsOn() bool { return s.relying != nil }

// Origin returns the origin of passkeys; "" if they are off.
func (s *Service) Origin() string { return s.origin }

// List returns a person's passkeys, the oldest first, and all their second factors.
func (s *Service) List(ctx context.Context, user uuid.UUID) ([]tenants.Passkey, tenants.Factors, error) {
	passkeys, err := s.Store.Passkeys(ctx, user)
	if err != nil {
		return nil, tenants.Factors{}, err
	}
	factors, err := s.Store.FactorsOf(ctx, user)
	return passkeys, factors, err
}

// Rename renames a passkey. It returns a tenants.Invalid for name, or tenants.ErrNotFound.
func (s *Service) Rename(ctx context.Context, who tenants.Principal, id uuid.UUID, name string) error {
	name, err := checkName(name)
	if err != nil {
		return err
	}
	return s.Store.RenamePasskey(ctx, who.User.ID, id, name)
}

// Remove deletes a passkey of someone who knows their password, and ends their other logins. It returns a
// tenants.Invalid for password, a tenants.TooMany, or tenants.ErrNotFound.
func (s *Service) Remove(ctx context.Context, who tenants.Principal, id uuid.UUID, password string) error {
	if err := s.Accounts.ConfirmPassword(ctx, who, password); err != nil {
		return err
	}
	passkeys, err := s.Store.Passkeys(ctx, who.User.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(passkeys, func(passkey tenants.Passkey) bool { return passkey.ID == id })
	if at < 0 {
		return tenants.ErrNotFound
	}
	defer s.Accounts.Forget()
	return s.Store.RemovePasskey(ctx, who.User.ID, who.Login.ID, id, s.Accounts.FactorMail(who.User, tenants.PasskeyRemoved, passkeys[at].Name))
}

// RenewCodes replaces the recovery codes of a person who knows their password, and has passkeys and no app.
// It returns a tenants.Invalid for password, a tenants.TooMany, or tenants.ErrNotFound for others.
func (s *Service) RenewCodes(ctx context.Context, who tenants.Principal, password string) ([]string, error) {
	if err := s.Accounts.ConfirmPassword(ctx, who, password); err != nil {
		return nil, err
	}
	factors, err := s.Store.FactorsOf(ctx, who.User.ID)
	if err != nil {
		return nil, err
	}
	if factors.App || !factors.AreOn() {
		return nil, tenants.ErrNotFound
	}
	codes, hashes := s.Accounts.NewRecoveryCodes(who.User.ID)
	return codes, s.Store.ReplaceRecoveryCodes(ctx, who.User, hashes, s.Accounts.FactorMail(who.User, tenants.RecoveryCodesChanged, ""))
}

// checkName returns a name in its stored form, or a tenants.Invalid.
func checkName(name string) (string, error) {
	return tenants.CheckName("name", name, tenants.MaxPasskeyName)
}

// owner is a person as a webauthn.User.
type owner struct {
	user     tenants.User
	passkeys []tenants.Passkey
}

// WebAuthnID implements webauthn.User.
func (o owner) WebAuthnID() []byte { return o.user.ID[:] }

// WebAuthnName implements webauthn.User.
func (o owner) WebAuthnName() string { return o.user.Email }

// WebAuthnDisplayName implements webauthn.User.
func (o owner) WebAuthnDisplayName() string { return o.user.Email }

// WebAuthnCredentials implements webauthn.User.
func (o owner) WebAuthnCredentials() []webauthn.Credential {
	credentials := make([]webauthn.Credential, len(o.passkeys))
	for i, passkey := range o.passkeys {
		credentials[i] = webauthn.Credential{
			ID: passkey.Credential, PublicKey: passkey.PublicKey,
			Flags:         webauthn.CredentialFlags{BackupEligible: passkey.BackupEligible, BackupState: passkey.BackedUp},
			Authenticator: webauthn.Authenticator{SignCount: passkey.SignCount},
		}
		for _, transport := range passkey.Transports {
			credentials[i].Transport = append(credentials[i].Transport, protocol.AuthenticatorTransport(transport))
		}
	}
	return credentials
}

// descriptors returns the descriptors of the owner's passkeys for browsers.
func (o owner) descriptors() []protocol.CredentialDescriptor {
	var all []protocol.CredentialDescriptor
	for _, credential := range o.WebAuthnCredentials() {
		all = append(all, credential.Descriptor())
	}
	return all
}

// refused wraps the reason in a tenants.ErrPasskey.
func refused(err error) error {
	detailed, is := errors.AsType[*protocol.Error](err)
	if is {
		return fmt.Errorf("%w: %s: %s", tenants.ErrPasskey, detailed.Details, detailed.DevInfo)
	}
	return fmt.Errorf("%w: %w", tenants.ErrPasskey, err)
}

func optionsJSON(options any) ([]byte, error) {
	written, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("passkey: %w", err)
	}
	return written, nil
}

// Interface guard.
var _ webauthn.User = owner{}
