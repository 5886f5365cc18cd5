package tenantsdb_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// patience bounds how long a test waits for what must come.
const patience = 20 * time.Second

// heard is what a listener was told.
type heard struct {
	told   chan string // "channel payload"
	missed chan struct{}
}

func listen(t *testing.T, b bundle) (*tenantsdb.Listener, heard) {
	t.Helper()
	h := heard{told: make(chan string, 100), missed: make(chan struct{}, 100)}
	listener := b.NewListener(slog.New(slog.DiscardHandler))
	for _, channel := range []string{tenantsdb.KeysChannel, tenantsdb.SettingsChannel, tenantsdb.LoginsChannel} {
		listener.Handle(channel, func(payload string) { h.told <- channel + " " + payload }, func() { h.missed <- struct{}{} })
	}
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)
	return listener, h
}

func (h heard) next(t *testing.T) string {
	t.Helper()
	select {
	case told := <-h.told:
		return told
	case <-time.After(patience):
		t.Fatal("nothing is heard")
		return ""
	}
}

// A mail, and what someone asks for that is answered by mail, wake what sends them.
func TestMailsAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := heard{told: make(chan string, 100)}
	listener := b.NewListener(slog.New(slog.DiscardHandler))
	listener.Handle(tenantsdb.MailsChannel, func(string) { h.told <- "a mail" }, func() {})
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)
	if err := b.Mail.QueueMail(t.Context(), nil, tenants.Mail{To: "ada@example.com", Subject: "hello"}); err != nil {
		t.Fatal(err)
	}
	h.next(t)
	if err := b.Accounts.AskAccount(t.Context(), tenants.AccountRequest{Kind: tenants.RequestReset, Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	h.next(t)
}

func TestEveryChangeThatReplicasRememberIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, _ := b.addKey(t, b.workspace)
	login := b.logIn(t, time.Hour)
	_, h := listen(t, b)

	began := time.Now()
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	if got := h.next(t); got != "palimpsest_keys "+b.workspace.String() {
		t.Errorf("revoked key: heard %s", got)
	}
	t.Logf("S8: heard after %s", time.Since(began))
	member := b.join(t, "grace@example.com", tenants.Admin)
	if err := b.Workspaces.ChangeRole(as(t, b.user), b.workspace, member.ID, tenants.Viewer); err != nil {
		t.Fatal(err)
	}
	if keys, login := h.next(t), h.next(t); keys != "palimpsest_keys "+b.workspace.String() || login != "palimpsest_logins "+member.ID.String() {
		t.Errorf("another role: heard %s and %s", keys, login)
	}
	settings := "palimpsest_settings " + b.workspace.String()
	allowed := tenants.DataSettings{TimeZone: "UTC", Text: tenants.TextPolicy{Managers: tenants.ReadsAll, Members: tenants.ReadsAll, Viewers: tenants.ReadsAll}}
	if err := b.Data.SetDataSettings(t.Context(), b.workspace, allowed); err != nil {
		t.Fatal(err)
	}
	if keys, got := h.next(t), h.next(t); keys != "palimpsest_keys "+b.workspace.String() || got != settings {
		t.Errorf("other readers: heard %s and %s", keys, got)
	}
	provider := b.addProviderKey(t, b.workspace, tenants.ProviderOpenAI)
	if got := h.next(t); got != settings {
		t.Errorf("added provider key: heard %s", got)
	}
	if err := b.ProviderKeys.DeleteProviderKey(t.Context(), b.workspace, provider.ID); err != nil {
		t.Fatal(err)
	}
	if got := h.next(t); got != settings {
		t.Errorf("deleted provider key: heard %s", got)
	}
	if _, err := b.Pipelines.SavePipeline(t.Context(), b.workspace, 0, tenants.PipelineConfig{}); err != nil {
		t.Fatal(err)
	}
	if got := h.next(t); got != settings {
		t.Errorf("saved pipeline: heard %s", got)
	}
	if err := b.Logins.RevokeLogin(t.Context(), b.user.ID, login.ID); err != nil {
		t.Fatal(err)
	}
	if got := h.next(t); got != "palimpsest_logins "+login.ID.String() {
		t.Errorf("ended login: heard %s", got)
	}
}

func TestChangeThatIsUndoneIsNotTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, h := listen(t, b)

	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, uuid.New()); err == nil {
		t.Fatal("an unknown key was revoked")
	}
	if _, err := b.Pipelines.SavePipeline(t.Context(), b.workspace, 7, tenants.PipelineConfig{}); err == nil {
		t.Fatal("a version out of order was saved")
	}
	key, _ := b.addKey(t, b.workspace)
	if err := b.APIKeys.RevokeAPIKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	if got := h.next(t); got != "palimpsest_keys "+b.workspace.String() {
		t.Errorf("heard %s before the only change", got)
	}
}

func TestBrokenConnectionIsOpenedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, h := listen(t, b)

	breakListener(t, b.database.Owner(t))
	for range 2 * 3 { // each of the channels, when it broke and when it was back
		select {
		case <-h.missed:
		case <-time.After(patience):
			t.Fatal("the break is not noticed")
		}
	}
	b.addProviderKey(t, b.workspace, tenants.ProviderOpenAI)
	if got := h.next(t); got != "palimpsest_settings "+b.workspace.String() {
		t.Errorf("after the break: heard %s", got)
	}
}

func TestListenerStopsMoreThanOnceAndWithoutStart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.NewListener(slog.New(slog.DiscardHandler)).Stop()

	listener, h := listen(t, b)
	listener.Stop()
	listener.Stop()
	b.addProviderKey(t, b.workspace, tenants.ProviderOpenAI)
	if len(h.told) != 0 || len(h.missed) != 0 {
		t.Error("a stopped listener was told something")
	}
}

// breakListener ends the connection of the database's only listener.
func breakListener(t *testing.T, owner *pgxpool.Pool) {
	t.Helper()
	tag, err := owner.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d connections ended (%v)", tag.RowsAffected(), err)
	}
}
