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

// purpose is what a challenge is for.
type purpose string

const (
	toRegister purpose = "register"
	toLogIn    purpose = "log in"          // in place of a password
	toFollow   purpose = "follow password" // as second factor
)

// about is what a challenge is sealed for.
const about = "challenge of a passkey"

// challengeBytes is what a challenge is long; the specification asks for 16 or more.
const challengeBytes = 32

// asked is a challenge with what it is for. The browser that is to answer it holds it,
// sealed.
type asked struct {
	For       purpose   `json:"for"`
	Challenge []byte    `json:"challenge"`
	User      uuid.UUID `json:"user"`  // Nil: the passkey's owner
	Login     uuid.UUID `json:"login"` // that registers
	Name      string    `json:"name"`  // of the passkey to be registered
	Until     time.Time `json:"until"`
}

// hash is what is kept of an answered challenge.
func (a asked) hash() []byte {
	sum := sha256.Sum256(a.Challenge)
	return sum[:]
}

// ask makes a challenge and returns it as the browser holds it.
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

// open returns what the browser held, or a tenants.ErrPasskey.
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
