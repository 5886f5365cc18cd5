package passkey_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/passkey"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	password = "correct horse battery"
	origin   = "https://palimpsest.example"
)

// bundle is a service on a real database, with people and a clock of its own.
type bundle struct {
	*dbtest.Database

	people  *identity.Service
	service *passkey.Service
	clock   *clock
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
	b := &bundle{Database: dbtest.New(t), clock: &clock{now: time.Now().Truncate(time.Second)}}
	throttle, err := identity.NewLocalThrottle(b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	if b.people, err = identity.NewService(identity.Store{Accounts: b.DB.Accounts, LoginStore: b.DB.Logins, WorkspaceStore: b.DB.Workspaces, Factors: b.DB.Factors}, throttle, [][]byte{bytes.Repeat([]byte("k"), 32)}, b.clock.Now); err != nil {
		t.Fatal(err)
	}
	safe, err := vault.New([][]byte{bytes.Repeat([]byte("v"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	b.people.SetSealer(safe)
	b.service = passkey.New(passkey.Config{
		Store: b.DB.Factors, Sealer: safe, Accounts: b.people, Throttle: b.people.Throttle(), PublicURL: origin, Now: b.clock.Now,
	})
	return b
}

// holder is someone with an authenticator that has a key for them.
type holder struct {
	*bundle

	who    tenants.Principal
	device virtualwebauthn.Authenticator
	key    virtualwebauthn.Credential
	site   virtualwebauthn.RelyingParty
	codes  []string // recovery codes
}

// signUp returns someone whose authenticator has no passkey yet.
func (b *bundle) signUp(t *testing.T, email string) *holder {
	t.Helper()
	who, _, err := b.people.SignUp(t.Context(), email, password, "Northbeam", "test")
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{
		bundle: b, who: who, device: virtualwebauthn.NewAuthenticator(), key: newKey(),
		site: virtualwebauthn.RelyingParty{ID: "palimpsest.example", Name: "Palimpsest", Origin: origin},
	}
	h.device.Options.UserHandle = who.User.ID[:]
	return h
}

// newKey returns a key of a device. The library writes coordinates that begin with a zero
// too short (RFC 9053, section 7.1.1), so another one is taken then.
func newKey() virtualwebauthn.Credential {
	const whole = 77 // bytes of a COSE key with both coordinates
	for {
		if key := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(key.Key.AttestationData()) == whole {
			return key
		}
	}
}

// withPasskey returns someone who has made a passkey.
func (b *bundle) withPasskey(t *testing.T, email string) *holder {
	t.Helper()
	h := b.signUp(t, email)
	codes, err := h.register(t, h.key, "Laptop")
	if err != nil {
		t.Fatal(err)
	}
	h.codes = codes
	return h
}

// register has the authenticator make a passkey.
func (h *holder) register(t *testing.T, key virtualwebauthn.Credential, name string) ([]string, error) {
	t.Helper()
	held, err := h.service.Start(t.Context(), h.who, name, password)
	if err != nil {
		t.Fatal(err)
	}
	return h.service.Register(t.Context(), h.who, held, h.attest(t, held, key))
}

// attest returns what the authenticator says once it has made a key.
func (h *holder) attest(t *testing.T, held string, key virtualwebauthn.Credential) string {
	t.Helper()
	_, options, err := h.service.Options(t.Context(), h.who, held)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := virtualwebauthn.ParseAttestationOptions(string(options))
	if err != nil {
		t.Fatal(err)
	}
	return virtualwebauthn.CreateAttestationResponse(h.site, h.device, key, *parsed)
}

// assert returns what the authenticator says to what it is asked.
func (h *holder) assert(t *testing.T, options []byte) string {
	t.Helper()
	parsed, err := virtualwebauthn.ParseAssertionOptions(string(options))
	if err != nil {
		t.Fatal(err)
	}
	return virtualwebauthn.CreateAssertionResponse(h.site, h.device, h.key, *parsed)
}

// ask returns what a browser is asked in place of a password, and holds.
func (b *bundle) ask(t *testing.T) (options []byte, held string) {
	t.Helper()
	options, held, err := b.service.Ask()
	if err != nil {
		t.Fatal(err)
	}
	return options, held
}

// logIn logs in with the passkey alone.
func (h *holder) logIn(t *testing.T) (string, error) {
	t.Helper()
	options, held := h.ask(t)
	return h.service.LogIn(t.Context(), held, h.assert(t, options), "test")
}

// pending logs in with the password.
func (h *holder) pending(t *testing.T) string {
	t.Helper()
	_, token, err := h.people.LogIn(t.Context(), h.who.User.Email, password, "here", "test")
	needed, is := errors.AsType[tenants.CodeNeeded](err)
	if !is || token != "" {
		t.Fatalf("the password alone gives %q, %v", token, err)
	}
	return needed.Pending
}

// is fails the test unless a token is of the holder.
func (h *holder) is(t *testing.T, token string) {
	t.Helper()
	if who, err := h.people.Authenticate(t.Context(), token); err != nil || who.User.ID != h.who.User.ID || who.Workspace.ID != h.who.Workspace.ID {
		t.Errorf("the token is of %+v, %v", who.User, err)
	}
}

// noted returns how often an action is in the workspace's audit log.
func (h *holder) noted(t *testing.T, action tenants.Action) int {
	t.Helper()
	entries, err := h.DB.Audit.Audit(t.Context(), h.who.Workspace.ID, tenants.AuditFilter{Action: string(action), Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
