package partitions_test

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
	"palimpsest/migrations/partitions"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// S27, S28: a partition is dropped once every exchange in it is old and no session that is there has one. What
// must be kept of it stays, and so do the sums; the tags of the others go. Done twice, it comes to the same.
func TestOldPartitionsAreDropped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.checkDropping(t)
}

// S1: the owner of the tables need not be more than that.
func TestAnOwnerWithoutOtherRightsKeepsPartitions(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	administrator, err := pgx.Connect(t.Context(), database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = administrator.Close(context.WithoutCancel(t.Context())) }()
	name := "plain_" + database.Name
	for _, statement := range []string{"CREATE ROLE " + name + " LOGIN PASSWORD 'pass'", "ALTER DATABASE " + database.Name + " OWNER TO " + name} {
		if _, err := administrator.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	plain, err := url.Parse(database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	superuser := database.OwnerURL
	plain.User = url.UserPassword(name, "pass")
	if _, err := migrations.Up(t.Context(), plain.String()); err != nil {
		t.Fatal(err)
	}
	secret := []byte(dbtest.SecretKey)
	for _, ensure := range []func(context.Context, string, []byte) error{migrations.EnsureAppLogin, migrations.EnsureWorkerLogin} {
		if err := ensure(t.Context(), superuser, secret); err != nil {
			t.Fatal(err)
		}
	}
	app, appErr := migrations.AppURL(superuser, secret)
	worker, workerErr := migrations.WorkerURL(superuser, secret)
	if appErr != nil || workerErr != nil {
		t.Fatal(appErr, workerErr)
	}
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: app, WorkerURL: worker})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	_, workspace, err := db.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "workspace")
	if err != nil {
		t.Fatal(err)
	}
	owner := database.Owner(t)
	database.DB, database.OwnerURL = db, plain.String()
	b := &bundle{Database: database, owner: owner, workspace: workspace.ID, now: time.Date(2027, 1, 5, 10, 0, 0, 0, time.UTC)}
	b.checkDropping(t)
}

func (b *bundle) checkDropping(t *testing.T) {
	t.Helper()
	gone, answered, inSession, late := exchange(b.now), exchange(b.now), exchange(b.now.Add(time.Hour)), exchange(b.now.AddDate(0, 0, 80))
	answered.Answer.Answer = []byte("hash of an original")
	inSession.Request.Session, inSession.Request.Lane = uuid.UUID{7}, uuid.UUID{8}
	b.record(t, gone, answered, inSession)
	for b.now.Before(late.At) {
		b.keep(t, 90)
		b.now = b.now.AddDate(0, 0, 28)
	}
	b.record(t, late)
	before := b.names(t)
	if want := []string{"exchanges_first -0203", "exchanges_20270203 0203-0303", "exchanges_20270303 0303-0331", "exchanges_20270331 0331-"}; !slices.Equal(before, want) {
		t.Fatalf("partitions %v, want %v", before, want)
	}

	b.now = time.Date(2027, 5, 3, 23, 0, 0, 0, time.UTC) // an hour too early
	if done := b.keep(t, 90); len(done.Dropped) > 0 {
		t.Fatalf("dropped %v", done.Dropped)
	}
	b.now = b.now.Add(2 * time.Hour)
	if done := b.keep(t, 90); !slices.Equal(done.Dropped, []string{"exchanges_first"}) || done.Waits != "" {
		t.Fatalf("did %+v", done)
	}
	if names := b.names(t); names[0] != "exchanges_before_20270203 -0203" || names[1] != before[1] {
		t.Errorf("partitions %v", names)
	}
	in := b.where(t)
	if len(in) != 3 || in[answered.ID] != "exchanges_before_20270203" || in[inSession.ID] != "exchanges_before_20270203" || in[late.ID] == "" {
		t.Errorf("exchanges %v; what is kept is %s, %s and %s", in, answered.ID, inSession.ID, late.ID)
	}
	for what, want := range map[string]string{
		"SELECT sum(exchanges)::text FROM rollups_now WHERE NOT part AND minutes = 1440":          "4",
		"SELECT sum(cost_microusd)::text FROM rollups_now WHERE NOT part AND minutes = 1440":      "40",
		"SELECT count(*)::text FROM exchange_tags":                                                "3",
		"SELECT count(*)::text FROM pg_class WHERE relname = 'exchanges_first'":                   "0",
		"SELECT count(*)::text FROM exchange_tags WHERE exchange_id = '" + gone.ID.String() + "'": "0",
	} {
		if got := b.text(t, what); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}

	// Its session is deleted: it goes with the next partition.
	if err := b.DB.Deletion.EraseSessions(t.Context(), b.workspace); err != nil {
		t.Fatal(err)
	}
	b.exec(t, "UPDATE exchanges SET session_id = NULL WHERE session_id IS NOT NULL")
	b.now = time.Date(2027, 6, 2, 0, 0, 0, 0, time.UTC)
	if done := b.keep(t, 90); !slices.Equal(done.Dropped, []string{"exchanges_before_20270203", "exchanges_20270203"}) {
		t.Errorf("did %+v", done)
	}
	if in := b.where(t); len(in) != 2 || in[answered.ID] != "exchanges_before_20270303" {
		t.Errorf("exchanges %v", in)
	}
	again := b.keep(t, 90)
	if len(again.Dropped) > 0 {
		t.Errorf("dropped %v once more", again.Dropped)
	}
	b.record(t, exchange(b.now.AddDate(-1, 0, 0))) // one that comes late is recorded all the same
}

// S27: where much of an old partition must be kept, it waits.
func TestAPartitionOfSessionsThatAreKeptWaits(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	b := setup(t)
	b.now = time.Now()
	dbtest.FillExchanges(t, b.owner, b.workspace, 10_001)
	b.keep(t, partitions.LeastDays)
	b.now = b.now.AddDate(1, 0, 0)
	if done := b.keep(t, partitions.LeastDays); done.Waits != "exchanges_first" || len(done.Dropped) > 0 {
		t.Errorf("did %+v", done)
	}
	b.exec(t, "UPDATE exchanges SET session_id = NULL WHERE id = (SELECT min(id::text)::uuid FROM exchanges)")
	if done := b.keep(t, partitions.LeastDays); done.Waits != "" || !slices.Contains(done.Dropped, "exchanges_first") {
		t.Errorf("did %+v", done)
	}
	if count := b.text(t, "SELECT count(*)::text FROM exchanges"); count != "10000" {
		t.Errorf("%s exchanges are kept, want 10000", count)
	}
}

// S27: a pass that was killed between two steps is finished by the next one: two tables that are partitions no
// more go, with the tags of both workspaces that had exchanges in them.
func TestWhatAKilledPassHasLeftIsDropped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.another(t)
	kept, before := exchange(b.now), b.now.AddDate(-1, 0, 0)
	first, second, third := exchange(before), exchange(before), exchange(before)
	b.record(t, kept, first)
	other.record(t, second, third)
	b.exec(t, "CREATE TABLE exchanges_before_20270101 (LIKE exchanges)", "CREATE TABLE exchanges_before_20270108 (LIKE exchanges)", // copied, not yet in place
		"INSERT INTO exchanges_before_20270101 SELECT * FROM exchanges WHERE id <> '"+third.ID.String()+"'",
		"INSERT INTO exchanges_before_20270108 SELECT * FROM exchanges WHERE id IN ('"+third.ID.String()+"', '"+kept.ID.String()+"')",
		"DELETE FROM exchanges WHERE id <> '"+kept.ID.String()+"'")
	b.keep(t, 0)
	if left := b.text(t, "SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class WHERE relname LIKE 'exchanges_before%'"); left != "" {
		t.Errorf("%s is left", left)
	}
	if tagged := b.text(t, "SELECT string_agg(exchange_id::text, ' ') FROM exchange_tags"); tagged != kept.ID.String() {
		t.Errorf("tags of %s are left, want those of %s", tagged, kept.ID)
	}
}

// S27: exchanges that change between the copy of an old partition and its replacement are kept as they are by then,
// and those that need not be kept any more are not.
func TestExchangesThatChangeWhileTheyAreCopiedAreKeptAsTheyAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	changed, freed := exchange(b.now), exchange(b.now)
	changed.Answer.Answer = []byte("before")
	freed.Request.Session, freed.Request.Lane = uuid.UUID{7}, uuid.UUID{8}
	b.record(t, changed, freed)
	for _, at := range []time.Time{b.now, time.Date(2027, 2, 2, 0, 0, 0, 0, time.UTC), time.Date(2027, 5, 3, 23, 0, 0, 0, time.UTC)} {
		b.now = at
		b.keep(t, 90)
	}
	b.now = b.now.Add(2 * time.Hour)
	reader, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := reader.Exec(t.Context(), "SELECT count(*) FROM exchanges"); err != nil {
		t.Fatal(err)
	}
	keeper, waits := b.keeper(90), 0
	again := keeper.After
	keeper.After = func(span time.Duration) <-chan time.Time { // it is copied, and waits for the reader
		if waits++; waits == 1 {
			b.exec(t, "UPDATE exchanges SET answer = 'after' WHERE id = '"+changed.ID.String()+"'", "UPDATE exchanges SET session_id = NULL WHERE id = '"+freed.ID.String()+"'")
			if err := reader.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return again(span)
	}
	if done, err := keeper.Keep(t.Context()); err != nil || waits == 0 || !slices.Equal(done.Dropped, []string{"exchanges_first"}) {
		t.Fatalf("did %+v after %d waits, %v", done, waits, err)
	}
	if kept := b.text(t, "SELECT string_agg(id::text || ' ' || convert_from(answer, 'UTF8'), ', ') FROM exchanges"); kept != changed.ID.String()+" after" {
		t.Errorf("kept are %s", kept)
	}
	if tagged := b.text(t, "SELECT string_agg(exchange_id::text, ' ') FROM exchange_tags"); tagged != changed.ID.String() {
		t.Errorf("tags of %s are left", tagged)
	}
}

// another returns the bundle with another workspace.
func (b *bundle) another(t *testing.T) *bundle {
	t.Helper()
	_, workspace, err := b.DB.Accounts.SignUp(t.Context(), "eve@example.com", "hash", "another workspace")
	if err != nil {
		t.Fatal(err)
	}
	return &bundle{Database: b.Database, owner: b.owner, workspace: workspace.ID, now: b.now}
}

// S27: a deleted workspace leaves no exchange in any partition, and takes none of another workspace's with it that has
// the same place in another partition.
func TestDeletedWorkspaceLeavesNothingInAnyPartition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.another(t)
	b.keep(t, partitions.LeastDays)
	later := b.now.AddDate(0, 0, 60)
	for range 3 {
		b.record(t, exchange(b.now))
		other.record(t, exchange(later))
	}
	for range 2 {
		other.record(t, exchange(b.now))
		b.record(t, exchange(later))
	}
	if err := b.DB.Deletion.CloseWorkspace(t.Context(), b.workspace, func(tenants.Tenant) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := b.DB.Deletion.EraseSessions(t.Context(), b.workspace); err != nil {
		t.Fatal(err)
	}
	left := b.text(t, "SELECT string_agg(n::text || CASE WHEN workspace_id = $1 THEN ' of the deleted one' ELSE '' END, ' ' ORDER BY n) FROM (SELECT workspace_id, count(*) AS n FROM exchanges GROUP BY workspace_id, tableoid) c", b.workspace)
	if left != "2 3" {
		t.Errorf("partitions hold %s, want 2 and 3 of the other workspace", left)
	}
	if err := b.DB.Deletion.EraseWorkspace(t.Context(), b.workspace); err != nil {
		t.Fatal(err)
	}
}
