package passkey_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/google/uuid"

	"palimpsest/tenants"
)

// S32: a passkey is noted, and ends the logins that were opened without it.
func TestFirstPasskeyEndsOtherLoginsAndGivesRecoveryCodes(t *testing.T) {
	t.Parallel()
	h := setup(t).signUp(t, "ada@example.com")
	_, other, err := h.people.LogIn(t.Context(), "ada@example.com", password, "here", "test")
	if err != nil {
		t.Fatal(err)
	}
	codes, err := h.register(t, h.key, " Laptop ")
	if err != nil || len(codes) != tenants.RecoveryCodes {
		t.Fatalf("codes %v, %v", codes, err)
	}
	if _, err := h.people.Authenticate(t.Context(), other); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("another login: %v", err)
	}
	passkeys, factors, err := h.service.List(t.Context(), h.who.User.ID)
	if err != nil || len(passkeys) != 1 || passkeys[0].Name != "Laptop" || !passkeys[0].UsedAt.IsZero() || factors != (tenants.Factors{Passkeys: 1, Left: tenants.RecoveryCodes}) {
		t.Fatalf("%+v, %+v, %v", passkeys, factors, err)
	}
	more, err := h.register(t, virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeRSA), "Phone")
	if err != nil || len(more) != 0 {
		t.Errorf("the second one gives the codes %v, %v", more, err)
	}
	if got := h.noted(t, tenants.PasskeyAdded); got != 2 {
		t.Errorf("two passkeys are noted %d times", got)
	}
	h.clock.advance(time.Second)
	if _, err := h.people.Authenticate(t.Context(), mustLogIn(t, h)); err != nil {
		t.Error(err)
	}
}

func mustLogIn(t *testing.T, h *holder) string {
	t.Helper()
	token, err := h.logIn(t)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestPasskeyIsMadeByWhoKnowsThePasswordOnly(t *testing.T) {
	t.Parallel()
	h := setup(t).signUp(t, "ada@example.com")
	for field, given := range map[string][2]string{"password": {"Laptop", "not hers"}, "name": {"  ", password}} {
		_, err := h.service.Start(t.Context(), h.who, given[0], given[1])
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != field {
			t.Errorf("a wrong %s: %v", field, err)
		}
	}
	if _, err := h.service.Start(t.Context(), h.who, strings.Repeat("n", tenants.MaxPasskeyName+1), password); err == nil {
		t.Error("a name without an end is kept")
	}
	for range 10 {
		_, err := h.service.Start(t.Context(), h.who, "Laptop", "not hers")
		if err == nil {
			t.Fatal("a wrong password is taken")
		}
	}
	if _, err := h.service.Start(t.Context(), h.who, "Laptop", password); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("after ten wrong ones: %v", err)
	}
}

// What the browser is asked for is a key that knows its person, behind a PIN or a
// finger, and none that is kept already.
func TestBrowserIsAskedForAPasskey(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	held, err := h.service.Start(t.Context(), h.who, "Another", password)
	if err != nil {
		t.Fatal(err)
	}
	name, options, err := h.service.Options(t.Context(), h.who, held)
	if err != nil || name != "Another" {
		t.Fatal(name, err)
	}
	again, err := optionsOf(t, h, held)
	if err != nil || string(again) != string(options) {
		t.Errorf("asked again it is\n%s\nand was\n%s", again, options)
	}
	var asked struct {
		PublicKey struct {
			RP struct {
				ID string `json:"id"`
			} `json:"rp"`
			User struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"user"`
			Selection struct {
				ResidentKey      string `json:"residentKey"`
				UserVerification string `json:"userVerification"`
			} `json:"authenticatorSelection"`
			Exclude []struct {
				ID string `json:"id"`
			} `json:"excludeCredentials"`
			Attestation string `json:"attestation"`
			Challenge   string `json:"challenge"`
		} `json:"publicKey"`
	}
	if err := json.Unmarshal(options, &asked); err != nil {
		t.Fatal(err)
	}
	key := asked.PublicKey
	if key.RP.ID != "palimpsest.example" || key.User.Name != "ada@example.com" || key.Selection.ResidentKey != "required" ||
		key.Selection.UserVerification != "required" || len(key.Exclude) != 1 || len(key.Challenge) < 40 || strings.Contains(string(options), "direct") {
		t.Errorf("asked for %s", options)
	}
}

func optionsOf(t *testing.T, h *holder, held string) ([]byte, error) {
	t.Helper()
	_, options, err := h.service.Options(t.Context(), h.who, held)
	return options, err
}

func TestRegistrationThatProvesNothingIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h, eve := b.signUp(t, "ada@example.com"), b.signUp(t, "eve@example.com")
	begin := func() string {
		held, err := h.service.Start(t.Context(), h.who, "Laptop", password)
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	_, forLogIn := b.ask(t)
	held := begin()
	good := h.attest(t, held, h.key)
	for name, given := range map[string][2]string{
		"nothing held":       {"", good},
		"something held":     {"bm90aGluZw", good},
		"another challenge":  {begin(), good},
		"a log-in's":         {forLogIn, good},
		"no answer":          {held, ""},
		"no JSON":            {held, "{"},
		"a cut answer":       {held, good[:len(good)/2]},
		"an answer to login": {held, `{"id":"a","rawId":"a","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"","signature":""}}`},
	} {
		if _, err := h.service.Register(t.Context(), h.who, given[0], given[1]); !errors.Is(err, tenants.ErrPasskey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.service.Register(t.Context(), eve.who, held, good); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("for someone else: %v", err)
	}
	elsewhere := h.who
	elsewhere.Login.ID = uuid.New()
	if _, err := h.service.Register(t.Context(), elsewhere, held, good); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("in another login: %v", err)
	}
	for name, change := range map[string]func(*holder){
		"another site":         func(h *holder) { h.site.Origin = "https://evil.example" },
		"another site's id":    func(h *holder) { h.site.ID = "evil.example" },
		"nobody verified":      func(h *holder) { h.device.Options.UserNotVerified = true },
		"nobody there":         func(h *holder) { h.device.Options.UserNotPresent = true },
		"plain http":           func(h *holder) { h.site.Origin = "http://palimpsest.example" },
		"another of our ports": func(h *holder) { h.site.Origin = origin + ":8443" },
	} {
		changed := *h
		change(&changed)
		if _, err := changed.register(t, h.key, "Laptop"); !errors.Is(err, tenants.ErrPasskey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.clock.advance(tenants.PasskeyAge + time.Second)
	if _, err := h.service.Register(t.Context(), h.who, held, good); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("too late: %v", err)
	}
	if passkeys, _, err := h.service.List(t.Context(), h.who.User.ID); err != nil || len(passkeys) != 0 {
		t.Errorf("%d passkeys are kept, %v", len(passkeys), err)
	}
}

func TestPasskeyIsKeptOnceAndForOnePerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h, eve := b.withPasskey(t, "ada@example.com"), b.signUp(t, "eve@example.com")
	if _, err := h.register(t, h.key, "Again"); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := eve.register(t, h.key, "Hers"); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("for someone else: %v", err)
	}
	held, err := h.service.Start(t.Context(), h.who, "Another", password)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, tenants.ErrPasskey} {
		key := newKey()
		if _, err := h.service.Register(t.Context(), h.who, held, h.attest(t, held, key)); !errors.Is(err, want) {
			t.Errorf("answer %d to one challenge: %v", i+1, err)
		}
	}
}

func TestPeopleHaveABoundedNumberOfPasskeys(t *testing.T) {
	t.Parallel()
	h := setup(t).signUp(t, "ada@example.com")
	for i := range tenants.MaxPasskeys {
		passkey := tenants.Passkey{ID: uuid.New(), Name: strconv.Itoa(i), Credential: []byte{byte(i)}, PublicKey: []byte("k"), CreatedAt: h.clock.Now()}
		if _, err := h.DB.Factors.AddPasskey(context.Background(), h.who.User, h.who.Login.ID, passkey, []byte{byte(i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := h.service.Start(t.Context(), h.who, "One more", password)
	if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "name" {
		t.Errorf("one more: %v", err)
	}
}
