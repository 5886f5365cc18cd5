package identity_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

const publicURL = "https://palimpsest.example.com"

// free never refuses.
type free struct{}

func (free) Check(context.Context, ...tenants.Count) error { return nil }
func (free) Take(context.Context, ...tenants.Count) error  { return nil }

// S11, S49: at most half as many passwords are hashed at once as there are processors, so that a flood of
// sign-ups leaves some to the proxy, and eight on any machine, because each takes 46 MiB; anyone
// who comes when many wait is told to come back.
func TestPasswordsAreHashedAFewAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	service, err := identity.NewService(storeOf(b.DB), free{}, [][]byte{b.signing}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	release := service.Occupy()
	const extra = 86
	refused, group := make(chan error, identity.MaxWaiting+extra), sync.WaitGroup{}
	for i := range identity.MaxWaiting + extra {
		group.Go(func() {
			_, _, err := service.LogIn(t.Context(), fmt.Sprintf("p%d@example.com", i), "wrong password", "192.0.2.1", "test")
			if !errors.Is(err, tenants.ErrWrongLogin) {
				refused <- err
			}
		})
	}
	for range extra {
		var tooMany tenants.TooMany
		if err := <-refused; !errors.As(err, &tooMany) || tooMany.Wait <= 0 {
			t.Errorf("error %v while %d wait", err, identity.MaxWaiting)
		}
	}
	release()
	group.Wait()
	if most := service.MostAtOnce(); most < 1 || most > int64(identity.Hashing(runtime.GOMAXPROCS(0))) {
		t.Errorf("%d at once on %d processors", most, runtime.GOMAXPROCS(0))
	}
	for processors, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 16: identity.MaxHashing, 64: identity.MaxHashing} {
		if got := identity.Hashing(processors); got != want {
			t.Errorf("%d at once on %d processors, want %d", got, processors, want)
		}
	}
	if service.Runs() != identity.MaxWaiting || len(refused) > 0 {
		t.Errorf("%d hashed, %d refused of those who waited", service.Runs(), len(refused))
	}
}

// mailed answers what was asked for and returns the newest mail to ada@example.com.
func (b *bundle) mailed(t *testing.T) tenants.Mail {
	t.Helper()
	if err := b.service.AnswerRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	mails, err := b.DB.Mail.Mails(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(mails, func(mail tenants.WaitingMail) bool { return mail.To == "ada@example.com" })
	if i < 0 {
		return tenants.Mail{}
	}
	return mails[i].Mail
}

// secret returns the secret of the link in a mail.
func secret(t *testing.T, mail tenants.Mail, path string) string {
	t.Helper()
	_, after, found := strings.Cut(mail.Text, publicURL+path)
	if !found {
		t.Fatalf("no link %s in %+v", path, mail)
	}
	return strings.Fields(after)[0]
}

// S11: where addresses must be verified first, a sign-up answers by mail alone, and
// nobody logs in who has not opened its link.
func TestSignUpIsAnsweredByMailWhereAddressesMustBeVerified(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.SetMails(identity.Mails{PublicURL: publicURL, RequireVerified: true})
	b.service.SetSignUps(identity.SignUps{Quiet: true})
	ask := func(secret string) {
		t.Helper()
		ctx := tenants.WithActor(t.Context(), tenants.Actor{From: "192.0.2.1"})
		if _, token, err := b.service.SignUp(ctx, "ada@example.com", secret, "Northbeam", "test"); !errors.Is(err, tenants.ErrMailSent) || token != "" {
			t.Fatalf("sign-up: %v", err)
		}
	}
	logIn := func(secret string) error {
		_, _, err := b.service.LogIn(t.Context(), "ada@example.com", secret, "192.0.2.1", "test")
		return err
	}
	ask(password)
	link := secret(t, b.mailed(t), "/verify/")
	if err := logIn(password); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("before the link is opened: %v", err)
	}
	if token, err := b.service.ConfirmEmail(t.Context(), link); err != nil || token.Kind != tenants.TokenVerify {
		t.Fatalf("confirm: %+v, %v", token, err)
	}
	if err := logIn(password); err != nil {
		t.Errorf("after it: %v", err)
	}
	ask("another password")
	if mail := b.mailed(t); mail.Subject != "You have an account already" || strings.Contains(mail.Text, "/verify/") {
		t.Errorf("a second sign-up sends %+v", mail)
	}
	if err := logIn("another password"); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("the second sign-up's password: %v", err)
	}
}

// S12: links end after an hour and after a day, and cannot be guessed from what is
// stored.
func TestLinksEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.SetMails(identity.Mails{PublicURL: publicURL})
	principal, _ := b.signUp(t, "ada@example.com")
	verify := secret(t, b.mailed(t), "/verify/")
	if err := b.service.AskReset(t.Context(), "Ada@example.com", "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	reset := secret(t, b.mailed(t), "/reset/")

	var stored string
	err := b.Owner(t).QueryRow(t.Context(), "SELECT string_agg(r::text, '') FROM user_tokens r").Scan(&stored)
	if err != nil || strings.Contains(stored, reset) || strings.Contains(stored, verify) || stored == "" {
		t.Errorf("stored: %s (%v)", stored, err)
	}
	if err := b.service.ResetPassword(t.Context(), verify, "another long one"); !errors.Is(err, tenants.ErrLinkEnded) {
		t.Errorf("a link to verify resets: %v", err)
	}
	if _, err := b.service.Link(t.Context(), reset); err != nil {
		t.Errorf("at once: %v", err)
	}
	b.clock.advance(time.Hour)
	if err := b.service.ResetPassword(t.Context(), reset, "another long one"); !errors.Is(err, tenants.ErrLinkEnded) {
		t.Errorf("a reset after an hour: %v", err)
	}
	b.clock.advance(23 * time.Hour)
	if _, err := b.service.ConfirmEmail(t.Context(), verify); !errors.Is(err, tenants.ErrLinkEnded) {
		t.Errorf("a verification after a day: %v", err)
	}
	if err := b.service.SendVerification(t.Context(), principal.User); err != nil {
		t.Fatal(err)
	}
	again := secret(t, b.mailed(t), "/verify/")
	for i, want := range []error{nil, tenants.ErrLinkEnded} {
		if _, err := b.service.ConfirmEmail(t.Context(), again); !errors.Is(err, want) {
			t.Errorf("try %d: %v, want %v", i+1, err, want)
		}
	}
}

// S9: another replica that heard of it refuses other logins at their next request.
func TestChangedPasswordEndsLoginsOnOtherReplicas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	principal, kept := b.signUp(t, "ada@example.com")
	_, other, err := b.service.LogIn(t.Context(), "ada@example.com", password, "192.0.2.1", "test")
	if err != nil {
		t.Fatal(err)
	}
	replica, err := identity.NewService(storeOf(b.DB), free{}, [][]byte{b.signing}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Authenticate(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := b.service.ChangePassword(t.Context(), principal, "wrong password", "another long one"); !isInvalid(err, "current_password") {
		t.Errorf("with a wrong password: %v", err)
	}
	if err := b.service.ChangePassword(t.Context(), principal, password, "short"); !isInvalid(err, "password") {
		t.Errorf("to a short one: %v", err)
	}
	if err := b.service.ChangePassword(t.Context(), principal, password, "another long one"); err != nil {
		t.Fatal(err)
	}
	replica.Forget() // as the notification has it
	for _, service := range []*identity.Service{b.service, replica} {
		if _, err := service.Authenticate(t.Context(), other); !errors.Is(err, tenants.ErrLoginEnded) {
			t.Errorf("the other login: %v", err)
		}
		if _, err := service.Authenticate(t.Context(), kept); err != nil {
			t.Errorf("the login that changed it: %v", err)
		}
	}
	if err := b.service.EndLogin(t.Context(), uuid.New(), principal.Login.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("someone else's login: %v", err)
	}
}

func isInvalid(err error, field string) bool {
	invalid, is := errors.AsType[tenants.Invalid](err)
	return is && invalid.Field == field
}
