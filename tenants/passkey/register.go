package passkey

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Start begins to create a passkey for a logged-in person who knows their password, and returns the state
// that their browser must hold. It returns a tenants.Invalid for name or password, a tenants.TooMany, or
// tenants.ErrPasskey if passkeys are off.
func (s *Service) Start(ctx context.Context, who tenants.Principal, name, password string) (held string, err error) {
	if !s.IsOn() {
		return "", fmt.Errorf("%w: passkeys are off", tenants.ErrPasskey)
	}
	if name, err = checkName(name); err != nil {
		return "", err
	}
	if err := s.Accounts.ConfirmPassword(ctx, who, password); err != nil {
		return "", err
	}
	passkeys, err := s.Store.Passkeys(ctx, who.User.ID)
	if err != nil {
		return "", err
	}
	if len(passkeys) >= tenants.MaxPasskeys {
		return "", tenants.Invalid{Field: "name", Message: fmt.Sprintf("cannot be added: there are %d passkeys already", tenants.MaxPasskeys)}
	}
	_, held, err = s.ask(asked{For: toRegister, User: who.User.ID, Login: who.Login.ID, Name: name})
	return held, err
}

// Options returns the name of the passkey in creation, and the browser's creation options, as JSON. It
// returns tenants.ErrPasskey without a creation in progress.
func (s *Service) Options(ctx context.Context, who tenants.Principal, held string) (name string, options []byte, err error) {
	under, person, err := s.registering(ctx, who, held)
	if err != nil {
		return "", nil, err
	}
	creation, _, err := s.creation(under, person)
	if err != nil {
		return "", nil, err
	}
	options, err = optionsJSON(creation)
	return under.Name, options, err
}

// Register stores a browser's new passkey, as JSON, and ends the person's other logins. For their first
// second factor it returns recovery codes, which are stored hashed. It returns tenants.ErrPasskey for an
// invalid answer, and tenants.ErrConflict for a passkey that exists already.
func (s *Service) Register(ctx context.Context, who tenants.Principal, held, answer string) (codes []string, err error) {
	under, person, err := s.registering(ctx, who, held)
	if err != nil {
		return nil, err
	}
	_, session, err := s.creation(under, person)
	if err != nil {
		return nil, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if err != nil {
		return nil, refused(err)
	}
	credential, err := s.relying.CreateCredential(person, *session, parsed)
	if err != nil {
		return nil, refused(err)
	}
	passkey := tenants.Passkey{
		ID: uuid.Must(uuid.NewV7()), Name: under.Name, Credential: credential.ID, PublicKey: credential.PublicKey, SignCount: credential.Authenticator.SignCount,
		BackupEligible: credential.Flags.BackupEligible, BackedUp: credential.Flags.BackupState, CreatedAt: s.Now(),
	}
	for _, transport := range credential.Transport {
		passkey.Transports = append(passkey.Transports, string(transport))
	}
	codes, hashes := s.Accounts.NewRecoveryCodes(who.User.ID)
	defer s.Accounts.Forget()
	isFirst, err := s.Store.AddPasskey(ctx, who.User, who.Login.ID, passkey, under.hash(), hashes, s.Accounts.FactorMail(who.User, tenants.PasskeyAdded, passkey.Name))
	if err != nil || !isFirst {
		return nil, err
	}
	return codes, nil
}

// registering returns the challenge that a login's browser held, and its owner.
func (s *Service) registering(ctx context.Context, who tenants.Principal, held string) (asked, owner, error) {
	under, err := s.open(held, toRegister)
	if err != nil {
		return asked{}, owner{}, err
	}
	if under.User != who.User.ID || under.Login != who.Login.ID {
		return asked{}, owner{}, fmt.Errorf("%w: another login began", tenants.ErrPasskey)
	}
	passkeys, err := s.Store.Passkeys(ctx, who.User.ID)
	return under, owner{user: who.User, passkeys: passkeys}, err
}

// creation returns the browser's creation options for an existing challenge.
func (s *Service) creation(under asked, person owner) (*protocol.CredentialCreation, *webauthn.SessionData, error) {
	creation, session, err := s.relying.BeginRegistration(person, webauthn.WithExclusions(person.descriptors()),
		func(options *protocol.PublicKeyCredentialCreationOptions) error {
			if len(under.Challenge) != challengeBytes {
				return errors.New("no challenge")
			}
			options.Challenge = under.Challenge
			return nil
		})
	if err != nil {
		return nil, nil, fmt.Errorf("passkey: %w", err)
	}
	return creation, session, nil
}
