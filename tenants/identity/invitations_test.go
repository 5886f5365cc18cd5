package identity_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// inviting is a bundle with someone who invites.
type inviting struct {
	*bundle

	invitations *identity.Invitations
	owner       tenants.Principal
	ctx         context.Context // of the owner
}

func setupInviting(t *testing.T) *inviting {
	t.Helper()
	b := &inviting{bundle: setup(t)}
	b.owner, _ = b.signUp(t, "owner@example.com")
	b.invitations = identity.NewInvitations(b.service, b.DB.Invitations, publicURL)
	b.ctx = tenants.WithActor(t.Context(), b.owner.Actor("192.0.2.1"))
	return b
}

// invite returns the invitation of an address, and its link's secret.
func (b *inviting) invite(t *testing.T, email string, role tenants.Role) (tenants.Invited, string) {
	t.Helper()
	invited, err := b.invitations.Invite(b.ctx, b.owner.Workspace.ID, []string{email}, role)
	if err != nil {
		t.Fatal(err)
	}
	return invited[0], secretOf(t, invited[0])
}

func secretOf(t *testing.T, invited tenants.Invited) string {
	t.Helper()
	secret, found := strings.CutPrefix(invited.Link, publicURL+"/invite/")
	if !found || len(secret) < 26 {
		t.Fatalf("the link is %s", invited.Link)
	}
	return secret
}

// S12: a link works once, also of ten attempts at the same time.
func TestInvitationIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	grace, token := b.signUp(t, "grace@example.com")
	_, secret := b.invite(t, " Grace@Example.com", tenants.Admin)

	var group sync.WaitGroup
	outcomes := make(chan error, 10)
	for range cap(outcomes) {
		group.Go(func() { outcomes <- b.invitations.Accept(t.Context(), secret, grace) })
	}
	group.Wait()
	accepted := 0
	for range cap(outcomes) {
		if err := <-outcomes; err == nil {
			accepted++
		} else if !errors.Is(err, tenants.ErrInvitation) {
			t.Error(err)
		}
	}
	if accepted != 1 {
		t.Errorf("accepted %d times", accepted)
	}
	// The login works in the workspace from its next request on.
	who, err := b.service.Authenticate(t.Context(), token)
	if err != nil || who.Workspace.ID != b.owner.Workspace.ID || who.Role != tenants.Admin || len(who.Memberships) != 2 {
		t.Errorf("she is %+v (%v)", who, err)
	}
}

// S12: a link is for its address only, ends after seven days, with its revocation
// and with the next link; its secret is stored as a hash.
func TestInvitationThatDoesNotFitLetsNobodyIn(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	grace, _ := b.signUp(t, "grace@example.com")
	eve, _ := b.signUp(t, "eve@example.com")
	workspace := b.owner.Workspace.ID

	waiting, secret := b.invite(t, "grace@example.com", tenants.Viewer)
	if err := b.invitations.Accept(t.Context(), secret, eve); !errors.Is(err, tenants.ErrOtherAddress) {
		t.Errorf("with another address: %v", err)
	}
	if age := waiting.ExpiresAt.Sub(waiting.SentAt); age != 7*24*time.Hour {
		t.Errorf("it lasts %s", age)
	}
	b.mustNotHold(t, secret)

	if _, err := b.invitations.Resend(b.ctx, workspace, waiting.ID); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("resent at once: %v", err)
	}
	b.clock.advance(time.Minute)
	again, err := b.invitations.Resend(b.ctx, workspace, waiting.ID)
	if err != nil {
		t.Fatal(err)
	}
	newer := secretOf(t, again)
	if err := b.invitations.Accept(t.Context(), secret, grace); !errors.Is(err, tenants.ErrInvitation) {
		t.Errorf("with the link before: %v", err)
	}
	if err := b.invitations.Revoke(b.ctx, workspace, waiting.ID); err != nil {
		t.Fatal(err)
	}
	_, late := b.invite(t, "grace@example.com", tenants.Viewer)
	const age = "UPDATE invitations SET sent_at = sent_at - interval '8 days', expires_at = expires_at - interval '8 days' WHERE revoked_at IS NULL"
	if _, err := b.Owner(t).Exec(t.Context(), age); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]string{"revoked": newer, "expired": late, "unknown": "none", "empty": ""} {
		if _, err := b.invitations.Find(t.Context(), link); !errors.Is(err, tenants.ErrInvitation) {
			t.Errorf("%s: found with %v", name, err)
		}
		if err := b.invitations.Accept(t.Context(), link, grace); !errors.Is(err, tenants.ErrInvitation) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := b.invitations.SignUp(t.Context(), link, password, "", "test"); !errors.Is(err, tenants.ErrInvitation) {
			t.Errorf("%s: signed up with %v", name, err)
		}
	}
	// The database itself holds nobody to more than a week.
	if _, err := b.Owner(t).Exec(t.Context(), "UPDATE invitations SET expires_at = sent_at + interval '8 days'"); err == nil {
		t.Error("an invitation can last longer than a week")
	}
}

// mustNotHold fails the test if a secret stands in the invitations, but for its hash.
func (b *inviting) mustNotHold(t *testing.T, secret string) {
	t.Helper()
	sum := sha256.Sum256([]byte(secret))
	var hashed, readable int
	err := b.Owner(t).QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE hash = $1), count(*) FILTER (WHERE i::text LIKE '%' || $2 || '%') FROM invitations i`,
		sum[:], secret).Scan(&hashed, &readable)
	if err != nil || hashed != 1 || readable != 0 {
		t.Errorf("%d rows hold the hash, %d the secret (%v)", hashed, readable, err)
	}
}

func TestSigningUpThroughAnInvitationJoinsItAlone(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	_, alone := b.invite(t, "grace@example.com", tenants.Regular)
	_, both := b.invite(t, "hedy@example.com", tenants.Viewer)

	who, token, err := b.invitations.SignUp(t.Context(), alone, password, " ", "a browser")
	if err != nil || who.User.Email != "grace@example.com" || who.Role != tenants.Regular || who.Workspace.ID != b.owner.Workspace.ID {
		t.Fatalf("%+v (%v)", who, err)
	}
	if known, err := b.service.Authenticate(t.Context(), token); err != nil || len(known.Memberships) != 1 || known.User.VerifiedAt != nil {
		t.Errorf("she is known as %+v (%v)", known, err)
	}
	if _, _, err := b.invitations.SignUp(t.Context(), alone, password, "", "a browser"); !errors.Is(err, tenants.ErrInvitation) {
		t.Errorf("the second time: %v", err)
	}
	who, _, err = b.invitations.SignUp(t.Context(), both, password, "Hedy's", "a browser")
	if err != nil {
		t.Fatal(err)
	}
	if own, err := b.DB.Workspaces.Memberships(t.Context(), who.User.ID); err != nil || len(own) != 2 || who.Workspace.ID != b.owner.Workspace.ID {
		t.Errorf("memberships %+v (%v)", own, err)
	}
	_, taken := b.invite(t, "grace2@example.com", tenants.Viewer)
	b.signUp(t, "grace2@example.com")
	if _, _, err := b.invitations.SignUp(t.Context(), taken, password, "", "test"); !errors.Is(err, tenants.ErrEmailTaken) {
		t.Errorf("an address with an account: %v", err)
	}
	if _, err := b.invitations.Find(t.Context(), taken); err != nil {
		t.Errorf("the refused sign-up used the invitation up: %v", err)
	}
}

// The inviter sees the link as well: it does not prove that mails reach the address.
func TestSignUpThroughAnInvitationIsVerifiedLikeAnyOther(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	b.service.SetMails(identity.Mails{PublicURL: publicURL, RequireVerified: true})
	_, secret := b.invite(t, "grace@example.com", tenants.Regular)

	if _, token, err := b.invitations.SignUp(t.Context(), secret, password, "", "test"); !errors.Is(err, tenants.ErrMailSent) || token != "" {
		t.Errorf("signed up: token %q, %v", token, err)
	}
	if _, _, err := b.service.LogIn(t.Context(), "grace@example.com", password, "here", "test"); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("logged in without being verified: %v", err)
	}
	var letters int
	err := b.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM mails WHERE recipient = 'grace@example.com' AND body LIKE '%verify%'").Scan(&letters)
	if err != nil || letters != 1 {
		t.Errorf("%d letters to verify the address (%v)", letters, err)
	}
}

// S11, S32: known and unknown addresses get the same answer, a mail each, and an entry
// in the log.
func TestInvitingAnswersTheSameForKnownAndUnknownAddresses(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	b.signUp(t, "known@example.com")
	invited, err := b.invitations.Invite(b.ctx, b.owner.Workspace.ID, []string{"known@example.com", "unknown@example.com", "KNOWN@example.com", " "}, tenants.Viewer)
	if err != nil || len(invited) != 2 {
		t.Fatalf("%d invited, %v", len(invited), err)
	}
	for _, each := range invited {
		var body string
		if err := b.Owner(t).QueryRow(t.Context(), "SELECT body FROM mails WHERE recipient = $1", each.Email).Scan(&body); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{each.Link, "owner@example.com invites you", "“Northbeam”", "as viewer"} {
			if !strings.Contains(body, want) {
				t.Errorf("the mail to %s lacks %q:\n%s", each.Email, want, body)
			}
		}
		if each.InvitedBy != "owner@example.com" || each.Workspace.Name != "Northbeam" {
			t.Errorf("invited %+v", each.Invitation)
		}
	}
	entries, err := b.DB.Audit.Audit(t.Context(), b.owner.Workspace.ID, tenants.AuditFilter{Limit: 2})
	if err != nil || entries[0].Action != tenants.InvitationCreated || entries[1].Action != tenants.InvitationCreated ||
		entries[0].Actor.User != b.owner.User.ID || entries[1].After["email"] != "known@example.com" {
		t.Errorf("noted %+v (%v)", entries, err)
	}
	for _, entry := range entries {
		for _, each := range invited {
			if strings.Contains(entry.Target+entry.After["email"]+entry.After["link"], secretOf(t, each)) {
				t.Errorf("the log holds a secret: %+v", entry)
			}
		}
	}
}

// All are invited or none: what is wrong is named, and nobody gets a mail.
func TestInvitationsThatAreRefusedSendNothing(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	for name, attempt := range map[string]struct {
		emails []string
		role   tenants.Role
		field  string
	}{
		"no address":   {[]string{" "}, tenants.Viewer, "email"},
		"no such":      {[]string{"a@example.com", "nobody"}, tenants.Viewer, "email"},
		"a member":     {[]string{"a@example.com", "owner@example.com"}, tenants.Viewer, "email"},
		"no role":      {[]string{"a@example.com"}, "root", "role"},
		"far too many": {make51(), tenants.Viewer, "email"},
	} {
		var invalid tenants.Invalid
		if _, err := b.invitations.Invite(b.ctx, b.owner.Workspace.ID, attempt.emails, attempt.role); !errors.As(err, &invalid) || invalid.Field != attempt.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	admin := b.let(t, "admin@example.com", tenants.Admin)
	ctx := tenants.WithActor(t.Context(), admin.Actor(""))
	if _, err := b.invitations.Invite(ctx, b.owner.Workspace.ID, []string{"a@example.com"}, tenants.Owner); !errors.Is(err, tenants.ErrDenied) {
		t.Errorf("an admin invites an owner: %v", err)
	}
	var mails int
	if err := b.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM mails WHERE recipient <> 'admin@example.com'").Scan(&mails); err != nil || mails != 0 {
		t.Errorf("%d mails (%v)", mails, err)
	}
}

func make51() []string {
	var emails []string
	for i := range 51 {
		emails = append(emails, strings.Repeat("x", i+1)+"@example.com")
	}
	return emails
}

// let returns someone who has signed up through an invitation.
func (b *inviting) let(t *testing.T, email string, role tenants.Role) tenants.Principal {
	t.Helper()
	_, secret := b.invite(t, email, role)
	who, _, err := b.invitations.SignUp(t.Context(), secret, password, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// What someone who is no admin any more has offered is not theirs to offer.
func TestInvitationsEndWithTheRightToMakeThem(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	workspace := b.owner.Workspace.ID
	for name, end := range map[string]func(user uuid.UUID) error{
		"demoted": func(user uuid.UUID) error {
			return b.service.Workspaces().ChangeRole(b.ctx, workspace, user, tenants.Viewer)
		},
		"removed": func(user uuid.UUID) error { return b.service.Workspaces().RemoveMember(b.ctx, workspace, user, true) },
	} {
		admin := b.let(t, name+"@example.com", tenants.Admin)
		ctx := tenants.WithActor(t.Context(), admin.Actor(""))
		invited, err := b.invitations.Invite(ctx, workspace, []string{"by-" + name + "@example.com"}, tenants.Admin)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(admin.User.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := b.invitations.Find(t.Context(), secretOf(t, invited[0])); !errors.Is(err, tenants.ErrInvitation) {
			t.Errorf("%s: the link of a former admin: %v", name, err)
		}
	}
}
