package identity

import (
	"crypto/rand"

	"github.com/alexedwards/argon2id"
)

// MaxHashing is how many passwords are hashed at once, at most.
const MaxHashing = maxHashing

// MaxWaiting is how many people's passwords may wait to be hashed.
const MaxWaiting = maxWaiting

// Occupy takes every slot in which a password is hashed, until release is called.
func (s *Service) Occupy() (release func()) {
	for range cap(s.passwords.slots) {
		s.passwords.slots <- struct{}{}
	}
	return func() {
		for range cap(s.passwords.slots) {
			<-s.passwords.slots
		}
	}
}

// Runs returns how many passwords were hashed or compared.
func (s *Service) Runs() int64 { return s.passwords.runs.Load() }

// Work returns how much work that was, in KiB times passes.
func (s *Service) Work() int64 { return s.passwords.work.Load() }

// MostAtOnce returns how many at most were so at the same time.
func (s *Service) MostAtOnce() int64 { return s.passwords.most.Load() }

// Quicken has passwords hashed in milliseconds, for a test that hashes hundreds.
func (s *Service) Quicken() error {
	params := &argon2id.Params{Memory: 4 << 10, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	dummy, err := argon2id.CreateHash(rand.Text(), params)
	s.passwords.params, s.passwords.dummy = params, dummy
	return err
}
