package identity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/alexedwards/argon2id"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// S11: what attackers try first is no password.
func TestCommonPasswordsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service = b.quick(t)
	for _, weak := range []string{
		"administrator", "unbelievable", "1qaz2wsx3edc4rfv", // on the list as they are
		"Password1234", "p@ssw0rd!!!!", "Welcome12345", "123456password", "pa$$word2026!", "We1come!2026", "iloveyou<3<3<3",
		"passwordpassword", "monkeymonkey", "abcabcabcabc", // repeated
		"aaaaaaaaaaaa", "121212121212", "            ",
		"123456789012", "098765432109", "abcdefghijkl", "qwertyuiopas", "asdfghjkl;'z",
		"Palimpsest2026", "ada.lovelace", "Ada.Lovelace1815", "ada.lovelace@example.com",
	} {
		_, _, err := b.service.SignUp(t.Context(), "ada.lovelace@example.com", weak, "Northbeam", "test")
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "password" || !strings.Contains(invalid.Message, "common") {
			t.Errorf("%q: %v", weak, err)
		}
	}
	for i, good := range []string{
		"correct horse battery", "another long one", "kayak-lemon-9", "Grüße aus Öhringen", "x7!kQ2#vB9@m", "密码是一个很长的句子没错", "482915073364",
	} {
		if _, _, err := b.service.SignUp(t.Context(), string(rune('a'+i))+"@example.com", good, "Northbeam", "test"); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// S11: twelve characters are twelve characters in any script, wherever a password is set.
func TestPasswordsHaveTwelveCharacters(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	b.service.SetMails(identity.Mails{PublicURL: publicURL})
	_, link := b.invite(t, "grace@example.com", tenants.Viewer)
	if err := b.service.AskReset(t.Context(), "owner@example.com", "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	if err := b.service.AnswerRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	reset := secret(t, b.mails(t, "owner@example.com")[0], "/reset/")
	for _, short := range []string{"kayak-lemon", "gräßlich-öö", "密码是一个很长的句子没", strings.Repeat("kayak-lemon-", 17)} {
		_, _, signUp := b.service.SignUp(t.Context(), "new@example.com", short, "Northbeam", "test")
		_, _, invited := b.invitations.SignUp(t.Context(), link, short, "", "test")
		for name, err := range map[string]error{
			"sign up": signUp, "sign up through an invitation": invited,
			"change": b.service.ChangePassword(t.Context(), b.owner, password, short),
			"reset":  b.service.ResetPassword(t.Context(), reset, short),
		} {
			if !isInvalid(err, "password") || !strings.Contains(err.Error(), "12 to 200") {
				t.Errorf("%s with %q: %v", name, short, err)
			}
		}
	}
	for name, weak := range map[string]func() error{
		"invited": func() error {
			_, _, err := b.invitations.SignUp(t.Context(), link, "grace1234567", "", "test")
			return err
		},
		"changed": func() error { return b.service.ChangePassword(t.Context(), b.owner, password, "owner1234567") },
		"reset":   func() error { return b.service.ResetPassword(t.Context(), reset, "owner1234567") },
	} {
		if err := weak(); !isInvalid(err, "password") {
			t.Errorf("%s to one's own name: %v", name, err)
		}
	}
	if err := b.service.ResetPassword(t.Context(), reset, "grüße-öäüß12"); err != nil {
		t.Errorf("twelve characters: %v", err)
	}
}

// oldParams are those of hashes from before.
func oldParams() *argon2id.Params {
	return &argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}
}

// keep keeps a hash of a password, made with parameters, and returns it.
func (b *bundle) keep(t *testing.T, email, password string, params *argon2id.Params) string {
	t.Helper()
	hash, err := argon2id.CreateHash(password, params)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Owner(t).Exec(t.Context(), "UPDATE users SET password_hash = $1 WHERE email = $2", hash, email); err != nil {
		t.Fatal(err)
	}
	return hash
}

// kept returns the hash that is kept for ada@example.com.
func (b *bundle) kept(t *testing.T) string {
	t.Helper()
	_, hash, err := b.DB.Accounts.UserByEmail(t.Context(), "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// S11: passwords are hashed with 46 MiB, one pass and one lane, OWASP's first choice, and
// those from before when their person next logs in. A short one from before still logs in.
func TestOldHashIsRenewedAtLogIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.service.HashWith(identity.HashMemory); err != nil {
		t.Fatal(err)
	}
	who, _ := b.signUp(t, "ada@example.com")
	const params = "$argon2id$v=19$m=47104,t=1,p=1$"
	if hash := b.kept(t); !strings.HasPrefix(hash, params) {
		t.Errorf("a new password is kept as %s", hash)
	}
	old := b.keep(t, "ada@example.com", "short", oldParams())
	logIn := func(password string) error {
		_, _, err := b.service.LogIn(t.Context(), "ada@example.com", password, "192.0.2.1", "test")
		return err
	}
	if err := logIn("wrong password"); !errors.Is(err, tenants.ErrWrongLogin) || b.kept(t) != old {
		t.Errorf("a wrong password: %v, %s", err, b.kept(t))
	}
	for range 2 {
		if err := logIn("short"); err != nil {
			t.Fatal(err)
		}
		renewed := b.kept(t)
		if !strings.HasPrefix(renewed, params) {
			t.Errorf("after logging in it is %s", renewed)
		}
		if old != renewed && !strings.HasPrefix(old, params) {
			old = renewed
		} else if old != renewed {
			t.Error("it is renewed at each log-in")
		}
	}
	if err := b.DB.Accounts.RenewPasswordHash(t.Context(), who.User.ID, "another", "stale"); err != nil || b.kept(t) != old {
		t.Errorf("a stale hash replaces a changed one: %v", err)
	}
}

// S11: who has not logged in since the parameters changed cannot be told from the others.
func TestOldHashIsTheSameWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.service.HashWith(identity.HashMemory); err != nil {
		t.Fatal(err)
	}
	b.signUp(t, "ada@example.com")
	b.signUp(t, "old@example.com")
	b.keep(t, "old@example.com", password, oldParams())
	works := map[string]int64{}
	for _, email := range []string{"ada@example.com", "old@example.com", "nobody@example.com"} {
		before := b.service.Work()
		if _, _, err := b.service.LogIn(t.Context(), email, "wrong password", "192.0.2.1", "test"); !errors.Is(err, tenants.ErrWrongLogin) {
			t.Fatal(err)
		}
		works[email] = b.service.Work() - before
	}
	if works["ada@example.com"] != 46<<10 || works["old@example.com"] != 46<<10 || works["nobody@example.com"] != 46<<10 {
		t.Errorf("KiB times passes: %v", works)
	}
}
