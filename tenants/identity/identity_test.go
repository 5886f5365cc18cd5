package identity_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const password = "correct horse battery"

// bundle is a service on a real database with a clock of its own.
type bundle struct {
	*dbtest.Database

	service *identity.Service
	keys    *identity.Keys
	signing []byte
	clock   *clock
}

// storeOf returns the stores of a database that a service works with.
func storeOf(db *tenantsdb.DB) identity.Store {
	return identity.Store{Accounts: db.Accounts, LoginStore: db.Logins, WorkspaceStore: db.Workspaces, Factors: db.Factors}
}

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Database: dbtest.New(t), signing: bytes.Repeat([]byte("k"), 32), clock: &clock{now: time.Now().Truncate(time.Second)}}
	throttle, err := identity.NewLocalThrottle(b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	if b.service, err = identity.NewService(storeOf(b.DB), throttle, [][]byte{b.signing}, b.clock.Now); err != nil {
		t.Fatal(err)
	}
	if b.keys, err = identity.NewKeys(b.DB.APIKeys, [][]byte{bytes.Repeat([]byte("p"), 32)}, b.clock.Now); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) signUp(t *testing.T, email string) (tenants.Principal, string) {
	t.Helper()
	principal, token, err := b.service.SignUp(t.Context(), email, password, "Northbeam", "test")
	if err != nil {
		t.Fatal(err)
	}
	return principal, token
}

func TestInstallationIsNewUntilSomebodySignsUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 { // an answer that may change is not kept
		if isNew, err := b.service.IsNew(t.Context()); !isNew || err != nil {
			t.Fatalf("with nobody in it: %v, %v", isNew, err)
		}
	}
	b.signUp(t, "ada@example.com")
	if isNew, err := b.service.IsNew(t.Context()); isNew || err != nil {
		t.Errorf("with someone in it: %v, %v", isNew, err)
	}
}

func TestSignedUpUserIsKnownByTheToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	created, token := b.signUp(t, " Ada@Example.com ")
	found, err := b.service.Authenticate(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if found.User.Email != "ada@example.com" || found.Workspace.Name != "Northbeam" || found.Role != tenants.Owner || found.User.ID != created.User.ID {
		t.Fatalf("principal %+v", found)
	}
}

func TestWhatASignUpGetsWrongIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for field, values := range map[string][3]string{
		"email":     {"ada", password, "Northbeam"},
		"password":  {"ada@example.com", "short", "Northbeam"},
		"workspace": {"ada@example.com", password, "  "},
	} {
		_, _, err := b.service.SignUp(t.Context(), values[0], values[1], values[2], "test")
		var invalid tenants.Invalid
		if !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: error %v does not name it", field, err)
		}
	}
	b.signUp(t, "ada@example.com")
	if _, _, err := b.service.SignUp(t.Context(), "ADA@example.com", password, "Other", "test"); !errors.Is(err, tenants.ErrEmailTaken) {
		t.Errorf("second sign-up with one address: %v", err)
	}
}

// S9: logging out ends the login at once, here and elsewhere.
func TestLoggedOutTokenIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, token := b.signUp(t, "ada@example.com")
	if err := b.service.LogOut(t.Context(), principal.Login); err != nil {
		t.Fatal(err)
	}
	if _, err := b.service.Authenticate(t.Context(), token); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Fatalf("after the log-out: %v", err)
	}
	other, err := identity.NewService(storeOf(b.DB), nil, [][]byte{b.signing}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Authenticate(t.Context(), token); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Fatalf("on another replica: %v", err)
	}
}

// S9: alg none, another algorithm, one with a key of someone else's, no expiry, another issuer or audience, expired.
func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, token := b.signUp(t, "ada@example.com")
	claims := func(change func(*jwt.RegisteredClaims)) jwt.RegisteredClaims {
		claims := jwt.RegisteredClaims{
			ID: principal.Login.ID.String(), Subject: principal.User.ID.String(), Issuer: "palimpsest",
			Audience: jwt.ClaimStrings{"palimpsest-dashboard"}, ExpiresAt: jwt.NewNumericDate(b.clock.Now().Add(time.Hour)),
		}
		if change != nil {
			change(&claims)
		}
		return claims
	}
	sign := func(method jwt.SigningMethod, key any, claims jwt.Claims) string {
		signed, err := jwt.NewWithClaims(method, claims).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	if _, err := b.service.Authenticate(t.Context(), sign(jwt.SigningMethodHS256, b.signing, claims(nil))); err != nil {
		t.Fatalf("a rightly signed token: %v", err) // or nothing below would mean anything
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, forged := range map[string]string{
		"alg none":         sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(nil)),
		"another alg":      sign(jwt.SigningMethodHS512, b.signing, claims(nil)),
		"RS for HS":        sign(jwt.SigningMethodRS256, stranger, claims(nil)),
		"another key":      sign(jwt.SigningMethodHS256, bytes.Repeat([]byte("x"), 32), claims(nil)),
		"no expiry":        sign(jwt.SigningMethodHS256, b.signing, claims(func(c *jwt.RegisteredClaims) { c.ExpiresAt = nil })),
		"another issuer":   sign(jwt.SigningMethodHS256, b.signing, claims(func(c *jwt.RegisteredClaims) { c.Issuer = "them" })),
		"another audience": sign(jwt.SigningMethodHS256, b.signing, claims(func(c *jwt.RegisteredClaims) { c.Audience = nil })),
		"another login":    sign(jwt.SigningMethodHS256, b.signing, claims(func(c *jwt.RegisteredClaims) { c.ID = uuid.NewString() })),
		"expired": sign(jwt.SigningMethodHS256, b.signing, claims(func(c *jwt.RegisteredClaims) {
			c.ExpiresAt = jwt.NewNumericDate(b.clock.Now().Add(-time.Second))
		})),
		"changed":   token[:len(token)-4] + "AAAA",
		"no token":  "",
		"not a JWT": base64.StdEncoding.EncodeToString([]byte("hello")),
	} {
		if _, err := b.service.Authenticate(t.Context(), forged); !errors.Is(err, tenants.ErrLoginEnded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// S11: unknown addresses and wrong passwords are told nothing apart.
func TestUnknownAddressAndWrongPasswordAnswerTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.signUp(t, "ada@example.com")
	for _, email := range []string{"ada@example.com", "nobody@example.com", "not an address"} {
		_, _, err := b.service.LogIn(t.Context(), email, "wrong password", "192.0.2.1", "test")
		if err == nil || err.Error() != tenants.ErrWrongLogin.Error() {
			t.Errorf("%s: %v", email, err)
		}
	}
	if _, token, err := b.service.LogIn(t.Context(), "Ada@example.com", password, "192.0.2.1", "test"); err != nil || token == "" {
		t.Errorf("right password: %v", err)
	}
}

// S11, S40: ten failures of an account from one place are enough.
func TestGuessingIsStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.signUp(t, "ada@example.com")
	guess := func(password, from string) error {
		_, _, err := b.service.LogIn(t.Context(), "ada@example.com", password, from, "test")
		return err
	}
	for i := range 10 {
		if err := guess("wrong password", "192.0.2.1"); !errors.Is(err, tenants.ErrWrongLogin) {
			t.Fatalf("guess %d: %v", i+1, err)
		}
	}
	var tooMany tenants.TooMany
	if err := guess(password, "192.0.2.1"); !errors.As(err, &tooMany) || tooMany.Wait <= 0 || !errors.Is(err, tenants.ErrTooMany) {
		t.Fatalf("eleventh try: %v", err)
	}
	if err := guess(password, "192.0.2.2"); err != nil {
		t.Fatalf("from another place: %v", err)
	}
	b.clock.advance(tooMany.Wait + time.Second)
	if err := guess(password, "192.0.2.1"); err != nil {
		t.Fatalf("after the wait: %v", err)
	}
}

func (b *bundle) createKey(t *testing.T, principal tenants.Principal, expires *time.Time) (tenants.APIKey, string) {
	t.Helper()
	key, secret, hash := b.keys.Create(principal.Workspace.ID, "ci", []tenants.Scope{tenants.ScopeProxy}, principal.User.ID, expires)
	if err := b.DB.APIKeys.CreateAPIKey(t.Context(), principal.Workspace.ID, key, hash); err != nil {
		t.Fatal(err)
	}
	return key, secret
}

func TestAPIKeyIsKnownByItsSecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	created, secret := b.createKey(t, principal, nil)
	if !strings.HasPrefix(secret, created.Prefix) || !strings.HasSuffix(secret, created.Suffix) {
		t.Fatalf("secret does not begin with %s and end with %s", created.Prefix, created.Suffix)
	}
	found, err := b.keys.Authenticate(t.Context(), secret)
	if err != nil || found.ID != created.ID || found.Workspace != principal.Workspace.ID {
		t.Fatalf("key %+v, %v", found, err)
	}
	if err := b.keys.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored, err := b.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), principal.Workspace.ID)
	if err != nil || len(stored) != 1 || stored[0].LastUsedAt == nil {
		t.Fatalf("stored keys %+v, %v: want one with its last use", stored, err)
	}
}

func TestRevokedAndExpiredKeysAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	key, secret := b.createKey(t, principal, nil)
	if err := b.DB.APIKeys.RevokeAPIKey(t.Context(), principal.Workspace.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.keys.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrKeyRevoked) {
		t.Errorf("revoked key: %v", err)
	}
	soon := b.clock.Now().Add(time.Minute)
	_, secret = b.createKey(t, principal, &soon)
	if _, err := b.keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("before its end: %v", err)
	}
	b.clock.advance(time.Minute)
	if _, err := b.keys.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrKeyExpired) {
		t.Errorf("at its end: %v", err)
	}
}

// S7: a wrong checksum costs no query.
func TestMistypedKeyIsRefusedWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	keys, err := identity.NewKeys(noStore{}, [][]byte{make([]byte, 32)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	secret, _, _ := identity.GenerateKey()
	for _, wrong := range []string{"", "plm_", "sk-ant-1", secret[:len(secret)-1], secret + "0", strings.ToUpper(secret), flip(secret)} {
		if _, err := keys.Authenticate(t.Context(), wrong); !errors.Is(err, tenants.ErrKeyMalformed) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// S8: what another replica revokes is asked for again once it is heard of, and
// after half a minute if it is not.
func TestForgottenKeysAreAskedForAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, _ := b.signUp(t, "ada@example.com")
	key, secret := b.createKey(t, principal, nil)
	if _, err := b.keys.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := b.DB.APIKeys.RevokeAPIKey(t.Context(), principal.Workspace.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	b.keys.Changed(principal.Workspace.ID.String())
	if _, err := b.keys.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrKeyRevoked) {
		t.Fatalf("after the news: %v", err)
	}
}

func TestKeysAreUnlikeEachOther(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		secret, prefix, suffix := identity.GenerateKey()
		if seen[secret] || identity.CheckKey(secret) != nil || len(prefix)+len(suffix) > 20 {
			t.Fatalf("key with prefix %s", prefix)
		}
		seen[secret] = true
	}
}

// flip changes one digit of a key's random part.
func flip(secret string) string {
	changed := []byte(secret)
	changed[20] ^= 1
	return string(changed)
}

// noStore fails the test that asks it.
type noStore struct{}

func (noStore) APIKeyByHash(context.Context, []byte) (tenants.APIKey, error) {
	return tenants.APIKey{}, errors.New("the database was asked")
}

func (noStore) TouchAPIKeys(context.Context, tenants.WorkspaceID, map[uuid.UUID]time.Time) error {
	return nil
}

func (noStore) RehashAPIKey(context.Context, tenants.WorkspaceID, uuid.UUID, []byte, []byte) error {
	return nil
}

func (noStore) APIKey(context.Context, tenants.WorkspaceID, uuid.UUID) (tenants.APIKey, error) {
	return tenants.APIKey{}, tenants.ErrNotFound
}
