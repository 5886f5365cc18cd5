package tenants

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// How a terminal logs in (RFC 8628).
const (
	DeviceLoginAge  = 10 * time.Minute // how long its codes work
	devicePause     = 5 * time.Second  // minimum between two polls
	maxMachine      = 80
	maxDeviceLogins = 20 // started from one place in DeviceLoginAge
	maxWrongCodes   = 10 // of a person, and of a place, in DeviceLoginAge
)

// The errors for a terminal that polls for its key.
var (
	ErrDevicePending = errors.New("nobody has allowed this login yet")
	ErrDeviceSlow    = errors.New("the terminal asks too often")
	ErrDeviceDenied  = errors.New("the person has denied this login, or may not create keys")
	ErrDeviceEnded   = errors.New("this login has expired, or was used")
)

// A DeviceLogin is a terminal's login request. Its codes are not stored.
type DeviceLogin struct {
	Machine   string // as the terminal calls it
	From      string `gorm:"column:asked_from"` // the terminal's address
	AskedAt   time.Time
	ExpiresAt time.Time
	Pause     time.Duration `gorm:"column:pause_seconds;serializer:seconds"` // minimum between two polls of the terminal
	PolledAt  time.Time     `gorm:"serializer:null"`                         // last poll; zero if never
	UsedAt    time.Time     `gorm:"serializer:null"`                         // creation of its key; zero if absent

	DeviceDecision
}

// DeviceDecision is a person's answer to a terminal's login request.
type DeviceDecision struct {
	Denied     bool
	User       uuid.UUID   `gorm:"column:user_id;serializer:null"` // the person who allows it; Nil until then
	Email      string      // theirs
	Workspace  WorkspaceID `gorm:"column:workspace_id;serializer:null"` // for which workspace
	Name       string      `gorm:"column:workspace_name"`               // of the workspace
	KeyExpires *time.Time  // the key's expiry; nil if never
}

// Waits reports whether a person can still decide about a login.
func (l *DeviceLogin) Waits(now time.Time) bool {
	return !l.Denied && l.User == uuid.Nil && now.Before(l.ExpiresAt)
}

// poll records a poll of the terminal. It returns nil once, when the terminal may get its key.
func (l *DeviceLogin) poll(now time.Time) error {
	if !now.Before(l.ExpiresAt) || !l.UsedAt.IsZero() {
		return ErrDeviceEnded
	}
	early := !l.PolledAt.IsZero() && now.Sub(l.PolledAt) < l.Pause
	l.PolledAt = now
	switch {
	case early:
		l.Pause += devicePause
		return ErrDeviceSlow
	case l.Denied:
		return ErrDeviceDenied
	case l.User == uuid.Nil:
		return ErrDevicePending
	}
	l.UsedAt = now
	return nil
}

// DeviceLoginStore stores terminals' logins by the hashes of their codes.
type DeviceLoginStore interface {
	CreateDeviceLogin(ctx context.Context, login DeviceLogin, device, code []byte) error

	// DeviceLogin returns the login with the hash of one of its codes, or ErrNotFound.
	DeviceLogin(ctx context.Context, hash []byte) (DeviceLogin, error)

	// ChangeDeviceLogin stores the changes that change makes. Concurrent calls run one after the other.
	ChangeDeviceLogin(ctx context.Context, hash []byte, change func(*DeviceLogin)) error
}

// DeviceLogins lets terminals log in: a logged-in person allows it on the dashboard, and the terminal gets an
// API key.
type DeviceLogins struct {
	Store    DeviceLoginStore
	Keys     APIKeys
	Throttle Throttle
	Peppers  [][]byte // hash the codes; all of them are tried
	Page     string   // address of the page where people type the code
	Now      func() time.Time
}

// DeviceCodes are the codes that a terminal gets for its login.
type DeviceCodes struct {
	Device string // for the terminal alone
	User   string // for the person to type: WDJB-MJHT
	Pause  time.Duration
}

// Begin starts a login of the terminal of the context's actor. It returns an Invalid for the name of the
// machine, and a TooMany.
func (d *DeviceLogins) Begin(ctx context.Context, machine string) (DeviceCodes, error) {
	machine, err := CheckName("machine", machine, maxMachine)
	if err != nil {
		return DeviceCodes{}, err
	}
	actor, now := ActorOf(ctx), d.Now()
	if err := d.Throttle.Take(ctx, Count{Of: "terminal logins from " + actor.Place(), Most: maxDeviceLogins, Window: DeviceLoginAge}); err != nil {
		return DeviceCodes{}, err
	}
	codes := DeviceCodes{Device: newDeviceCode(), User: newUserCode(), Pause: devicePause}
	login := DeviceLogin{Machine: machine, From: actor.From, AskedAt: now, ExpiresAt: now.Add(DeviceLoginAge), Pause: devicePause}
	user, _ := userCodeOf(codes.User)
	if err := d.Store.CreateDeviceLogin(ctx, login, deviceCode.hash(d.Peppers[0], codes.Device), userCode.hash(d.Peppers[0], user)); err != nil {
		return DeviceCodes{}, err
	}
	return codes, nil
}

// Find returns the waiting login with a user code. It returns an Invalid for code if the code is unknown, and
// a TooMany after too many unknown codes.
func (d *DeviceLogins) Find(ctx context.Context, typed string) (DeviceLogin, error) {
	login, _, err := d.find(ctx, typed)
	return login, err
}

// Decide allows or denies a waiting login on behalf of the context's actor. It returns the errors of Find.
func (d *DeviceLogins) Decide(ctx context.Context, typed string, decision DeviceDecision) (DeviceLogin, error) {
	_, hash, err := d.find(ctx, typed)
	if err != nil {
		return DeviceLogin{}, err
	}
	var decided DeviceLogin
	waits := false
	err = d.Store.ChangeDeviceLogin(ctx, hash, func(login *DeviceLogin) {
		if waits = login.Waits(d.Now()); waits {
			login.DeviceDecision = decision
		}
		decided = *login
	})
	if err == nil && !waits {
		err = errUserCode()
	}
	return decided, err
}

func (d *DeviceLogins) find(ctx context.Context, typed string) (login DeviceLogin, hash []byte, err error) {
	counts := d.wrongCodes(ctx)
	if err := d.Throttle.Check(ctx, counts...); err != nil {
		return DeviceLogin{}, nil, err
	}
	code, is := userCodeOf(typed)
	if is {
		login, hash, err = d.byCode(ctx, userCode, code)
		if err == nil && login.Waits(d.Now()) {
			return login, hash, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return DeviceLogin{}, nil, err
		}
	}
	if err := d.Throttle.Take(ctx, counts...); err != nil {
		return DeviceLogin{}, nil, err
	}
	return DeviceLogin{}, nil, errUserCode()
}

// wrongCodes limits wrong codes, because a guessed one would give a person's key to someone else's terminal.
func (d *DeviceLogins) wrongCodes(ctx context.Context) []Count {
	actor := ActorOf(ctx)
	return []Count{
		{Of: "terminal codes of " + actor.User.String(), Most: maxWrongCodes, Window: DeviceLoginAge},
		{Of: "terminal codes from " + actor.Place(), Most: maxWrongCodes, Window: DeviceLoginAge},
	}
}

func errUserCode() error {
	return Invalid{Field: "code", Message: "is wrong, was used, or is older than 10 minutes. Run palimpsest login again for another"}
}

// A DeviceKey is the API key of a terminal.
type DeviceKey struct {
	APIKey

	Secret        string
	WorkspaceName string
}

// DeviceScopes are the scopes of a terminal's key, within the rights of the person behind it.
func DeviceScopes() []Scope { return []Scope{ScopeProxy, ScopeRecall, ScopeRead, ScopeSessions} }

// Redeem gives the terminal with a device code its key, once. Otherwise it returns ErrDevicePending,
// ErrDeviceSlow, ErrDeviceDenied or ErrDeviceEnded.
func (d *DeviceLogins) Redeem(ctx context.Context, device string) (DeviceKey, error) {
	_, hash, err := d.byCode(ctx, deviceCode, device)
	if errors.Is(err, ErrNotFound) {
		return DeviceKey{}, ErrDeviceEnded
	}
	if err != nil {
		return DeviceKey{}, err
	}
	var login DeviceLogin
	var refused error
	err = d.Store.ChangeDeviceLogin(ctx, hash, func(stored *DeviceLogin) {
		refused = stored.poll(d.Now())
		login = *stored
	})
	if errors.Is(err, ErrNotFound) {
		err = ErrDeviceEnded
	}
	if err = errors.Join(err, refused); err != nil {
		return DeviceKey{}, err
	}
	// From here on the login is used, so that a failure to create the key needs another login.
	ctx = WithActor(ctx, Actor{User: login.User, Name: login.Email, From: login.From})
	key, secret, err := d.Keys.CreateAPIKey(ctx, login.Workspace, APIKey{
		Name: login.Machine, Scopes: DeviceScopes(), CreatedBy: login.User, APIKeyTimes: APIKeyTimes{ExpiresAt: login.KeyExpires},
	})
	if errors.Is(err, ErrDenied) || errors.Is(err, ErrNotFound) {
		return DeviceKey{}, ErrDeviceDenied
	}
	return DeviceKey{APIKey: key, Secret: secret, WorkspaceName: login.Name}, err
}

// byCode returns the login with a code and its stored hash, or ErrNotFound.
func (d *DeviceLogins) byCode(ctx context.Context, kind codeKind, code string) (DeviceLogin, []byte, error) {
	for _, pepper := range d.Peppers {
		hash := kind.hash(pepper, code)
		login, err := d.Store.DeviceLogin(ctx, hash)
		if !errors.Is(err, ErrNotFound) {
			return login, hash, err
		}
	}
	return DeviceLogin{}, nil, ErrNotFound
}

// MayCreateKeys returns the workspaces for which a person may allow a terminal.
func (p Principal) MayCreateKeys() []Membership {
	return slices.DeleteFunc(slices.Clone(p.Memberships), func(membership Membership) bool {
		return !membership.Role.May(CreateKeys) || membership.Workspace.Suspension != nil
	})
}

// A user code is read aloud and typed: 8 of 20 letters (34.5 bits), without vowels and without letters that
// resemble digits, as RFC 8628 section 6.1 proposes. It works for ten minutes and ten wrong attempts.
const (
	userLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userLength  = 8
	deviceBytes = 32
)

// newDeviceCode returns a code that cannot be guessed.
func newDeviceCode() string {
	random := make([]byte, deviceBytes)
	_, _ = rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// newUserCode returns a code for a person to type.
func newUserCode() string {
	const fair = 256 - 256%len(userLetters) // bytes from here on would prefer some letters
	code := make([]byte, 0, userLength+1)
	random := make([]byte, 1)
	for len(code) < userLength+1 {
		if len(code) == userLength/2 {
			code = append(code, '-')
		}
		_, _ = rand.Read(random)
		if at := int(random[0]); at < fair {
			code = append(code, userLetters[at%len(userLetters)])
		}
	}
	return string(code)
}

// userCodeOf normalizes a typed code, and returns false if it cannot be one.
func userCodeOf(typed string) (string, bool) {
	letters := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' || r == '\u2013' {
			return -1
		}
		return r
	}, strings.ToUpper(strings.TrimSpace(typed)))
	return letters, len(letters) == userLength && strings.Trim(letters, userLetters) == ""
}

// codeKind distinguishes a login's two codes, so that one is never accepted for the other.
type codeKind string

const (
	deviceCode codeKind = "device code "
	userCode   codeKind = "user code "
)

// hash returns the stored form of a code. The pepper is not in the database, so that a leaked database does
// not allow trying all user codes.
func (k codeKind) hash(pepper []byte, code string) []byte {
	mac := hmac.New(sha256.New, pepper)
	mac.Write([]byte(string(k) + code))
	return mac.Sum(nil)
}
