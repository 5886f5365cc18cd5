package identity

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"iter"
	"math/big"
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

// An API key is "plm_", an environment tag, 43 base62 digits of 32 random bytes and 6 of the CRC-32 of all
// before them, so that scanners and typo checks need no lookup.
const (
	keyPrefix      = tenants.KeyStart
	keyTag         = "live_"
	secretBytes    = 32
	secretDigits   = 43 // of base62 for secretBytes
	checksumDigits = 6
	shownDigits    = 4 // of the secret part, in a key's prefix and suffix
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// GenerateKey returns a new API key's secret and its displayable parts.
func GenerateKey() (secret, prefix, suffix string) {
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails
	secret = keyPrefix + keyTag + encode(new(big.Int).SetBytes(random), secretDigits)
	secret += checksum(secret)
	shown := len(keyPrefix + keyTag)
	return secret, secret[:shown+shownDigits], secret[len(secret)-shownDigits:]
}

// CheckKey returns tenants.ErrKeyMalformed if a secret does not have the form of an API key.
func CheckKey(secret string) error {
	if !strings.HasPrefix(secret, keyPrefix) || len(secret) != len(keyPrefix+keyTag)+secretDigits+checksumDigits {
		return tenants.ErrKeyMalformed
	}
	body, sum := secret[:len(secret)-checksumDigits], secret[len(secret)-checksumDigits:]
	if checksum(body) != sum {
		return tenants.ErrKeyMalformed
	}
	return nil
}

// HashKey returns the stored hash of an API key. One HMAC-SHA256 under a key outside the database is enough
// because an API key has 256 random bits.
func HashKey(pepper []byte, secret string) []byte {
	mac := hmac.New(sha256.New, pepper)
	mac.Write([]byte(secret))
	return mac.Sum(nil)
}

func checksum(body string) string {
	return encode(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), checksumDigits)
}

// encode writes a number in base62, padded to a number of digits.
func encode(number *big.Int, digits int) string {
	base, digit := big.NewInt(int64(len(base62))), new(big.Int)
	out := make([]byte, digits)
	for i := digits - 1; i >= 0; i-- {
		number.DivMod(number, base, digit)
		out[i] = base62[digit.Int64()]
	}
	return string(out)
}

// tried yields the peppers with which a secret may have been hashed, the newest first. With several peppers,
// it yields the newest again at the end. That last lookup bypasses the cache because another replica may have
// rehashed the key meanwhile.
func (k *Keys) tried(secret string) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for i, pepper := range k.peppers {
			if !yield(i, pepper) {
				return
			}
		}
		if len(k.peppers) > 1 {
			k.known.Delete(string(HashKey(k.peppers[0], secret)))
			yield(len(k.peppers), k.peppers[0])
		}
	}
}

// rehash rehashes a key that was found with an older pepper. It runs once, since the key is then cached under
// the newest pepper. If it fails, it runs again after the cache entry has expired.
func (k *Keys) rehash(ctx context.Context, key tenants.APIKey, old, hash []byte) {
	k.known.Set(string(hash), result{key: key})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTimeout)
	defer cancel()
	_ = k.store.RehashAPIKey(ctx, key.Workspace, key.ID, old, hash)
}
