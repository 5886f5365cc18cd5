package tenantsdb_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/tenants"
)

// letter returns a letter to an address whose token has a hash.
func letter(kind tenants.TokenKind, email, hash string) tenants.LinkMail {
	return tenants.LinkMail{
		Token: tenants.Token{Hash: []byte(hash), Kind: kind, Email: email, CreatedAt: now(), ExpiresAt: now().Add(time.Hour)},
		Mail:  tenants.Mail{To: email, Subject: "subject of " + hash, Text: "link " + hash},
	}
}

func notice(user tenants.User) tenants.Mail { return tenants.Mail{To: user.Email, Subject: "notice"} }

func moved(before, _ string) tenants.Mail { return tenants.Mail{To: before, Subject: "moved"} }

// subjects returns the subjects of the mails that wait, the newest first, and to whom.
func subjects(t *testing.T, b bundle) []string {
	t.Helper()
	mails, err := b.Mail.Mails(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, mail := range mails {
		found = append(found, mail.Subject+" to "+mail.To)
	}
	return found
}

// S12: a token works once, for its kind, until it expires, also when many try at once.
func TestTokenResetsAPasswordOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, hash := range []string{"first", "second"} {
		if err := b.Accounts.SendLetters(t.Context(), b.user.ID, []tenants.LinkMail{letter(tenants.TokenReset, b.user.Email, hash)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Accounts.ResetPassword(t.Context(), []byte("first"), now().Add(2*time.Hour), "late", notice); !errors.Is(err, tenants.ErrLinkEnded) {
		t.Errorf("after its end: %v", err)
	}
	if _, err := b.Accounts.ConfirmEmail(t.Context(), []byte("first"), now(), moved); !errors.Is(err, tenants.ErrLinkEnded) {
		t.Errorf("as another kind: %v", err)
	}
	var group sync.WaitGroup
	var worked atomic.Int32
	for range 8 {
		group.Go(func() {
			err := b.Accounts.ResetPassword(t.Context(), []byte("first"), now(), "another hash", notice)
			if err == nil {
				worked.Add(1)
			} else if !errors.Is(err, tenants.ErrLinkEnded) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if worked.Load() != 1 {
		t.Errorf("the token worked %d times", worked.Load())
	}
	user, hash, err := b.Accounts.UserByEmail(t.Context(), b.user.Email)
	if err != nil || hash != "another hash" || user.VerifiedAt == nil {
		t.Errorf("hash %q, verified %v (%v)", hash, user.VerifiedAt, err)
	}
	if _, err := b.Accounts.Token(t.Context(), []byte("second"), now()); !errors.Is(err, tenants.ErrLinkEnded) {
		t.Errorf("the other link to the same person: %v", err)
	}
	if found := subjects(t, b); found[0] != "notice to ada@example.com" {
		t.Errorf("mails %v", found)
	}
}

// S9: a new password ends every other login, in each workspace, and says so in each.
func TestNewPasswordEndsOtherLogins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second, err := b.Workspaces.CreateWorkspace(t.Context(), b.user.ID, "second", 0)
	if err != nil {
		t.Fatal(err)
	}
	here, there := b.logIn(t, time.Hour), b.logIn(t, time.Hour)
	if err := b.Accounts.ChangePassword(t.Context(), b.user, here.ID, "another hash", notice(b.user)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Logins.ActiveLogin(t.Context(), b.user.ID, here.ID); err != nil {
		t.Errorf("the login that stays: %v", err)
	}
	if _, err := b.Logins.ActiveLogin(t.Context(), b.user.ID, there.ID); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("the other login: %v", err)
	}
	for workspace, want := range map[tenants.WorkspaceID][]tenants.Action{
		b.workspace: {tenants.PasswordChanged, tenants.LoginEnded, tenants.LoginOpened, tenants.LoginOpened, tenants.WorkspaceCreated},
		second.ID:   {tenants.PasswordChanged, tenants.WorkspaceCreated},
	} {
		if got := actions(t, b, workspace); !slices.Equal(got, want) {
			t.Errorf("audit %v, want %v", got, want)
		}
	}
	if err := b.Logins.RevokeLogins(t.Context(), b.user.ID); err != nil {
		t.Fatal(err)
	}
	if left, err := b.Logins.Logins(t.Context(), b.user.ID); err != nil || len(left) != 0 {
		t.Errorf("logins %+v (%v)", left, err)
	}
}

func actions(t *testing.T, b bundle, workspace tenants.WorkspaceID) []tenants.Action {
	t.Helper()
	entries, err := b.Audit.Audit(t.Context(), workspace, tenants.AuditFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var found []tenants.Action
	for _, entry := range entries {
		found = append(found, entry.Action)
	}
	return found
}

// S12: a link is good for the address that it was sent to.
func TestAddressChangesWhenTheNewOneIsProven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _ = b.signUp(t, "grace@example.com")
	for hash, sent := range map[string]tenants.LinkMail{
		"change": letter(tenants.TokenEmail, "new@example.com", "change"), "taken": letter(tenants.TokenEmail, "grace@example.com", "taken"),
		"old": letter(tenants.TokenReset, b.user.Email, "old"), "verify": letter(tenants.TokenVerify, b.user.Email, "verify"),
	} {
		if err := b.Accounts.SendLetters(t.Context(), b.user.ID, []tenants.LinkMail{sent}); err != nil {
			t.Fatalf("%s: %v", hash, err)
		}
	}
	if token, err := b.Accounts.ConfirmEmail(t.Context(), []byte("verify"), now(), moved); err != nil || token.Kind != tenants.TokenVerify {
		t.Fatalf("verify: %+v, %v", token, err)
	}
	if _, err := b.Accounts.ConfirmEmail(t.Context(), []byte("taken"), now(), moved); !errors.Is(err, tenants.ErrEmailTaken) {
		t.Fatalf("an address that someone else has: %v", err)
	}
	if token, err := b.Accounts.ConfirmEmail(t.Context(), []byte("change"), now(), moved); err != nil || token.Email != "new@example.com" || token.User != b.user.ID {
		t.Fatalf("change: %+v, %v", token, err)
	}
	if user, _, err := b.Accounts.UserByEmail(t.Context(), "new@example.com"); err != nil || user.ID != b.user.ID || user.VerifiedAt == nil {
		t.Errorf("found %+v (%v)", user, err)
	}
	if err := b.Accounts.ResetPassword(t.Context(), []byte("old"), now(), "x", notice); !errors.Is(err, tenants.ErrLinkEnded) {
		t.Errorf("a link to the old address: %v", err)
	}
	if found := subjects(t, b); found[0] != "moved to ada@example.com" {
		t.Errorf("mails %v", found)
	}
	if got := actions(t, b, b.workspace); !slices.Equal(got[:2], []tenants.Action{tenants.EmailChanged, tenants.EmailVerified}) {
		t.Errorf("audit %v", got)
	}
}

// S11: what is asked for by an address is answered later, by mail, and only to whom it
// concerns; an answer twice comes to one.
func TestRequestsAreAnsweredByMailOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	known := tenants.Mail{To: b.user.Email, Subject: "known"}
	for _, test := range []struct {
		kind  tenants.RequestKind
		email string
		want  []string
	}{
		{tenants.RequestReset, "nobody@example.com", nil},
		{tenants.RequestReset, b.user.Email, []string{"subject of 1 to ada@example.com"}},
		{tenants.RequestReset, b.user.Email, []string{"subject of 1 to ada@example.com"}}, // a moment later
		{tenants.RequestVerify, b.user.Email, []string{"subject of 3 to ada@example.com"}},
		{tenants.RequestSignUp, b.user.Email, []string{"known to ada@example.com"}},
		{tenants.RequestSignUp, "new@example.com", []string{"subject of 5 to new@example.com"}},
	} {
		asked := tenants.AccountRequest{Kind: test.kind, Email: test.email, PasswordHash: "hash", Workspace: "Northbeam", From: "192.0.2.1"}
		if err := b.Accounts.AskAccount(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
	}
	requests, err := b.Accounts.AccountRequests(t.Context(), 10)
	if err != nil || len(requests) != 6 || requests[5].PasswordHash != "hash" || requests[5].From != "192.0.2.1" {
		t.Fatalf("requests %+v (%v)", requests, err)
	}
	for range 2 { // S28
		for i, request := range requests {
			kind := map[tenants.RequestKind]tenants.TokenKind{
				tenants.RequestReset: tenants.TokenReset, tenants.RequestVerify: tenants.TokenVerify, tenants.RequestSignUp: tenants.TokenVerify,
			}[request.Kind]
			if err := b.Accounts.AnswerRequest(t.Context(), request, letter(kind, request.Email, string(rune('0'+i))), known); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"subject of 5 to new@example.com", "known to ada@example.com", "subject of 3 to ada@example.com", "subject of 1 to ada@example.com"}
	if got := subjects(t, b); !slices.Equal(got, want) {
		t.Errorf("mails %v, want %v", got, want)
	}
	user, hash, err := b.Accounts.UserByEmail(t.Context(), "new@example.com")
	if err != nil || hash != "hash" || user.VerifiedAt != nil {
		t.Fatalf("signed up %+v with %q (%v)", user, hash, err)
	}
	if memberships, err := b.Workspaces.Memberships(t.Context(), user.ID); err != nil || len(memberships) != 1 || memberships[0].Workspace.Name != "Northbeam" {
		t.Errorf("memberships %+v (%v)", memberships, err)
	}
	if left, err := b.Accounts.AccountRequests(t.Context(), 10); err != nil || len(left) != 0 {
		t.Errorf("left %+v (%v)", left, err)
	}
}

func TestMailIsTakenByOneAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := errors.Join(b.Mail.QueueMail(t.Context(), nil, tenants.Mail{To: "a"}), b.Mail.QueueMail(t.Context(), nil, tenants.Mail{To: "b"})); err != nil {
		t.Fatal(err)
	}
	at := now().Add(time.Minute)
	take := func(at time.Time, want int) []tenants.WaitingMail {
		t.Helper()
		mails, err := b.Mail.TakeMails(t.Context(), at, at.Add(time.Hour), 10)
		if err != nil || len(mails) != want {
			t.Fatalf("%d mails, want %d (%v)", len(mails), want, err)
		}
		return mails
	}
	taken := take(at, 2)
	take(at, 0)
	if err := errors.Join(b.Mail.DelayMail(t.Context(), taken[0].ID, at.Add(time.Minute)), b.Mail.DropMail(t.Context(), taken[1].ID)); err != nil {
		t.Fatal(err)
	}
	if again := take(at.Add(time.Minute), 1); again[0].ID != taken[0].ID || again[0].Attempts != 2 {
		t.Errorf("taken again: %+v", again)
	}
	if kept, err := b.Mail.KeepMails(t.Context(), at.Add(3*time.Hour)); err != nil || len(kept) != 1 {
		t.Fatalf("kept %+v (%v)", kept, err)
	}
	take(at.Add(1000*time.Hour), 0)
	if err := b.Mail.DropMails(context.WithoutCancel(t.Context()), now().Add(time.Hour)); err != nil || waiting(t, b) != 0 {
		t.Errorf("%d mails left (%v)", waiting(t, b), err)
	}
}
