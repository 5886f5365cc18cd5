package passkey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

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
