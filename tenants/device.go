package tenants

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
)

// How a terminal logs in (RFC 8628).
const (
	DeviceLoginAge  = 10 * time.Minute // how long its codes work
	devicePause     = 5 * time.Second  // between two of its questions, at least
	maxMachine      = 80
	maxDeviceLogins = 20 // that one place begins in DeviceLoginAge
	maxWrongCodes   = 10 // of a person, and of a place, in DeviceLoginAge
)

// The answers to a terminal that asks for its key, besides the key.
var (
	ErrDevicePending = errors.New("nobody has allowed this login yet")
	ErrDeviceSlow    = errors.New("the terminal asks too often")
	ErrDeviceDenied  = errors.New("the person has denied this login, or may not create keys")
	ErrDeviceEnded   = errors.New("this login has expired, or was used")
)

// A DeviceLogin is a terminal that asks to log in. Neither of its codes is kept.
type DeviceLogin struct {
	Machine   string // as the terminal calls it
	From      string // the terminal's address
	AskedAt   time.Time
	ExpiresAt time.Time
	Pause     time.Duration // between two questions of the terminal, at least
	PolledAt  time.Time     // when it last asked; zero if never
	UsedAt    time.Time     // when its key was made; zero if it was not

	DeviceDecision
}

// DeviceDecision is what a person says to a terminal that asks to log in.
type DeviceDecision struct {
	Denied     bool
	User       uuid.UUID   // who allows it; Nil until someone does
	Email      string      // theirs
	Workspace  WorkspaceID // for which workspace
	Name       string      // of the workspace
	KeyExpires *time.Time  // when the key is to expire; nil if never
}

// Waits reports whether a person can still decide on a login.
func (l DeviceLogin) Waits(now time.Time) bool {
	return !l.Denied && l.User == uuid.Nil && now.Before(l.ExpiresAt)
}

// poll notes that the terminal asks, and returns nil once, when it is to have its key.
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

// DeviceLoginStore keeps the logins of terminals by the hashes of their codes.
type DeviceLoginStore interface {
	CreateDeviceLogin(ctx context.Context, login DeviceLogin, device, code []byte) error

	// DeviceLogin returns the login one of whose codes has a hash, or ErrNotFound.
	DeviceLogin(ctx context.Context, hash []byte) (DeviceLogin, error)

	// ChangeDeviceLogin stores what change makes of it. Of two at once, the second one
	// sees what the first one has left.
	ChangeDeviceLogin(ctx context.Context, hash []byte, change func(*DeviceLogin)) error
}

// DeviceLogins lets terminals log in: a person who is logged in allows it on the dashboard,
// and the terminal gets an API key.
type DeviceLogins struct {
	Store    DeviceLoginStore
	Keys     APIKeys
	Throttle Throttle
	Peppers  [][]byte // under which codes are hashed; all of them are tried
	Page     string   // address of the page where people type the code
	Now      func() time.Time
}

// DeviceCodes are what a terminal is given to log in with.
type DeviceCodes struct {
	Device string // for the terminal alone
	User   string // for the person to type: WDJB-MJHT
	Pause  time.Duration
}

// Begin lets the terminal of the context's actor ask to log in. It returns an Invalid for the
// name of the machine, and a TooMany.
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

// Find returns the login with a user code that waits for a decision. It returns an Invalid of the field
// code for every other one, and a TooMany after too many of those.
func (d *DeviceLogins) Find(ctx context.Context, typed string) (DeviceLogin, error) {
	login, _, err := d.find(ctx, typed)
	return login, err
}

// Decide has the person who is the context's actor allow or deny a login that waits. Its errors are those of Find.
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

// wrongCodes counts codes that no terminal waits with: guessing one would let a person's
// key go to a terminal of someone else.
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

// A DeviceKey is the API key that a terminal was given.
type DeviceKey struct {
	APIKey

	Secret        string
	WorkspaceName string
}

// DeviceScopes are what the key of a terminal may do, of what the person behind it may.
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
	// From here on the login is used: a key that cannot be made takes another login.
	ctx = WithActor(ctx, Actor{User: login.User, Name: login.Email, From: login.From})
	key, secret, err := d.Keys.CreateAPIKey(ctx, login.Workspace, APIKey{
		Name: login.Machine, Scopes: DeviceScopes(), CreatedBy: login.User, APIKeyTimes: APIKeyTimes{ExpiresAt: login.KeyExpires},
	})
	if errors.Is(err, ErrDenied) || errors.Is(err, ErrNotFound) {
		return DeviceKey{}, ErrDeviceDenied
	}
	return DeviceKey{APIKey: key, Secret: secret, WorkspaceName: login.Name}, err
}

// byCode returns the login with a code and the hash that it is kept under, or ErrNotFound.
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

// MayCreateKeys returns the workspaces for which a person can let a terminal log in.
func (p Principal) MayCreateKeys() []Membership {
	return slices.DeleteFunc(slices.Clone(p.Memberships), func(membership Membership) bool {
		return !membership.Role.May(CreateKeys) || membership.Workspace.Suspension != nil
	})
}
