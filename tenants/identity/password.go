package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"palimpsest/tenants"
)

const (
	maxWaiting = 64 // people who wait for a password hash
	maxHashing = 8  // concurrent password hashes, regardless of the number of processors

	hashMemory = 46 << 10 // KiB; OWASP's first choice, with one pass on one processor
	testMemory = 64       // KiB; in test binaries, which hash thousands of passwords
)

// passwords hashes and compares passwords with argon2id, the first choice of OWASP's Password Storage Cheat
// Sheet. Each run takes 46 MiB and a whole processor. Therefore only half as many run at once as the process
// has processors, so that a flood leaves some to the proxy, and never more than maxHashing.
type passwords struct {
	params  *argon2id.Params
	slots   chan struct{}
	waiting atomic.Int32
	runs    atomic.Int64 // since the start
	work    atomic.Int64 // of these, in KiB times passes
	running atomic.Int64
	most    atomic.Int64 // highest number at once
	dummy   string       // hash for comparisons with unknown addresses
}

func newPasswords() (*passwords, error) {
	p := &passwords{slots: make(chan struct{}, hashing(runtime.GOMAXPROCS(0)))}
	memory := uint32(hashMemory)
	if testing.Testing() { // set by the linker of go test only, so that no setting of the product can lower the cost
		memory = testMemory
	}
	return p, p.hashWith(memory)
}

// hashing returns the number of concurrent hashes for a number of processors.
func hashing(processors int) int { return max(1, min(processors/2, maxHashing)) }

// hashWith sets the memory of new hashes, in KiB.
func (p *passwords) hashWith(memory uint32) error {
	params := &argon2id.Params{Memory: memory, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	dummy, err := argon2id.CreateHash(rand.Text(), params)
	if err != nil {
		return fmt.Errorf("hash password: %w", err)
	}
	p.params, p.dummy = params, dummy
	return nil
}

// hash returns a password's hash. The caller holds a slot.
func (p *passwords) hash(password string) (string, error) {
	defer p.count(p.params)()
	hash, err := argon2id.CreateHash(password, p.params)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return hash, nil
}

// matches compares a password with a hash, and reports whether the hash has the current parameters. An empty
// hash never matches. It takes as much work as a current one, and so does an older hash. The caller holds a
// slot.
func (p *passwords) matches(password, hash string) (same, current bool, err error) {
	params, _, _, err := argon2id.DecodeHash(cmp.Or(hash, p.dummy))
	if err != nil {
		return false, false, fmt.Errorf("compare password: %w", err)
	}
	end := p.count(params)
	same, err = argon2id.ComparePasswordAndHash(password, cmp.Or(hash, p.dummy))
	end()
	if err != nil {
		return false, false, fmt.Errorf("compare password: %w", err)
	}
	if err := p.fill(params); err != nil {
		return false, false, err
	}
	return same && hash != "", *params == *p.params, nil
}

// fill does the work that a comparison under old parameters has saved, so that timing does not reveal who has
// not logged in since the parameters changed.
func (p *passwords) fill(old *argon2id.Params) error {
	saved := workOf(p.params) - workOf(old)
	if saved < leastFill {
		return nil
	}
	rest := *p.params
	rest.Memory, rest.Iterations = uint32(saved), 1 //nolint:gosec // at most what one hash takes
	defer p.count(&rest)()
	if _, err := argon2id.CreateHash("", &rest); err != nil {
		return fmt.Errorf("compare password: %w", err)
	}
	return nil
}

// leastFill is the least memory that argon2 takes, in KiB (RFC 9106, section 3.1).
const leastFill = 8

// workOf returns the work of a hash, in KiB times passes.
func workOf(params *argon2id.Params) int64 { return int64(params.Memory) * int64(params.Iterations) }

// count counts a run until its end.
func (p *passwords) count(params *argon2id.Params) (end func()) {
	p.runs.Add(1)
	p.work.Add(workOf(params))
	running, most := p.running.Add(1), p.most.Load()
	for running > most && !p.most.CompareAndSwap(most, running) {
		most = p.most.Load()
	}
	return func() { p.running.Add(-1) }
}

// acquire waits for a slot in a bounded queue. It returns a tenants.TooMany if the queue is full.
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

// normalEmail returns an address in the form of account lookups, or a tenants.Invalid. It accepts addresses
// that accounts already had before tenants.CheckEmail refused them.
func normalEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if email == "" {
		return "", tenants.Invalid{Field: "email", Message: "is missing"}
	}
	if len(email) > tenants.MaxEmail || tenants.DomainOf(email) == "" {
		return "", tenants.Invalid{Field: "email", Message: "is not an e-mail address such as ada@example.com"}
	}
	return email, nil
}

// checkPassword returns a tenants.Invalid for an unsafe password of an address, "" if unknown. Passwords that
// already exist are not checked.
func checkPassword(password, email string) error {
	if length := utf8.RuneCountInString(password); length < tenants.MinPassword || length > tenants.MaxPassword {
		return tenants.Invalid{Field: "password", Message: fmt.Sprintf("must have %d to %d characters", tenants.MinPassword, tenants.MaxPassword)}
	}
	if isCommon(password, email) {
		return tenants.Invalid{Field: "password", Message: "is too common: attackers try it first. Take several words that do not belong together, or let a password manager make one"}
	}
	return nil
}

func checkWorkspace(name string) (string, error) {
	return tenants.CheckName("workspace", name, tenants.MaxWorkspaceName)
}
