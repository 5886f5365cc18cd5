package partitions_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/migrations/dbtest"
	"palimpsest/migrations/partitions"
	"palimpsest/pipeline/faulttest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// bundle is a database with one workspace, at a time.
type bundle struct {
	*dbtest.Database

	owner     *pgxpool.Pool
	workspace tenants.WorkspaceID
	now       time.Time
}

func setup(t *testing.T) *bundle {
	t.Helper()
	database := dbtest.New(t)
	_, workspace, err := database.DB.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "workspace")
	if err != nil {
		t.Fatal(err)
	}
	return &bundle{Database: database, owner: database.Owner(t), workspace: workspace.ID, now: time.Date(2027, 1, 5, 10, 0, 0, 0, time.UTC)}
}

// keeper is what keeps the partitions of the bundle.
func (b *bundle) keeper(days int) partitions.Manager {
	return partitions.Manager{OwnerURL: b.OwnerURL, Days: days, Now: func() time.Time { return b.now }, After: func(time.Duration) <-chan time.Time {
		passed := make(chan time.Time)
		close(passed)
		return passed
	}}
}

func (b *bundle) keep(t *testing.T, days int) partitions.Done {
	t.Helper()
	done, err := b.keeper(days).Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// exchange is one of a time, with an id of that time.
func exchange(at time.Time) tenants.Exchange {
	id := uuid.Must(uuid.NewV7())
	first := partitions.First(at)
	copy(id[:6], first[:6])
	return tenants.Exchange{
		ID: id, At: at,
		Request: tenants.ExchangeRequest{
			APIKey: uuid.UUID{1}, Endpoint: "/v1/messages", Model: "m", Client: "c",
			Tags: tenants.Tags{"day": at.Format(time.DateOnly)},
		},
		Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: 200, Attempts: 1},
		Prompt: tenants.ExchangePrompt{Compression: "none"}, Cost: tenants.ExchangeCost{CostMicroUSD: 10},
	}
}

func (b *bundle) record(t *testing.T, exchanges ...tenants.Exchange) {
	t.Helper()
	if err := b.DB.Exchanges.RecordExchanges(t.Context(), b.workspace, exchanges); err != nil {
		t.Fatal(err)
	}
}

// where returns in which partition each exchange is.
func (b *bundle) where(t *testing.T) map[uuid.UUID]string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), "SELECT id, tableoid::regclass::text FROM exchanges")
	if err != nil {
		t.Fatal(err)
	}
	in := map[uuid.UUID]string{}
	var id uuid.UUID
	var name string
	if _, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error { in[id] = name; return nil }); err != nil {
		t.Fatal(err)
	}
	return in
}

// names returns the partitions, the oldest first, each with its bounds.
func (b *bundle) names(t *testing.T) []string {
	t.Helper()
	list, err := partitions.List(t.Context(), b.owner.Query)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range list {
		names = append(names, fmt.Sprintf("%s %s-%s", one.Name, monthDay(one.From), monthDay(one.Until)))
	}
	return names
}

func monthDay(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	milliseconds := int64(0)
	for _, one := range id[:6] {
		milliseconds = milliseconds<<8 | int64(one)
	}
	return time.UnixMilli(milliseconds).UTC().Format("0102")
}

// text reads one text as the owner.
func (b *bundle) text(t *testing.T, statement string, values ...any) string {
	t.Helper()
	var text string
	if err := b.owner.QueryRow(t.Context(), statement, values...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return text
}

func (b *bundle) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := b.owner.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// S27: where nothing is to be dropped, a small installation keeps one partition, which costs no list anything.
func TestSmallInstallationsHaveOnePartition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, exchange(b.now))
	if done := b.keep(t, 0); len(done.Made)+len(done.Dropped) > 0 {
		t.Errorf("did %+v", done)
	}
	if names := b.names(t); !slices.Equal(names, []string{"exchanges_first -"}) {
		t.Errorf("partitions %v", names)
	}
}

// S27: a partition is made before the newest has become large, week by week ahead of the clock, and every
// exchange is recorded, however early or late its id says it is.
func TestPartitionsAreMadeAheadAtTheRateOfTheInstallation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old, present, far := exchange(b.now.AddDate(-1, 0, 0)), exchange(b.now), exchange(b.now.AddDate(40, 0, 0))
	b.record(t, old, present, far)
	rate := func(partition string, perDay, days int) {
		b.exec(t, fmt.Sprintf("UPDATE pg_class SET reltuples = %d WHERE oid = '%s'::regclass", perDay*days, partition))
	}
	b.exec(t, "UPDATE goose_db_version SET tstamp = '2026-12-26 10:00'")

	rate("exchanges_first", 1_000_000, 10)
	b.keep(t, 0)
	if want := []string{"exchanges_first -0203", "exchanges_20270203 0203-"}; !slices.Equal(b.names(t), want) {
		t.Fatalf("partitions %v, want %v", b.names(t), want)
	}
	if again := b.keep(t, 0); len(again.Made) > 0 {
		t.Errorf("made %v once more", again.Made)
	}
	next := exchange(b.now.AddDate(0, 0, 30))
	b.record(t, next)
	in := b.where(t)
	for id, want := range map[uuid.UUID]string{old.ID: "exchanges_first", present.ID: "exchanges_first", far.ID: "exchanges_20270203", next.ID: "exchanges_20270203"} {
		if in[id] != want {
			t.Errorf("exchange %s is in %q, want %q", id, in[id], want)
		}
	}

	// A busier installation gets narrower ones, up to a week ahead.
	b.now = time.Date(2027, 1, 31, 10, 0, 0, 0, time.UTC)
	rate("exchanges_first", 40_000_000, 30)
	b.keep(t, 0)
	if names := b.names(t); names[1] != "exchanges_20270203 0203-0204" || names[len(names)-1] != "exchanges_20270208 0208-" {
		t.Errorf("partitions %v", names)
	}

	// Nobody made any for months: the newest has taken everything, and gets its end now.
	b.now = time.Date(2027, 6, 1, 10, 0, 0, 0, time.UTC)
	late := exchange(b.now)
	b.record(t, late)
	rate("exchanges_20270208", 5_000_000, 100)
	b.keep(t, 0)
	if names := b.names(t); names[len(names)-2] != "exchanges_20270208 0208-0609" || b.where(t)[late.ID] != "exchanges_20270208" {
		t.Errorf("partitions %v, the late one in %s", names, b.where(t)[late.ID])
	}
	if b.where(t)[far.ID] != "exchanges_20270609" || len(b.where(t)) != 5 {
		t.Errorf("exchanges %v", b.where(t))
	}
	if sum := b.text(t, "SELECT sum(exchanges)::text FROM rollups_now WHERE NOT part AND minutes = 1440"); sum != "5" {
		t.Errorf("%s exchanges are counted, want 5: what moves is counted again", sum)
	}
}

// S27: a partition of more than a moment's reading is looked at while exchanges are recorded, and given its end
// after that without another look; ids beyond the end, of a clock far ahead, move all the same.
func TestLargePartitionsGetTheirEnd(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	for name, stray := range map[string]bool{"as clocks are": false, "a clock far ahead": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.now = time.Now()
			dbtest.FillExchanges(t, b.owner, b.workspace, 12_000)
			if stray {
				b.record(t, exchange(b.now.AddDate(20, 0, 0)))
			}
			if done := b.keep(t, partitions.LeastDays); len(done.Made) != 1 {
				t.Fatalf("did %+v", done)
			}
			list, err := partitions.List(t.Context(), b.owner.Query)
			if err != nil || len(list) != 2 || list[0].Size < 8<<20 {
				t.Fatalf("partitions %+v (%v)", list, err)
			}
			counts := b.text(t, "SELECT string_agg(n::text, ' ' ORDER BY n DESC) FROM (SELECT count(*) AS n FROM exchanges GROUP BY tableoid) c")
			if want := map[bool]string{false: "12000", true: "12000 1"}[stray]; counts != want {
				t.Errorf("partitions hold %s, want %s", counts, want)
			}
			if left := b.text(t, "SELECT count(*)::text FROM pg_constraint WHERE conname = 'exchanges_end'"); left != "0" {
				t.Errorf("%s promises are left, which would refuse exchanges one day", left)
			}
		})
	}
}

// S27: what a killed pass has promised of the newest partition would refuse exchanges one day.
func TestAPromiseOfAKilledPassIsTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, "ALTER TABLE exchanges_first ADD CONSTRAINT exchanges_end CHECK (id < '"+partitions.First(b.now).String()+"')")
	b.keep(t, 0)
	b.record(t, exchange(b.now))
}

// S27: recorders wait behind a statement that waits for their table: a quarter of a second, and it is tried again.
func TestRecordersDoNotWaitForPartitions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reader, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := reader.Exec(t.Context(), "SELECT count(*) FROM exchanges"); err != nil { // a page or a backup that takes long
		t.Fatal(err)
	}
	keeper, waits := b.keeper(partitions.LeastDays), 0
	again := keeper.After
	keeper.After = func(span time.Duration) <-chan time.Time {
		waits++
		b.record(t, exchange(b.now)) // recorders do not wait while it pauses
		if waits == 2 {
			if err := reader.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return again(span)
	}
	if done, err := keeper.Keep(t.Context()); err != nil || len(done.Made) != 1 || waits != 2 {
		t.Errorf("did %+v after %d waits (%v)", done, waits, err)
	}
	if count := len(b.where(t)); count != 2 {
		t.Errorf("%d exchanges are recorded, want 2", count)
	}
}

// S27: a recorder takes the table of workspaces before that of exchanges, as the job does, so that neither waits for
// the other in a circle.
func TestRecordersTakeTablesInTheOrderOfTheJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	job, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = job.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := job.Exec(t.Context(), "LOCK TABLE workspaces IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	recorded := make(chan error, 1)
	go func() {
		recorded <- b.DB.Exchanges.RecordExchanges(context.WithoutCancel(t.Context()), b.workspace, []tenants.Exchange{exchange(b.now)})
	}()
	// Databases of other tests have the same ids of tables.
	const waiting = " FROM pg_locks waits WHERE NOT waits.granted AND waits.relation = 'workspaces'::regclass AND waits.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	faulttest.Until(t, "the recorder waits for workspaces", func() bool { return b.text(t, "SELECT count(*)::text"+waiting) == "1" })
	if has := b.text(t, "SELECT count(*)::text FROM pg_locks WHERE granted AND relation = 'exchanges'::regclass AND pid IN (SELECT waits.pid"+waiting+")"); has != "0" {
		t.Error("a recorder that waits for workspaces has the exchanges")
	}
	if err := job.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-recorded; err != nil {
		t.Error(err)
	}
}

// S27: of replicas that keep partitions at once one does.
func TestOneOfSeveralReplicasKeepsPartitions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	var made []string
	for range 4 {
		group.Go(func() {
			done, err := b.keeper(partitions.LeastDays).Keep(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			made = append(made, done.Made...)
		})
	}
	group.Wait()
	if len(made) != 1 || len(b.names(t)) != 2 {
		t.Errorf("made %v, partitions %v", made, b.names(t))
	}
}

// The database and the program know the same first id of a time; the database leaves a day for clocks that disagree.
func TestFirstIDsAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, at := range []time.Time{b.now, time.Date(2026, 11, 26, 23, 59, 59, 999_000_000, time.UTC), time.Unix(1, 0), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if first, want := b.text(t, "SELECT first_exchange_id($1)::text", at), partitions.First(at.Add(-24*time.Hour)).String(); first != want {
			t.Errorf("%s: %s, want %s", at, first, want)
		}
	}
}

// partsSQL lists what a partition has, as all partitions together have it.
const partsSQL = `SELECT c.relname || ': ' || what FROM pg_class c CROSS JOIN LATERAL (
	SELECT 'index ' || coalesce(p.relname, '') || CASE WHEN NOT x.indisvalid THEN ' invalid' ELSE '' END AS what FROM pg_index x LEFT JOIN pg_inherits h ON h.inhrelid = x.indexrelid LEFT JOIN pg_class p ON p.oid = h.inhparent WHERE x.indrelid = c.oid
	UNION ALL SELECT 'constraint ' || pg_get_constraintdef(n.oid) || CASE WHEN n.conparentid = 0 AND c.relispartition THEN ' of its own' ELSE '' END FROM pg_constraint n WHERE n.conrelid = c.oid
	UNION ALL SELECT 'column ' || concat_ws(' ', a.attname, a.attnotnull, a.attstorage, a.attstattarget) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
	UNION ALL SELECT 'right of ' || g.grantee::regrole FROM aclexplode(c.relacl) g WHERE g.grantee <> c.relowner AND c.relispartition
	UNION ALL SELECT 'right of ' || g.grantee::regrole FROM pg_attribute a, aclexplode(a.attacl) g WHERE a.attrelid = c.oid AND c.relispartition
	UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal AND c.relispartition
	UNION ALL SELECT 'row-level security' WHERE c.relrowsecurity AND c.relispartition
	UNION ALL SELECT 'owner ' || c.relowner::regrole
) w WHERE c.oid = 'exchanges'::regclass OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'exchanges'::regclass) ORDER BY 1`

// S1: each partition, whenever it was made, has the indexes, keys and columns of all together, and nobody but
// the owner reaches it past the policies of all together.
func TestPartitionsHaveWhatTheTableHas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 40 { // one is made, gets its end, and is replaced
		b.keep(t, partitions.LeastDays)
		b.record(t, exchange(b.now))
		b.now = b.now.AddDate(0, 0, 7)
	}
	rows, err := b.owner.Query(t.Context(), partsSQL)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	has := map[string][]string{}
	for _, line := range lines {
		name, what, _ := strings.Cut(line, ": ")
		if name == "exchanges" && strings.HasPrefix(what, "index ") {
			continue // of which those of partitions are
		}
		has[name] = append(has[name], what)
	}
	indexes := strings.Split(b.text(t, "SELECT string_agg('index ' || relname, ',' ORDER BY relname) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'exchanges'::regclass"), ",")
	want := slices.Concat(has["exchanges"], indexes)
	slices.Sort(want)
	if len(has) < 4 || len(indexes) < 10 || len(want) < 60 {
		t.Fatalf("%d partitions, %d indexes, %d things: the test does not see them", len(has)-1, len(indexes), len(want))
	}
	for name, found := range has {
		slices.Sort(found)
		if name != "exchanges" && !slices.Equal(found, want) {
			t.Errorf("%s has\n%s\nwant\n%s", name, strings.Join(found, "\n"), strings.Join(want, "\n"))
		}
	}
	app, err := pgx.Connect(t.Context(), b.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Close(context.WithoutCancel(t.Context())) }()
	for name := range has {
		var count int
		err := app.QueryRow(t.Context(), "SELECT count(*) FROM "+name).Scan(&count)
		if name == "exchanges" && (err != nil || count != 0) || name != "exchanges" && err == nil {
			t.Errorf("without a workspace the application reads %d exchanges of %s (%v)", count, name, err)
		}
	}
}
