package identity_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"palimpsest/api/redistest"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// slack is how many more tries Redis, which has a clock of its own, may free while a test
// runs on a loaded machine: one in 22 seconds.
const slack = 8

// replicas returns how the service is run: in one process that counts by itself, and as two
// that count in Redis. Each try goes to the next.
func (b *bundle) replicas(t *testing.T) map[string][]*identity.Service {
	t.Helper()
	address, _ := redistest.Start(t)
	var two []*identity.Service
	for range 2 {
		throttle := identity.NewRedisThrottle(redistest.Client(t, address))
		throttle.Patience = time.Minute // of a loaded machine
		two = append(two, b.with(t, throttle))
	}
	return map[string][]*identity.Service{"one process": {b.quick(t)}, "two replicas": two}
}

// with returns a service that counts with a throttle.
func (b *bundle) with(t *testing.T, throttle tenants.Throttle) *identity.Service {
	t.Helper()
	service, err := identity.NewService(storeOf(b.DB), throttle, [][]byte{b.signing}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	service.SetMails(identity.Mails{PublicURL: publicURL})
	return service
}

func (b *bundle) quick(t *testing.T) *identity.Service {
	t.Helper()
	throttle, err := identity.NewLocalThrottle(b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	return b.with(t, throttle)
}

// logIn logs in with the replica whose turn it is.
func logIn(t *testing.T, replicas []*identity.Service, turn int, email, password, from string) error {
	t.Helper()
	_, _, err := replicas[turn%len(replicas)].LogIn(t.Context(), email, password, from, "test")
	if err != nil && !errors.Is(err, tenants.ErrWrongLogin) && !errors.Is(err, tenants.ErrTooMany) {
		t.Fatal(err)
	}
	return err
}

// S11, S40: an account is not guessed at from many places, whether it exists or not, and its
// person still logs in where they have logged in before.
func TestAccountIsNotGuessedAtFromManyPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.signUp(t, "ada@example.com")
	for name, replicas := range b.replicas(t) {
		t.Run(name, func(t *testing.T) {
			if err := logIn(t, replicas, 0, "ada@example.com", password, "198.51.100.7"); err != nil {
				t.Fatal(err)
			}
			for _, email := range []string{"ada@example.com", "nobody@example.com"} {
				tried := 0
				for i := range 60 {
					err := logIn(t, replicas, i, email, "wrong password", fmt.Sprintf("192.0.2.%d", i%6))
					if errors.Is(err, tenants.ErrWrongLogin) {
						tried++
					}
				}
				if tried < 40 || tried > 40+slack {
					t.Errorf("%s: %d of 60 wrong passwords from six places were tried, want 40", email, tried)
				}
			}
			many, is := errors.AsType[tenants.TooMany](logIn(t, replicas, 0, "ada@example.com", password, "203.0.113.1"))
			if !is || many.Wait <= 0 || many.Wait > 15*time.Minute {
				t.Errorf("the right password from a place that was never used: %+v, %v", many, is)
			}
			if err := logIn(t, replicas, 1, "ada@example.com", password, "198.51.100.7"); err != nil {
				t.Errorf("the right password from a place that was used: %v", err)
			}
			for i := range 10 { // the pair still counts there
				_ = logIn(t, replicas, i, "ada@example.com", "wrong password", "198.51.100.7")
			}
			if err := logIn(t, replicas, 1, "ada@example.com", password, "198.51.100.7"); !errors.Is(err, tenants.ErrTooMany) {
				t.Errorf("after ten wrong passwords there: %v", err)
			}
		})
	}
}

// S11: a place that was used long ago is a place like any other.
func TestUsedPlaceIsForgottenAfterMonths(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.signUp(t, "ada@example.com")
	service := []*identity.Service{b.quick(t)}
	if err := logIn(t, service, 0, "ada@example.com", password, "198.51.100.7"); err != nil {
		t.Fatal(err)
	}
	b.clock.advance(100 * 24 * time.Hour)
	for i := range 40 {
		_ = logIn(t, service, 0, "ada@example.com", "wrong password", fmt.Sprintf("192.0.2.%d", i))
	}
	if err := logIn(t, service, 0, "ada@example.com", password, "198.51.100.7"); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("from a place used 100 days ago: %v", err)
	}
}

// S11, S40: one place does not try one password on many accounts. An IPv6 network is one place.
func TestAccountsAreNotSprayedFromOnePlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.signUp(t, "ada@example.com")
	addresses := map[string]func(i int) string{
		"an IPv4 address": func(int) string { return "192.0.2.1" },
		"an IPv6 network": func(i int) string { return fmt.Sprintf("2001:db8:0:1::%x", i+1) },
	}
	for name, replicas := range b.replicas(t) {
		for kind, address := range addresses {
			t.Run(name+" and "+kind, func(t *testing.T) {
				tried := 0
				for i := range 40 {
					if err := logIn(t, replicas, i, fmt.Sprintf("p%d@example.com", i), "wrong password", address(i)); errors.Is(err, tenants.ErrWrongLogin) {
						tried++
					}
				}
				if tried < 30 || tried > 30+slack {
					t.Errorf("%d of 40 accounts were tried, want 30", tried)
				}
				if err := logIn(t, replicas, 0, "ada@example.com", password, address(99)); !errors.Is(err, tenants.ErrTooMany) {
					t.Errorf("the right password from there: %v", err)
				}
				if err := logIn(t, replicas, 0, "ada@example.com", password, "2001:db8:0:2::1"); err != nil {
					t.Errorf("from elsewhere: %v", err)
				}
			})
		}
	}
}

// S11, S40: wrong codes from elsewhere do not keep a person out where they have logged in before.
func TestCodesAreNotGuessedAtFromManyPlaces(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	home := tenants.WithActor(t.Context(), tenants.Actor{From: "198.51.100.7"})
	if _, _, err := g.service.LogInWithCode(home, g.pending(t), g.code(t), "test"); err != nil {
		t.Fatal(err)
	}
	pending, tried := g.pending(t), 0
	for i := range 20 {
		ctx := tenants.WithActor(t.Context(), tenants.Actor{From: fmt.Sprintf("192.0.2.%d", i)})
		if _, _, err := g.service.LogInWithCode(ctx, pending, "00000x", "test"); errors.Is(err, tenants.ErrWrongLogin) {
			tried++
		}
	}
	if tried != 10 {
		t.Errorf("%d of 20 wrong codes from 20 places were tried, want 10", tried)
	}
	g.clock.advance(time.Minute) // a code works once
	away := tenants.WithActor(t.Context(), tenants.Actor{From: "203.0.113.1"})
	if _, _, err := g.service.LogInWithCode(away, pending, g.code(t), "test"); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("the right code from a place that was never used: %v", err)
	}
	if _, _, err := g.service.LogInWithCode(home, pending, g.code(t), "test"); err != nil {
		t.Errorf("the right code from a place that was used: %v", err)
	}
}

// S11, S40: a place asks for ten links, and a flood of asking for a person neither keeps them from
// asking nor from logging in: they are sent a few mails, whose links work.
func TestAskingForLinksIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.SetMails(identity.Mails{PublicURL: publicURL})
	b.signUp(t, "ada@example.com")
	before := len(b.mails(t, "ada@example.com"))
	for i := range 40 {
		if err := b.service.AskReset(t.Context(), "ada@example.com", fmt.Sprintf("192.0.2.%d", i)); err != nil {
			t.Fatalf("ask %d: %v", i+1, err)
		}
		if err := b.service.AnswerRequests(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.age(t, 2*time.Minute) // or the pause between two links would bound them
	}
	mails := b.mails(t, "ada@example.com")
	if sent := len(mails) - before; sent != 5 {
		t.Errorf("%d links were sent, want 5", sent)
	}
	if waiting, err := b.DB.Accounts.AccountRequests(t.Context(), 100); len(waiting) > 0 || err != nil {
		t.Errorf("%d requests wait: %v", len(waiting), err)
	}
	if _, err := b.service.Link(t.Context(), secret(t, mails[0], "/reset/")); err != nil {
		t.Errorf("the last link that was sent: %v", err)
	}
	if _, _, err := b.service.LogIn(t.Context(), "ada@example.com", password, "203.0.113.1", "test"); err != nil {
		t.Errorf("log in: %v", err)
	}

	for i := range 10 {
		if err := b.service.AskReset(t.Context(), fmt.Sprintf("p%d@example.com", i), "198.51.100.1"); err != nil {
			t.Fatal(err)
		}
	}
	var tooMany tenants.TooMany
	if err := b.service.AskReset(t.Context(), "new@example.com", "198.51.100.1"); !errors.As(err, &tooMany) || tooMany.Wait <= 0 {
		t.Errorf("an eleventh from one place: %v", err)
	}
	b.clock.advance(tooMany.Wait + time.Second)
	if err := b.service.AskReset(t.Context(), "ada@example.com", "198.51.100.1"); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	if err := b.service.AnswerRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sent := len(b.mails(t, "ada@example.com")) - before; sent != 6 {
		t.Errorf("%d links after the wait, want 6", sent)
	}
}

// mails returns the mails that wait for an address, the newest first.
func (b *bundle) mails(t *testing.T, to string) (found []tenants.Mail) {
	t.Helper()
	waiting, err := b.DB.Mail.Mails(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, mail := range waiting {
		if mail.To == to {
			found = append(found, mail.Mail)
		}
	}
	return found
}

// age makes the tokens of links older than they are.
func (b *bundle) age(t *testing.T, by time.Duration) {
	t.Helper()
	if _, err := b.Owner(t).Exec(t.Context(), "UPDATE user_tokens SET created_at = created_at - $1::interval", by.String()); err != nil {
		t.Fatal(err)
	}
}

// S11, S40: changes that a person gets a mail about are bounded.
func TestChangesThatSendMailsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service = b.quick(t)
	who, _ := b.signUp(t, "ada@example.com")
	for i := range 20 {
		if err := b.service.ConfirmPassword(t.Context(), who, password); err != nil {
			t.Fatalf("change %d: %v", i+1, err)
		}
	}
	if err := b.service.ChangePassword(t.Context(), who, password, "another long one"); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("the twenty-first: %v", err)
	}
}

// S11, S40: no address is flooded with invitations, and no workspace floods the world.
func TestInvitationsAreBounded(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	before := len(b.mails(t, "grace@example.com"))
	invite := func(emails ...string) error {
		_, err := b.invitations.Invite(b.ctx, b.owner.Workspace.ID, emails, tenants.Viewer)
		return err
	}
	invited := 0
	for range 120 {
		err := invite("grace@example.com")
		if many, is := errors.AsType[tenants.TooMany](err); is && many.Wait > 0 && many.What != "" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		invited++
	}
	if sent := len(b.mails(t, "grace@example.com")) - before; invited != 10 || sent != 10 {
		t.Errorf("%d of 120 invitations to one address, %d mails, want 10", invited, sent)
	}
	if err := invite("new@example.com", "grace@example.com"); !errors.Is(err, tenants.ErrTooMany) || len(b.mails(t, "new@example.com")) > 0 {
		t.Errorf("with another address: %v, want neither invited", err)
	}
	waiting, err := b.invitations.Pending(t.Context(), b.owner.Workspace.ID)
	if err != nil || len(waiting) != 1 {
		t.Fatalf("%d invitations wait: %v", len(waiting), err)
	}
	b.clock.advance(2 * time.Minute)
	if _, err := b.invitations.Resend(b.ctx, b.owner.Workspace.ID, waiting[0].ID); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("resend: %v", err)
	}
	if err := b.service.AskReset(t.Context(), "grace@example.com", "192.0.2.9"); err != nil {
		t.Errorf("the invited person's own links: %v", err)
	}

	var many error
	for i := 0; i < 10 && many == nil; i++ {
		var emails []string
		for j := range 50 {
			emails = append(emails, fmt.Sprintf("p%d@example.com", 50*i+j))
		}
		many = invite(emails...)
	}
	if !errors.Is(many, tenants.ErrTooMany) {
		t.Errorf("500 invitations of one workspace: %v", many)
	}
	b.clock.advance(time.Hour)
	if err := invite("grace@example.com"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// S11, S40: whatever is counted by place counts the addresses of an IPv6 network together.
func TestAddressesOfAnIPv6NetworkAreCountedTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service = b.quick(t)
	b.service.SetSignUps(identity.SignUps{PerPlace: 10})
	for name, try := range map[string]func(ctx context.Context, i int, address string) error{
		"sign-ups": func(ctx context.Context, i int, _ string) error { return b.try(ctx, fmt.Sprintf("p%d@example.com", i)) },
		"links": func(ctx context.Context, i int, address string) error {
			return b.service.AskReset(ctx, fmt.Sprintf("p%d@example.com", i), address)
		},
		"passkeys": func(ctx context.Context, _ int, _ string) error {
			return errors.Join(b.service.Throttle().Check(ctx, "passkeys"), b.service.Throttle().Failed(ctx, "passkeys"))
		},
	} {
		at := func(i int, network string) error {
			address := fmt.Sprintf("%s::%x", network, i+1)
			return try(tenants.WithActor(t.Context(), tenants.Actor{From: address}), i, address)
		}
		for i := range 10 {
			if err := at(i, "2001:db8:0:1"); err != nil {
				t.Fatalf("%s: the %d. of a network: %v", name, i+1, err)
			}
		}
		if err := at(10, "2001:db8:0:1"); !errors.Is(err, tenants.ErrTooMany) {
			t.Errorf("%s: the eleventh of a network: %v", name, err)
		}
		if err := at(11, "2001:db8:0:2"); err != nil {
			t.Errorf("%s: of another network: %v", name, err)
		}
	}
}
