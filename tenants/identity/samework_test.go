package identity_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

// counting counts what is asked of a store while a stranger waits for the answer. It has no
// other method: what it does not count panics.
type counting struct {
	identity.Store

	db    *tenantsdb.DB
	mu    sync.Mutex
	calls map[string]int
}

func newCounting(db *tenantsdb.DB) *counting {
	return &counting{db: db, calls: map[string]int{}}
}

// all returns the counting store in place of each.
func (c *counting) all() identity.Store {
	return identity.Store{Accounts: c, LoginStore: c, WorkspaceStore: c, Factors: c}
}

func (c *counting) count(call string) *tenantsdb.DB {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[call]++
	return c.db
}

func (c *counting) taken() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.calls
	c.calls = map[string]int{}
	return taken
}

func (c *counting) UserByEmail(ctx context.Context, email string) (tenants.User, string, error) {
	return c.count("UserByEmail").Accounts.UserByEmail(ctx, email)
}

func (c *counting) UsedPlace(ctx context.Context, email, place string, since time.Time) (bool, error) {
	return c.count("UsedPlace").Logins.UsedPlace(ctx, email, place, since)
}

func (c *counting) HasWorkspaces(ctx context.Context) (bool, error) {
	return c.db.Accounts.HasWorkspaces(ctx) // once, until it is true
}

func (c *counting) Memberships(ctx context.Context, user uuid.UUID) ([]tenants.Membership, error) {
	return c.count("Memberships").Workspaces.Memberships(ctx, user)
}

func (c *counting) AskAccount(ctx context.Context, request tenants.AccountRequest) error {
	return c.count("AskAccount").Accounts.AskAccount(ctx, request)
}

func (c *counting) SendLetters(ctx context.Context, user uuid.UUID, letters []tenants.LinkMail, mails ...tenants.Mail) error {
	return c.count("SendLetters").Accounts.SendLetters(ctx, user, letters, mails...)
}

func (c *counting) Token(ctx context.Context, hash []byte, at time.Time) (tenants.Token, error) {
	return c.count("Token").Accounts.Token(ctx, hash, at)
}

// inviteCounting is the same for invitations.
type inviteCounting struct {
	identity.InvitationStore

	*counting
}

func (c *inviteCounting) InvitationByHash(ctx context.Context, hash []byte) (tenants.Invitation, error) {
	return c.count("InvitationByHash").Invitations.InvitationByHash(ctx, hash)
}

func (c *inviteCounting) SignUpInvited(ctx context.Context, hash []byte, joining tenants.Joining) (tenants.User, tenants.Membership, error) {
	return c.count("SignUpInvited").Invitations.SignUpInvited(ctx, hash, joining)
}

// work is what an answer took, and what it said.
type work struct {
	answer string
	hashed int64 // KiB times passes
	calls  map[string]int
	mails  int // that wait in the end, to the address alone
}

func (w work) equal(other work) bool {
	return w.answer == other.answer && w.hashed == other.hashed && w.mails == other.mails && maps.Equal(w.calls, other.calls)
}

// S11: whatever a stranger may ask about an address is the same work, and the same answer,
// whether it is known or not: the same passwords hashed, the same asked of the store, as
// many mails queued. So the times differ by chance only.
func TestKnownAndUnknownAddressesAreTheSameWork(t *testing.T) {
	t.Parallel()
	for name, mails := range map[string]identity.Mails{
		"verified addresses": {PublicURL: publicURL, RequireVerified: true},
		"any address":        {PublicURL: publicURL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupInviting(t)
			b.signUp(t, "ada@example.com")
			store := newCounting(b.DB)
			service, err := identity.NewService(store.all(), free{}, [][]byte{b.signing}, b.clock.Now)
			if err != nil {
				t.Fatal(err)
			}
			service.SetMails(mails)
			service.SetSignUps(identity.SignUps{Quiet: true})
			invitations := identity.NewInvitations(service, &inviteCounting{counting: store}, publicURL)
			limited, err := identity.NewService(store.all(), full{}, [][]byte{b.signing}, b.clock.Now)
			if err != nil {
				t.Fatal(err)
			}
			b.service.SetMails(mails) // what answers the requests afterwards
			b.service.SetSignUps(identity.SignUps{Quiet: true})

			link := func(email string) string {
				_, link := b.invite(t, email, tenants.Viewer)
				return link
			}
			for name, try := range map[string]func(email string) error{
				"log in": func(email string) error {
					_, _, err := service.LogIn(t.Context(), email, "wrong password", "192.0.2.1", "test")
					return err
				},
				"log in to an account that many guess at": func(email string) error {
					_, _, err := limited.LogIn(t.Context(), email, "wrong password", "192.0.2.1", "test")
					return err
				},
				"sign up": func(email string) error {
					_, _, err := service.SignUp(t.Context(), email, password, "Northbeam", "test")
					return err
				},
				"sign up through an invitation": func(email string) error {
					_, _, err := invitations.SignUp(t.Context(), link(email), password, "", "test")
					return err
				},
				"look at an invitation": func(email string) error {
					_, err := invitations.Find(t.Context(), link(email))
					return err
				},
				"reset":  func(email string) error { return service.AskReset(t.Context(), email, "192.0.2.1") },
				"resend": func(email string) error { return service.AskVerification(t.Context(), email, "192.0.2.1") },
				"reset with a wrong link": func(email string) error {
					return service.ResetPassword(t.Context(), "wrong link of "+email, password)
				},
			} {
				known, unknown := b.worked(t, service, store, "ada@example.com", try), b.worked(t, service, store, "nobody@example.com", try)
				if !known.equal(unknown) || len(known.calls) == 0 {
					t.Errorf("%s:\n%+v for a known address\n%+v for an unknown one", name, known, unknown)
				}
				b.forget(t, "nobody@example.com")
			}
		})
	}
}

// full has every count of an account full and no other.
type full struct{ free }

func (full) Check(_ context.Context, counts ...tenants.Count) error {
	if len(counts) == 1 {
		return tenants.TooMany{Wait: time.Minute}
	}
	return nil
}

// worked returns what a try with an address takes before it is answered. Mails of requests
// that are answered later are not counted: whether there is one is what their owner learns.
func (b *bundle) worked(t *testing.T, service *identity.Service, store *counting, email string, try func(string) error) work {
	t.Helper()
	before, mails := service.Work(), len(b.mails(t, email))
	store.taken()
	answer := fmt.Sprint(try(email))
	done := work{answer: answer, hashed: service.Work() - before, calls: store.taken(), mails: len(b.mails(t, email)) - mails}
	if err := b.service.AnswerRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	return done
}

// forget makes an address unknown again that a sign-up has made known.
func (b *bundle) forget(t *testing.T, email string) {
	t.Helper()
	if _, err := b.Owner(t).Exec(t.Context(), "UPDATE users SET email = gen_random_uuid() || '@example.com' WHERE email = $1", email); err != nil {
		t.Fatal(err)
	}
}

// S11: the operator decides whether a sign-up tells that an address is known. If it does not,
// the address's owner is told, and who signed up logs in once they have opened their link.
func TestOperatorDecidesWhetherSignUpTells(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quiet, verified bool
		known, unknown  error
	}{
		"tells":                        {false, false, tenants.ErrEmailTaken, nil},
		"tells, verified addresses":    {false, true, tenants.ErrEmailTaken, tenants.ErrMailSent},
		"is quiet":                     {true, false, tenants.ErrMailSent, tenants.ErrMailSent},
		"is quiet, verified addresses": {true, true, tenants.ErrMailSent, tenants.ErrMailSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.service = b.quick(t)
			b.service.SetSignUps(identity.SignUps{Quiet: c.quiet})
			b.service.SetMails(identity.Mails{PublicURL: publicURL})
			b.signUp(t, "first@example.com") // no address is known yet
			b.service.SetMails(identity.Mails{PublicURL: publicURL, RequireVerified: c.verified})
			logIn := func(email string) error {
				_, _, err := b.service.LogIn(t.Context(), email, password, "192.0.2.1", "test")
				return err
			}
			before := len(b.mails(t, "first@example.com"))
			if err := b.try(t.Context(), "first@example.com"); !errors.Is(err, c.known) {
				t.Errorf("a known address: %v, want %v", err, c.known)
			}
			if err := b.try(t.Context(), "new@example.com"); !errors.Is(err, c.unknown) {
				t.Errorf("an unknown address: %v, want %v", err, c.unknown)
			}
			if err := b.service.AnswerRequests(t.Context()); err != nil {
				t.Fatal(err)
			}
			mails := b.mails(t, "first@example.com")
			if told := len(mails) - before; (told == 1) != c.quiet || told > 1 {
				t.Errorf("%d mails to the owner of the known address", told)
			}
			if c.quiet {
				secret(t, mails[0], "/log") // the link to log in with
			}
			if err := logIn("new@example.com"); (c.unknown == nil) != (err == nil) {
				t.Errorf("log in before the link is opened: %v", err)
			}
			link := secret(t, b.mails(t, "new@example.com")[0], "/verify/")
			if _, err := b.service.ConfirmEmail(t.Context(), link); err != nil {
				t.Fatal(err)
			}
			if err := logIn("new@example.com"); err != nil {
				t.Errorf("log in afterwards: %v", err)
			}
			if err := logIn("first@example.com"); (err == nil) == c.verified {
				t.Errorf("an account from before whose address is not verified: %v", err)
			}
		})
	}
}

// Of two who are the first at once, the other is answered by mail where sign-ups are quiet.
func TestSecondOfTwoFirstPeopleIsAnsweredByMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var group sync.WaitGroup
	var answers [2]error
	for i, service := range b.rivals(t, identity.SignUps{Quiet: true}) {
		group.Go(func() {
			_, _, answers[i] = service.SignUp(t.Context(), fmt.Sprintf("p%d@example.com", i), password, "Northbeam", "test")
		})
	}
	group.Wait()
	if (answers[0] == nil) == (answers[1] == nil) || !errors.Is(errors.Join(answers[:]...), tenants.ErrMailSent) {
		t.Errorf("answers %v", answers)
	}
}

// S11: who holds the link of an invitation, its inviter for one, learns nothing of its
// address from signing up with it, and does not flood it with mails.
func TestQuietInvitationTellsNothing(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	b.signUp(t, "ada@example.com")
	_, known := b.invite(t, "ada@example.com", tenants.Viewer)
	_, unknown := b.invite(t, "new@example.com", tenants.Viewer)
	b.service.SetMails(identity.Mails{PublicURL: publicURL})
	b.service.SetSignUps(identity.SignUps{Quiet: true})
	signUp := func(link string) error {
		_, token, err := b.invitations.SignUp(t.Context(), link, password, "", "test")
		if token != "" {
			t.Error("it logs in")
		}
		return err
	}
	before := len(b.mails(t, "ada@example.com"))
	for _, link := range []string{known, unknown} {
		if err := signUp(link); !errors.Is(err, tenants.ErrMailSent) {
			t.Errorf("%v", err)
		}
	}
	secret(t, b.mails(t, "ada@example.com")[0], "/log")
	link := secret(t, b.mails(t, "new@example.com")[0], "/verify/")
	if _, _, err := b.service.LogIn(t.Context(), "new@example.com", password, "192.0.2.1", "test"); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("log in before the link is opened: %v", err)
	}
	if _, err := b.service.ConfirmEmail(t.Context(), link); err != nil {
		t.Fatal(err)
	}
	if who, _, err := b.service.LogIn(t.Context(), "new@example.com", password, "192.0.2.1", "test"); err != nil || who.Role != tenants.Viewer {
		t.Errorf("log in afterwards: %+v, %v", who.Role, err)
	}
	for range 20 {
		if err := signUp(known); !errors.Is(err, tenants.ErrMailSent) {
			t.Fatal(err)
		}
	}
	if sent := len(b.mails(t, "ada@example.com")) - before; sent != 5 {
		t.Errorf("%d mails to the owner, want 5", sent)
	}
}
