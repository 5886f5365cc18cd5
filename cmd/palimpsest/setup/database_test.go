package setup

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
)

// A start waits for a database that takes no connections yet, and for nothing else.
func TestStartWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	database, other := dbtest.Empty(t), dbtest.Empty(t).Owner(t)
	allow := func(are bool) {
		t.Helper()
		if _, err := other.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %t", database.Name, are)); err != nil {
			t.Error(err)
		}
	}
	allow(false)
	waits := 0
	tick := make(chan time.Time, 1)
	p := &Database{
		Inputs: New(settings.Config{Storage: settings.Storage{DatabaseURL: database.OwnerURL, SecretKey: dbtest.SecretKey}}, slog.New(slog.DiscardHandler), time.Now),
		After: func(time.Duration) <-chan time.Time {
			if waits++; waits == 3 {
				allow(true)
			}
			tick <- time.Time{}
			return tick
		},
	}
	defer p.Close()
	safe, err := p.Config.OpenVault()
	if err != nil {
		t.Fatal(err)
	}
	awaits := func() error {
		db, err := p.NewDatabase(t.Context(), safe)
		if err != nil {
			return err
		}
		return p.Await(t.Context(), db, safe)
	}
	if err := awaits(); err != nil || waits != 3 {
		t.Errorf("opened after %d waits: %v", waits, err)
	}
	allow(false)
	waits = 3
	err = awaits()
	if most := 3 + int(databasePatience/databaseAgain); err == nil || waits != most {
		t.Errorf("it waits %d times, not %d: %v", waits, most, err)
	}
	allow(true)
	waits = 3
	p.Config.Storage.DatabaseURL = strings.Replace(database.OwnerURL, "palimpsest:", "palimpsest:wrong", 1)
	if err := awaits(); err == nil || waits != 3 {
		t.Errorf("with a wrong password it waits %d times: %v", waits-3, err)
	}
}

// Requests and background jobs use the logins that the settings name. The program creates a
// login that no setting names, and refuses one with other rights than it should have.
func TestLoginsComeFromSettingsOrAreCreated(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	const app, worker = "palimpsest_app_", "palimpsest_worker_"
	for _, test := range []struct {
		name, appURL, workerURL, readURL string
		wantApp, wantWorker              string // logins
		wantError                        string // what it begins with
	}{
		{name: "neither", wantApp: app + database.Name, wantWorker: worker + database.Name},
		{name: "app only", appURL: database.AppURL, wantApp: app + "migrated", wantWorker: worker + database.Name},
		{name: "worker only", workerURL: database.WorkerURL, wantApp: app + database.Name, wantWorker: worker + "migrated"},
		{name: "both", appURL: database.AppURL, workerURL: database.WorkerURL, wantApp: app + "migrated", wantWorker: worker + "migrated"},
		{name: "one login for both", appURL: database.AppURL, workerURL: database.AppURL, wantError: "DATABASE_WORKER_URL: not a worker login"},
		{name: "worker login for requests", appURL: database.WorkerURL, wantError: "DATABASE_APP_URL: not an app login"},
		{name: "owner for requests", appURL: database.OwnerURL, wantError: "DATABASE_APP_URL: not an app login"},
		{name: "worker login for pages", appURL: database.AppURL, readURL: database.WorkerURL, wantError: "DATABASE_READ_URL: read replica: "},
	} {
		t.Run(test.name, func(t *testing.T) { // one after another: two tests would create the same login
			config := settings.Config{Storage: settings.Storage{DatabaseURL: database.OwnerURL, DatabaseAppURL: test.appURL, DatabaseWorkerURL: test.workerURL, DatabaseReadURL: test.readURL, SecretKey: dbtest.SecretKey}}
			p := &Database{Inputs: New(config, slog.New(slog.DiscardHandler), time.Now)}
			defer p.Close()
			safe, err := p.Config.OpenVault()
			if err != nil {
				t.Fatal(err)
			}
			db, err := p.OpenDatabase(t.Context(), safe)
			if test.wantError != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.wantError) {
					t.Fatalf("error %v, want %s", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for want, pool := range map[string]*pgxpool.Pool{test.wantApp: db.Pool(), test.wantWorker: db.WorkPool()} {
				var login string
				if err := pool.QueryRow(t.Context(), "SELECT current_user").Scan(&login); err != nil || login != want {
					t.Errorf("login %q, want %q (%v)", login, want, err)
				}
			}
			if _, err := db.Workspaces.AllWorkspaces(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
