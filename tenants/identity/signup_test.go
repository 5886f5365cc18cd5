package identity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// try signs someone up and returns why not.
func (b *bundle) try(ctx context.Context, email string) error {
	_, _, err := b.service.SignUp(ctx, email, password, "Northbeam", "test")
	return err
}

func TestInviteOnlyLetsInTheFirstPersonAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.SetSignUps(identity.SignUps{Open: identity.OpenToInvited})
	if takes, err := b.service.TakesSignUps(t.Context()); !takes || err != nil {
		t.Fatalf("a new installation takes sign-ups: %v, %v", takes, err)
	}
	if err := b.try(t.Context(), "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	if err := b.try(t.Context(), "eve@example.com"); !errors.Is(err, tenants.ErrInviteOnly) {
		t.Errorf("the second person: %v", err)
	}
	if takes, err := b.service.TakesSignUps(t.Context()); takes || err != nil {
		t.Errorf("it takes sign-ups: %v, %v", takes, err)
	}
	if _, _, err := b.service.LogIn(t.Context(), "ada@example.com", password, "here", "test"); err != nil {
		t.Errorf("the first person cannot log in: %v", err)
	}
}

// rival is the store of one of several processes that all find an installation new.
type rival struct {
	identity.Store

	all      *sync.WaitGroup // until each has found it new
	once     sync.Once
	backward bool // takes the last request first
}

// HasWorkspaces implements identity.Store.
func (r *rival) HasWorkspaces(ctx context.Context) (bool, error) {
	has, err := r.Store.HasWorkspaces(ctx)
	r.once.Do(func() {
		r.all.Done()
		r.all.Wait()
	})
	return has, err
}

// AccountRequests implements identity.Store.
func (r *rival) AccountRequests(ctx context.Context, limit int) ([]tenants.AccountRequest, error) {
	requests, err := r.Store.AccountRequests(ctx, limit)
	if r.backward {
		slices.Reverse(requests)
	}
	return requests, err
}

// rivals returns two processes that find the installation new before either goes on.
func (b *bundle) rivals(t *testing.T, signUps identity.SignUps) [2]*identity.Service {
	t.Helper()
	var all sync.WaitGroup
	all.Add(2)
	var services [2]*identity.Service
	for i := range services {
		throttle, err := identity.NewLocalThrottle(b.clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		store := &rival{Store: storeOf(b.DB), all: &all, backward: i == 1}
		if services[i], err = identity.NewService(identity.Store{Accounts: store, LoginStore: store, WorkspaceStore: store, Factors: store}, throttle, [][]byte{b.signing}, b.clock.Now); err != nil {
			t.Fatal(err)
		}
		services[i].SetSignUps(signUps)
	}
	return services
}

// accounts returns how many of the addresses have an account.
func (b *bundle) accounts(t *testing.T, emails ...string) (count int) {
	t.Helper()
	for _, email := range emails {
		_, _, err := b.DB.Accounts.UserByEmail(t.Context(), email)
		switch {
		case err == nil:
			count++
		case !errors.Is(err, tenants.ErrNotFound):
			t.Fatal(err)
		}
	}
	return count
}

// Of two who are the first at once, one is: the other is told what everybody is told
// afterwards, and leaves no account.
func TestOneOfTwoFirstPeopleGetsIn(t *testing.T) {
	t.Parallel()
	emails := [2]string{"ada@example.com", "eve@example.com"}
	for name, signUps := range map[string]identity.SignUps{
		"by invitation": {Open: identity.OpenToInvited},
		"by domain":     {Open: identity.OpenToDomains, Allowed: []string{"example.org"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var answers [2]error
			var group sync.WaitGroup
			for i, service := range b.rivals(t, signUps) {
				group.Go(func() {
					_, _, answers[i] = service.SignUp(t.Context(), emails[i], password, "Northbeam", "test")
				})
			}
			group.Wait()
			if answers[0] != nil {
				answers[0], answers[1] = answers[1], answers[0]
			}
			_, invalid := errors.AsType[tenants.Invalid](answers[1])
			if answers[0] != nil || !invalid && !errors.Is(answers[1], tenants.ErrInviteOnly) {
				t.Errorf("answers: %v and %v", answers[0], answers[1])
			}
			if in := b.accounts(t, emails[:]...); in != 1 {
				t.Errorf("%d of them have an account", in)
			}
		})
	}
}

// Two processes that answer two sign-ups at once let one in, and write to the other.
func TestOneOfTwoFirstPeopleGetsInByMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	emails := [2]string{"ada@example.com", "eve@example.com"}
	b.service.SetMails(identity.Mails{PublicURL: publicURL, RequireVerified: true})
	for _, email := range emails {
		if err := b.try(t.Context(), email); !errors.Is(err, tenants.ErrMailSent) {
			t.Fatalf("%s: %v", email, err)
		}
	}
	var group sync.WaitGroup
	for _, service := range b.rivals(t, identity.SignUps{Open: identity.OpenToInvited}) {
		group.Go(func() {
			if err := service.AnswerRequests(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()

	mails, err := b.DB.Mail.Mails(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for _, mail := range mails {
		subjects = append(subjects, mail.Subject)
	}
	slices.Sort(subjects)
	if want := []string{"Sign-up is by invitation", "Verify your e-mail address"}; !slices.Equal(subjects, want) {
		t.Errorf("mails %q, want %q", subjects, want)
	}
	if in := b.accounts(t, emails[:]...); in != 1 {
		t.Errorf("%d of them have an account", in)
	}
	if requests, err := b.DB.Accounts.AccountRequests(t.Context(), 10); err != nil || len(requests) > 0 {
		t.Errorf("left: %+v, %v", requests, err)
	}
}

// Where a sign-up is answered by mail alone, several may ask before the first is there,
// and settings may change in between: the worker asks once more who may.
func TestWhoeverAskedTooLateIsToldSoByMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.SetMails(identity.Mails{PublicURL: publicURL, RequireVerified: true})
	b.service.SetSignUps(identity.SignUps{Open: identity.OpenToInvited})
	for _, email := range []string{"first@example.com", "second@example.com"} {
		if err := b.try(t.Context(), email); !errors.Is(err, tenants.ErrMailSent) {
			t.Fatalf("%s on a new installation: %v", email, err)
		}
	}
	if err := b.service.AnswerRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.service.SetSignUps(identity.SignUps{Quiet: true})
	for _, email := range []string{"late@elsewhere.example", "first@example.com"} {
		if err := b.try(t.Context(), email); !errors.Is(err, tenants.ErrMailSent) {
			t.Fatalf("%s: %v", email, err)
		}
	}
	b.service.SetSignUps(identity.SignUps{Open: identity.OpenToDomains, Allowed: []string{"other.example"}})
	for range 2 { // S28: the second time nothing is left to do
		if err := b.service.AnswerRequests(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	mails, err := b.DB.Mail.Mails(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, mail := range mails {
		told = append(told, mail.To+": "+mail.Subject)
	}
	slices.Sort(told)
	want := []string{
		"first@example.com: Verify your e-mail address", "first@example.com: You have an account already",
		"late@elsewhere.example: Sign-up is by invitation", "second@example.com: Sign-up is by invitation",
	}
	if !slices.Equal(told, want) {
		t.Errorf("mails\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	for email, known := range map[string]bool{"first@example.com": true, "second@example.com": false, "late@elsewhere.example": false} {
		if _, _, err := b.DB.Accounts.UserByEmail(t.Context(), email); known != (err == nil) {
			t.Errorf("%s has an account: %v", email, err)
		}
	}
	if requests, err := b.DB.Accounts.AccountRequests(t.Context(), 10); err != nil || len(requests) > 0 {
		t.Errorf("left: %+v, %v", requests, err)
	}
}

func TestAddressesAreTakenByTheirDomains(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.SetSignUps(identity.SignUps{
		Open: identity.OpenToDomains, Allowed: []string{"example.com", "mailinator.com", "bad.example.org"},
		RefuseDisposable: true, Blocked: []string{"example.org"},
	})
	b.signUp(t, "ada@anywhere.example") // the first person
	for email, taken := range map[string]bool{
		"grace@example.com": true, "GRACE2@EXAMPLE.COM": true, "eve@sub.example.com": false, "eve@other.example": false,
		"eve@notexample.com": false, "eve@mailinator.com": false, "eve@bad.example.org": false,
	} {
		err := b.try(t.Context(), email)
		invalid, is := errors.AsType[tenants.Invalid](err)
		if taken != (err == nil) || !taken && (!is || invalid.Field != "email") {
			t.Errorf("%s: %v", email, err)
		}
	}

	b.service.SetSignUps(identity.SignUps{RefuseDisposable: true})
	for email, taken := range map[string]bool{"a@yopmail.com": false, "a@x.guerrillamail.com": false, "a@myyopmail.com": true} {
		if err := b.try(t.Context(), email); taken != (err == nil) {
			t.Errorf("%s: %v", email, err)
		}
	}
	b.service.SetSignUps(identity.SignUps{})
	if err := b.try(t.Context(), "b@yopmail.com"); err != nil {
		t.Errorf("where they are allowed: %v", err)
	}
}

// S11: sign-ups of one place are bounded, of each for itself, and by the hour.
func TestSignUpsOfOnePlaceAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.SetSignUps(identity.SignUps{PerPlace: 10})
	at := func(place string) context.Context {
		return tenants.WithActor(t.Context(), tenants.Actor{From: place})
	}
	for i := range 10 {
		if err := b.try(at("192.0.2.1"), fmt.Sprintf("p%d@example.com", i)); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.now = b.clock.now.Add(20 * time.Minute) // more than failed logins are counted for
	many, is := errors.AsType[tenants.TooMany](b.try(at("192.0.2.1"), "more@example.com"))
	if !is || many.Wait != 40*time.Minute || !strings.Contains(many.What, "invitation") {
		t.Errorf("the eleventh: %+v, %v", many, is)
	}
	if err := b.try(at("192.0.2.2"), "other@example.com"); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
	if err := b.try(t.Context(), "command@example.com"); err != nil {
		t.Errorf("from the command line: %v", err)
	}
	if _, _, err := b.service.LogIn(t.Context(), "p1@example.com", password, "192.0.2.1", "test"); err != nil {
		t.Errorf("sign-ups count as failed log-ins: %v", err)
	}
	b.clock.now = b.clock.now.Add(41 * time.Minute)
	if err := b.try(at("192.0.2.1"), "more@example.com"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

func TestDomainsAreReadAsTheyAreCompared(t *testing.T) {
	t.Parallel()
	got, err := identity.ParseDomains(" Example.com, @example.org ,,")
	if err != nil || strings.Join(got, " ") != "example.com example.org" {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{"example", "a@example.com", "https://example.com", "*.example.com"} {
		if got, err := identity.ParseDomains(wrong); err == nil {
			t.Errorf("%s is read as %v", wrong, got)
		}
	}
}

// S8: the keys of a suspended workspace are refused as soon as that is heard, and
// work again when it is resumed.
func TestKeysOfASuspendedWorkspaceAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	who, _ := b.signUp(t, "ada@example.com")
	key, secret, hash := b.keys.Create(who.Workspace.ID, "laptop", []tenants.Scope{tenants.ScopeProxy}, who.User.ID, nil)
	if err := b.DB.APIKeys.CreateAPIKey(t.Context(), who.Workspace.ID, key, hash); err != nil {
		t.Fatal(err)
	}
	if _, err := b.keys.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := b.DB.Operators.SuspendWorkspace(t.Context(), who.User.ID, who.Workspace.ID, "abuse"); err != nil {
		t.Fatal(err)
	}
	b.keys.Changed(who.Workspace.ID.String()) // as the notification does
	if _, err := b.keys.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrSuspended) {
		t.Errorf("suspended: %v", err)
	}
	if err := b.DB.Operators.ResumeWorkspace(t.Context(), who.User.ID, who.Workspace.ID, "over"); err != nil {
		t.Fatal(err)
	}
	b.keys.Changed(who.Workspace.ID.String())
	if _, err := b.keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("resumed: %v", err)
	}
}
