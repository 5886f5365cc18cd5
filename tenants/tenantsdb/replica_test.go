package tenantsdb_test

import (
	"errors"
	"net"
	"net/url"
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
		found, err := reader.Exchanges.CountExchanges(t.Context(), b.workspace, 100)
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
	if _, err := reader.Exchanges.Exchange(t.Context(), b.workspace, unseen.ID); err != nil {
		t.Errorf("an exchange that the replica does not have yet: %v", err)
	}
	if other, err := reader.Exchanges.CountExchanges(t.Context(), tenants.NewWorkspaceID(), 100); err != nil || other != 0 {
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
		if _, _, err := tenantsdb.CheckReplica(t.Context(), address); !errors.Is(err, tenantsdb.ErrUnbound) {
			t.Errorf("check of %s: %v, want ErrUnbound", name, err)
		}
	}
	if follows, behind, err := tenantsdb.CheckReplica(t.Context(), database.AppURL); follows || behind != 0 || err != nil {
		t.Errorf("the database itself: follows %t, %s behind, %v", follows, behind, err)
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
		if _, err := db.Reader().Exchanges.CountExchanges(t.Context(), tenants.NewWorkspaceID(), 1); err != nil {
			t.Error(err)
		}
	}
	if len(failures) != 1 {
		t.Errorf("%d failures, want one: the replica is left alone for a while", len(failures))
	}
}
