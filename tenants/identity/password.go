package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/mail"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"palimpsest/tenants"
)

const (
	minPassword  = 8   // characters
	maxPassword  = 200 // characters
	maxEmail     = 254 // bytes; RFC 5321, section 4.5.3.1.3, less the brackets
	maxWorkspace = 80  // characters
	maxWaiting   = 64  // people whose password waits to be hashed
)

// passwords hashes and compares passwords with argon2id at OWASP's minimum. At
// most as many run at once as there are processors: each takes 19 MiB.
type passwords struct {
	params  *argon2id.Params
	slots   chan struct{}
	waiting atomic.Int32
	runs    atomic.Int64 // since the start
	running atomic.Int64
	most    atomic.Int64 // that ran at once
	dummy   string       // hash that unknown addresses are compared with
}

func newPasswords() (*passwords, error) {
	params := &argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	dummy, err := argon2id.CreateHash(rand.Text(), params)
	if err != nil {
		return nil, fmt.Errorf("hash password: %w", err)
	}
	return &passwords{params: params, slots: make(chan struct{}, runtime.NumCPU()), dummy: dummy}, nil
}

// hash returns a password's hash. The caller holds a slot.
func (p *passwords) hash(password string) (string, error) {
	defer p.count()()
	hash, err := argon2id.CreateHash(password, p.params)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return hash, nil
}

// matches compares a password with a hash; an empty hash takes as long and never
// matches. The caller holds a slot.
func (p *passwords) matches(password, hash string) (bool, error) {
	defer p.count()()
	same, err := argon2id.ComparePasswordAndHash(password, cmp.Or(hash, p.dummy))
	if err != nil {
		return false, fmt.Errorf("compare password: %w", err)
	}
	return same && hash != "", nil
}

// count counts a run until its end.
func (p *passwords) count() (end func()) {
	p.runs.Add(1)
	running, most := p.running.Add(1), p.most.Load()
	for running > most && !p.most.CompareAndSwap(most, running) {
		most = p.most.Load()
	}
	return func() { p.running.Add(-1) }
}

// acquire waits for a slot, in a queue that has an end: it returns a
// tenants.TooMany if that is reached.
func (p *passwords) acquire(ctx context.Context) (release func(), err error) {
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > maxWaiting {
		return nil, tenants.TooMany{Wait: time.Second}
	}
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// normalEmail returns an address as it is stored, or a tenants.Invalid.
func normalEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if email == "" {
		return "", tenants.Invalid{Field: "email", Message: "is missing"}
	}
	address, err := mail.ParseAddress(email)
	if err != nil || address.Address != email || len(email) > maxEmail || !strings.Contains(email, ".") {
		return "", tenants.Invalid{Field: "email", Message: "is not an e-mail address such as ada@example.com"}
	}
	return email, nil
}

func checkPassword(password string) error {
	if length := utf8.RuneCountInString(password); length < minPassword || length > maxPassword {
		return tenants.Invalid{Field: "password", Message: fmt.Sprintf("must have %d to %d characters", minPassword, maxPassword)}
	}
	return nil
}

func checkWorkspace(name string) (string, error) {
	name = strings.TrimSpace(name)
	if length := utf8.RuneCountInString(name); length == 0 || length > maxWorkspace {
		return "", tenants.Invalid{Field: "workspace", Message: fmt.Sprintf("must have 1 to %d characters", maxWorkspace)}
	}
	return name, nil
}
