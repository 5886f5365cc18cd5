package tenantsdb_test

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// What is read alone comes from the replica as long as that answers and keeps up, and from the
// database itself otherwise. One exchange is looked up where it was recorded.
func TestReaderReadsFromTheReplicaWhileItKeepsUp(t *testing.T) {
	t.Parallel()
	pair, secret := dbtest.NewPair(t), []byte("secret")
	if _, err := migrations.Up(t.Context(), pair.OwnerURL); err != nil {
		t.Fatal(err)
	}
	if err := migrations.EnsureAppLogin(t.Context(), pair.OwnerURL, secret); err != nil {
		t.Fatal(err)
	}
	app, err := migrations.AppURL(pair.OwnerURL, secret)
	if err != nil {
		t.Fatal(err)
	}
	read, err := migrations.AppURL(pair.ReplicaURL, secret)
	if err != nil {
		t.Fatal(err)
	}
	failures := make(chan error, 10)
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: app, ReadURL: read, ReadFailed: func(err error) { failures <- err }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	b := bundle{DB: db}
	b.user, b.workspace = b.signUp(t, "ada@example.com")
	reader := db.Reader()
	count := func() int {
		t.Helper()
		found, err := reader.Exchanges.CountExchanges(tenants.OwnWork(t.Context()), b.workspace, 100)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	until := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); count() != want; {
			if time.Now().After(deadline) {
				t.Fatalf("the replica shows %d exchanges, want %d", count(), want)
			}
		}
	}
	b.record(t, b.workspace, b.exchange(now()))
	until(1)

	pair.Replay(t, false)
	unseen := b.exchange(now())
	b.record(t, b.workspace, unseen)
	if found := count(); found != 1 {
		t.Errorf("the replica shows %d exchanges, want the one from before it was held", found)
	}
	if _, err := reader.Exchanges.Exchange(tenants.OwnWork(t.Context()), b.workspace, unseen.ID); err != nil {
		t.Errorf("an exchange that the replica does not have yet: %v", err)
	}
	if other, err := reader.Exchanges.CountExchanges(tenants.OwnWork(t.Context()), tenants.NewWorkspaceID(), 100); err != nil || other != 0 {
		t.Errorf("another workspace sees %d exchanges on the replica (%v)", other, err)
	}
	if err := reader.Exchanges.RecordExchanges(t.Context(), b.workspace, []tenants.Exchange{b.exchange(now())}); err == nil {
		t.Error("the replica took a write")
	}
	pair.Replay(t, true)
	if len(failures) != 1 {
		t.Errorf("%d failures were told, want the one of the write: the replica rests", len(failures))
	}

	pair.StopReplica(t)
	if found := count(); found != 2 {
		t.Errorf("without the replica there are %d exchanges, want both", found)
	}
}

// A login that row-level security does not bind, or that reaches across workspaces, reads nothing.
func TestReplicaWithAnotherLoginIsRefused(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	for name, address := range map[string]string{"owner": database.OwnerURL, "worker": database.WorkerURL} {
		if db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: database.AppURL, ReadURL: address}); !errors.Is(err, tenantsdb.ErrUnbound) {
			t.Errorf("%s: %v, want ErrUnbound", name, err)
			if db != nil {
				db.Close()
			}
		}
		if _, err := tenantsdb.CheckReplica(t.Context(), address, database.OwnerURL); !errors.Is(err, tenantsdb.ErrUnbound) {
			t.Errorf("check of %s: %v, want ErrUnbound", name, err)
		}
	}
	if found, err := tenantsdb.CheckReplica(t.Context(), database.AppURL, database.OwnerURL); found != (tenantsdb.ReplicaState{}) || err != nil {
		t.Errorf("the database itself: %+v, %v", found, err)
	}
}

// A server that answers is read only if it is a standby that keeps up: one that lags by more than a
// minute, or takes writes itself, is reported and left alone.
func TestReaderReadsOnlyFromAStandbyThatKeepsUp(t *testing.T) {
	t.Parallel()
	b, behind := setup(t), dbtest.New(t)
	b.record(t, b.workspace, b.exchange(now())) // the standby has none
	for name, c := range map[string]struct {
		follows bool
		behind  string
		says    string // of the failure; "" if the standby is read
	}{
		"current":                {true, "0 s", ""},
		"just in time":           {true, "30 s", ""},
		"its clock runs behind":  {true, "-20 s", ""},
		"a little too late":      {true, "70 s", "too far behind: 70 s"},
		"an hour":                {true, "1 hour", "too far behind: 3600 s"},
		"a day and a moment":     {true, "1 day 1 s", "too far behind: 86401 s"},
		"a primary":              {false, "0 s", "takes writes"},
		"promoted long ago":      {false, "90 days", "takes writes"},
		"ahead of its own clock": {true, "-2 hours", ""},
	} {
		failures := make(chan error, 10)
		read := behind.Standby(t, c.follows, c.behind, "system_identifier")
		db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: b.database.AppURL, ReadURL: read, ReadFailed: func(err error) { failures <- err }})
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if c.says != "" {
			want = 1
		}
		for range 2 { // the second is read while the standby is left alone
			if found, err := db.Reader().Exchanges.CountExchanges(tenants.OwnWork(t.Context()), b.workspace, 100); found != want || err != nil {
				t.Errorf("%s: %d exchanges, %v, want %d", name, found, err, want)
			}
		}
		if len(failures) != want {
			t.Errorf("%s: %d failures are reported, want %d", name, len(failures), want)
		} else if want == 1 {
			if err := <-failures; !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
		}
		db.Close()
	}
}

// The check compares what a server is: a standby of another installation answers, too.
func TestCheckComparesReplicaWithDatabase(t *testing.T) {
	t.Parallel()
	database, other := dbtest.New(t), dbtest.New(t)
	for name, c := range map[string]struct {
		of      *dbtest.Database
		behind  string
		follows bool
		system  string
		want    tenantsdb.ReplicaState
	}{
		"a standby":          {database, "5 s", true, "system_identifier", tenantsdb.ReplicaState{Follows: true, Behind: 5 * time.Second}},
		"late":               {database, "1 hour", true, "system_identifier", tenantsdb.ReplicaState{Follows: true, Behind: time.Hour}},
		"the primary":        {database, "0 s", false, "system_identifier", tenantsdb.ReplicaState{}},
		"of another server":  {database, "5 s", true, "system_identifier + 1", tenantsdb.ReplicaState{Follows: true, Behind: 5 * time.Second, Foreign: true}},
		"its other database": {other, "5 s", true, "system_identifier", tenantsdb.ReplicaState{Follows: true, Behind: 5 * time.Second, Foreign: true}},
	} {
		found, err := tenantsdb.CheckReplica(t.Context(), c.of.Standby(t, c.follows, c.behind, c.system), database.OwnerURL)
		found.Behind = found.Behind.Round(time.Minute / 12)
		if found != c.want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", name, found, err, c.want)
		}
	}
}

// A replica that does not answer when the program starts does not keep it from starting, and pages
// are read from the database.
func TestReaderStartsWithoutItsReplica(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	failures := make(chan error, 10)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away, err := url.Parse(database.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	away.Host = listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: database.AppURL, ReadURL: away.String(), ReadFailed: func(err error) { failures <- err }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for range 2 {
		if _, err := db.Reader().Exchanges.CountExchanges(tenants.OwnWork(t.Context()), tenants.NewWorkspaceID(), 1); err != nil {
			t.Error(err)
		}
	}
	if len(failures) != 1 {
		t.Errorf("%d failures, want one: the replica is left alone for a while", len(failures))
	}
}
