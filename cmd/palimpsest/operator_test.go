package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/api"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
)

func TestProxyGetsTheLimitsOfTheSettings(t *testing.T) {
	t.Parallel()
	config := settings.Config{WorkspaceConcurrency: 3, Accounts: settings.Accounts{RequireVerifiedEmail: true, OperatorContact: "ops@example.com"}}
	if got := bounded(config, &api.Server{}); got.Concurrency == nil || !got.RequireVerified || got.Contact != "ops@example.com" {
		t.Errorf("%+v", got)
	}
}

// Anyone who has the command line makes operators; the log tells of it, and once is
// enough.
func TestCommandMakesAnOperator(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	first, _, err := database.DB.Accounts.SignUp(t.Context(), "first@example.com", "hash", "first")
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := database.DB.Accounts.SignUp(t.Context(), "second@example.com", "hash", "second")
	if err != nil {
		t.Fatal(err)
	}
	run := func(email string) (string, error) {
		var said bytes.Buffer
		command := userCommand(func() (settings.Config, error) {
			return settings.Config{
				Serving: settings.Serving{LogFormat: "text"},
				Storage: settings.Storage{DatabaseURL: database.OwnerURL, DatabaseAppURL: database.AppURL, SecretKey: dbtest.SecretKey},
			}, nil
		})
		command.SetArgs([]string{"operator", email})
		command.SetOut(&said)
		command.SetErr(&said)
		err := command.ExecuteContext(t.Context())
		return said.String(), err
	}
	for _, want := range []string{"second@example.com is an operator now\n", "second@example.com is an operator already\n"} {
		if said, err := run("Second@example.com"); err != nil || said != want {
			t.Errorf("said %q, want %q (%v)", said, want, err)
		}
	}
	if said, err := run("nobody@example.com"); err == nil || err.Error() != "nobody here has the address nobody@example.com" {
		t.Errorf("someone unknown: %q (%v)", said, err)
	}
	if _, err := database.DB.Operators.OperatedWorkspaces(t.Context(), second.ID, tenants.OperatedQuery{Limit: 1}); err != nil {
		t.Errorf("the second person operates nothing: %v", err)
	}
	log, err := database.DB.Operators.OperatorLog(t.Context(), first.ID, 5)
	if err != nil || len(log) != 2 || log[0].Action != tenants.OperatorAppointed || log[0].Actor != "command line" || log[0].Name != "second@example.com" {
		t.Errorf("log %+v, %v", log, err)
	}
}

// S4, S8: where the application's login goes through a pgbouncer in transaction mode,
// which passes no notification on, changes are heard through DATABASE_URL.
func TestChangesAreHeardPastAPooler(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	app, worker := database.PooledURLs(t, 2)
	config := settings.Config{Storage: settings.Storage{DatabaseURL: database.OwnerURL, DatabaseAppURL: app, DatabaseWorkerURL: worker, SecretKey: dbtest.SecretKey}}
	p := &setup.Database{Inputs: setup.New(config, slog.New(slog.DiscardHandler), time.Now)}
	defer p.Close()
	safe, err := config.OpenVault()
	if err != nil {
		t.Fatal(err)
	}
	db, err := p.OpenDatabase(t.Context(), safe)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 1)
	listener := db.NewListener(p.Log)
	listener.Handle("palimpsest_settings", func(payload string) { told <- payload }, func() {})
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer listener.Stop()
	if _, err := db.Pool().Exec(t.Context(), "SELECT pg_notify('palimpsest_settings', 'changed')"); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-told:
		if got != "changed" {
			t.Errorf("heard %q", got)
		}
	case <-t.Context().Done():
		t.Fatal("nothing is heard")
	}
}

// Commands work beside a running product, on the private database that it has started.
func TestCommandsWorkBesideTheRunningProduct(t *testing.T) {
	t.Parallel()
	i := startOn(t, "", providerdouble.Config{})
	w := i.tenant("ada")
	load := func() (settings.Config, error) { return i.config, nil }
	for _, test := range []struct {
		command *cobra.Command
		words   []string
		says    string
	}{
		{userCommand(load), []string{"operator", "ada@example.com"}, "ada@example.com is an operator"},
		{keyCommand(load), []string{"create", "--email", "ada@example.com"}, "plm_"},
		{vaultCommand(load), []string{"reseal"}, "need the first master key only"},
		{migrateCommand(load), []string{"status"}, "00001_people.sql"},
	} {
		var said bytes.Buffer
		test.command.SetOut(&said)
		test.command.SetArgs(test.words)
		if err := test.command.ExecuteContext(t.Context()); err != nil || !strings.Contains(said.String(), test.says) {
			t.Errorf("%v: %q, %v", test.words, said.String(), err)
		}
		if test.says == "plm_" {
			w.key = strings.TrimSpace(said.String())
		}
	}
	if response, answer := w.post("/v1/messages", []byte(smallMessage), nil); response.StatusCode != http.StatusOK {
		t.Errorf("with the key of the command: status %d: %s", response.StatusCode, answer)
	}
}
