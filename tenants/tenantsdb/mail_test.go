package tenantsdb_test

import (
	"errors"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault/vaulttest"
)

func TestMailIsQueuedIfAndOnlyIfTheChangeCommits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mail := tenants.Mail{To: "ada@example.com", Subject: "Hello", Text: "text"}
	down := errors.New("down")
	err := b.Together(t.Context(), b.workspace, func(tenant tenants.Tenant) error {
		return errors.Join(b.Mail.QueueMail(t.Context(), tenant, mail), down)
	})
	if !errors.Is(err, down) || waiting(t, b) != 0 {
		t.Fatalf("%v; %d mails are left of what failed", err, waiting(t, b))
	}
	err = b.Together(t.Context(), b.workspace, func(tenant tenants.Tenant) error {
		return b.Mail.QueueMail(t.Context(), tenant, mail)
	})
	if err != nil || waiting(t, b) != 1 {
		t.Fatalf("%v; %d mails, want 1", err, waiting(t, b))
	}
	if err := b.Mail.QueueMail(t.Context(), nil, mail); err != nil || waiting(t, b) != 2 {
		t.Fatalf("alone: %v; %d mails, want 2", err, waiting(t, b))
	}
}

// sealing opens a test's database as a program does that has these master keys.
func sealing(t *testing.T, b bundle, masters ...string) *tenantsdb.DB {
	t.Helper()
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: b.database.AppURL, WorkerURL: b.database.WorkerURL, Sealer: vaulttest.Of(t, masters...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// S12: while a mail waits its text, with the link in it, is sealed, and opens with the
// master key alone, for this mail and its recipient; another master key takes its place.
func TestTextOfAMailIsSealedWhileItWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const link = "https://example.com/reset/canary"
	old := sealing(t, b, "o")
	if err := b.Mail.QueueMail(t.Context(), nil, tenants.Mail{To: "eve@example.com", Subject: "Before", Text: "plain"}); err != nil {
		t.Fatal(err)
	}
	if err := old.Mail.QueueMail(t.Context(), nil, tenants.Mail{To: "ada@example.com", Subject: "Hello", Text: link}); err != nil {
		t.Fatal(err)
	}
	var stored string
	err := b.database.Owner(t).QueryRow(t.Context(), "SELECT string_agg(m::text || encode(coalesce(sealed, ''), 'escape'), ' ') FROM mails m").Scan(&stored)
	if err != nil || strings.Contains(stored, "canary") || !strings.Contains(stored, "ada@example.com") {
		t.Errorf("stored: %s (%v)", stored, err)
	}
	texts := func(db *tenantsdb.DB) string {
		t.Helper()
		mails, err := db.Mail.Mails(t.Context(), 10)
		if err != nil || len(mails) != 2 || mails[1].Text != "plain" || mails[1].Shut || mails[0].Shut != (mails[0].Text == "") {
			t.Fatalf("%+v, %v", mails, err)
		}
		return mails[0].Text
	}
	if got := texts(old); got != link {
		t.Errorf("opened: %q", got)
	}
	both := sealing(t, b, "n", "o")
	for _, want := range []int{1, 0} {
		if got, err := both.Mail.ResealMails(t.Context()); err != nil || got != want {
			t.Errorf("sealed %d again, want %d (%v)", got, want, err)
		}
	}
	if got := texts(sealing(t, b, "n")); got != link {
		t.Errorf("with the new master key alone: %q", got)
	}
	for name, db := range map[string]*tenantsdb.DB{"the old master key": old, "no master key": b.DB} {
		if got := texts(db); got != "" {
			t.Errorf("with %s: %q", name, got)
		}
	}
	if _, err := b.database.Owner(t).Exec(t.Context(), "UPDATE mails SET recipient = 'mallory@example.com' WHERE sealed IS NOT NULL"); err != nil {
		t.Fatal(err)
	}
	if got := texts(both); got != "" {
		t.Errorf("for another recipient: %q", got)
	}
}

// waiting returns how many mails wait to be sent.
func waiting(t *testing.T, b bundle) int {
	t.Helper()
	var count int
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM mails").Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}
