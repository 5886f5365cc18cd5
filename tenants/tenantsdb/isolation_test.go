package tenantsdb_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// S2: with nobody set, no table shows a row and none takes one.
func TestNoTableIsOpenWithoutATenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fill(t, b)
	tables := columns(t, b.database.Owner(t))
	if len(tables) < 10 {
		t.Fatalf("%d tables: the test does not see the schema", len(tables))
	}

	for table, column := range tables {
		var all, seen int
		count := "SELECT count(*) FROM " + table
		if err := b.database.Owner(t).QueryRow(t.Context(), count).Scan(&all); err != nil {
			t.Fatal(err)
		}
		if all == 0 {
			t.Errorf("%s is empty: the test proves nothing", table)
		}
		if err := b.Pool().QueryRow(t.Context(), count).Scan(&seen); err != nil && !isRefused(err) || seen != 0 {
			t.Errorf("%s shows %d of %d rows without a tenant (%v)", table, seen, all, err)
		}
		for _, statement := range []string{"UPDATE " + table + " SET " + column + " = " + column, "DELETE FROM " + table} {
			if tag, err := b.Pool().Exec(t.Context(), statement); err != nil && !isRefused(err) || tag.RowsAffected() != 0 {
				t.Errorf("%s: %s, %v", statement, tag, err)
			}
		}
		if slices.Contains(queues(), table) {
			continue
		}
		// A copy of a whole row, so that nothing but the policy can refuse it.
		refused(t, b, table)
	}
}

// S2: for one tenant, no table shows, changes or takes a row of another.
func TestNoTableIsOpenToAnotherTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fill(t, b)
	stranger, other := b.signUp(t, "eve@example.com")

	for table, column := range columns(t, b.database.Owner(t)) {
		err := b.InTenant(t.Context(), other, func(tx *gorm.DB) error {
			// As someone who is logged in, too.
			if err := tx.Exec("SELECT set_config('app.user_id', ?, true)", stranger.ID.String()).Error; err != nil {
				return err
			}
			var seen int
			where := " WHERE " + column + " IN ('" + b.workspace.String() + "', '" + b.user.ID.String() + "')"
			read := func(tx *gorm.DB) error { return tx.Raw("SELECT count(*) FROM " + table + where).Scan(&seen).Error }
			if err := tx.Transaction(read); err != nil && !isRefused(err) {
				return err
			}
			if seen != 0 {
				t.Errorf("%s shows %d rows of another tenant", table, seen)
			}
			err := tx.Transaction(func(tx *gorm.DB) error {
				changed := tx.Exec("UPDATE " + table + " SET " + column + " = " + column + where)
				if changed.RowsAffected != 0 {
					t.Errorf("%s: %d rows of another tenant changed", table, changed.RowsAffected)
				}
				return changed.Error
			})
			if err != nil && !isRefused(err) { // of what is only added to
				t.Errorf("%s: %v", table, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(queues(), table) {
			continue
		}
		planted, statement := row(t, b.database.Owner(t), table), insert(t, b.database.Owner(t), table)
		err = b.InTenant(t.Context(), other, func(tx *gorm.DB) error {
			return tx.Exec(statement, planted).Error
		})
		if !isRefused(err) {
			t.Errorf("%s takes a row of another tenant: %v, want 42501", table, err)
		}
	}
}

// S4: on a few connections, through commits, rollbacks and panics, nobody sees a
// foreign row.
func TestConcurrentTenantsNeverSeeEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	small, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: b.database.AppURL, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(small.Close)
	workspaces := make([]tenants.WorkspaceID, 5)
	for i := range workspaces {
		_, workspaces[i] = b.signUp(t, fmt.Sprintf("user%d@example.com", i))
		for range i + 1 {
			b.record(t, workspaces[i], b.exchange(now()))
		}
	}

	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() { visit(t, small, workspaces[i%len(workspaces)], i%len(workspaces)+1, i) })
	}
	group.Wait()

	for range 4 {
		var setting string
		if err := small.Pool().QueryRow(t.Context(), "SELECT coalesce(current_setting('app.workspace_id', true), '')").Scan(&setting); err != nil || setting != "" {
			t.Errorf("a connection came back working for %q (%v)", setting, err)
		}
	}
}

// visit reads all exchanges without a condition in a transaction for one
// workspace, and ends it in one of three ways.
func visit(t *testing.T, db *tenantsdb.DB, workspace tenants.WorkspaceID, want, turn int) {
	t.Helper()
	defer func() {
		if recovered := recover(); recovered != nil && recovered != "as planned" {
			panic(recovered)
		}
	}()
	errPlanned := errors.New("as planned")
	err := db.InTenant(context.Background(), workspace, func(tx *gorm.DB) error {
		var owners []tenants.WorkspaceID
		if err := tx.Raw("SELECT workspace_id FROM exchanges").Scan(&owners).Error; err != nil {
			return err
		}
		if len(owners) != want {
			t.Errorf("%d rows, want %d", len(owners), want)
		}
		for _, owner := range owners {
			if owner != workspace {
				t.Errorf("%s sees a row of %s", workspace, owner)
			}
		}
		switch turn % 3 {
		case 1:
			return errPlanned
		case 2:
			panic("as planned")
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPlanned) {
		t.Error(err)
	}
}

func TestTransactionIsUndoneByAnErrorAndByAPanic(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rename := func(end func()) (err error) {
		defer func() {
			if recover() != nil {
				err = errors.New("panic")
			}
		}()
		return b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
			if err := tx.Exec("UPDATE workspaces SET name = 'renamed' WHERE workspace_id = ?", b.workspace).Error; err != nil {
				return err
			}
			end()
			return errors.New("error")
		})
	}

	for _, end := range []func(){func() {}, func() { panic("at once") }} {
		if err := rename(end); err == nil {
			t.Fatal("the transaction succeeded")
		}
		memberships, err := b.Workspaces.Memberships(t.Context(), b.user.ID)
		if err != nil || memberships[0].Workspace.Name == "renamed" {
			t.Errorf("the change stayed: %+v (%v)", memberships, err)
		}
	}
}

func TestLoginThatIsNotBoundIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)

	if _, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: b.database.OwnerURL}); !errors.Is(err, tenantsdb.ErrUnbound) {
		t.Fatalf("the owner's login: %v, want ErrUnbound", err)
	}
	if _, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: b.database.WorkerURL}); !errors.Is(err, tenantsdb.ErrUnbound) {
		t.Fatalf("worker login as app login: %v, want ErrUnbound", err)
	}
	for _, wrong := range []string{b.database.AppURL, b.database.OwnerURL} {
		if _, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: b.database.AppURL, WorkerURL: wrong}); !errors.Is(err, tenantsdb.ErrNoWorker) {
			t.Fatalf("wrong worker login: %v, want ErrNoWorker", err)
		}
	}
	if _, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: "postgres://u:secret@["}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Fatalf("no URL: %v", err)
	}
}

// Before Connect has seen that the logins are bound nothing is done, even on a database that answers.
func TestDatabaseIsAwayUntilItsLoginsAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	unbound, err := tenantsdb.New(tenantsdb.Config{URL: b.database.OwnerURL, WorkerURL: b.database.WorkerURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unbound.Close)
	bound, err := tenantsdb.New(tenantsdb.Config{URL: b.database.AppURL, WorkerURL: b.database.WorkerURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bound.Close)
	isAway := func(db *tenantsdb.DB) bool {
		_, asTenant := db.Workspaces.Memberships(t.Context(), b.user.ID)
		_, asWorker := db.Workspaces.AllWorkspaces(t.Context())
		return errors.Is(asTenant, tenants.ErrAway) && errors.Is(asWorker, tenants.ErrAway) && db.Ping(t.Context()) != nil
	}
	if !isAway(bound) || !isAway(unbound) {
		t.Error("something is done before Connect")
	}
	for range 2 {
		if err := unbound.Connect(t.Context()); !errors.Is(err, tenantsdb.ErrUnbound) || !isAway(unbound) {
			t.Errorf("the owner's login: %v, want ErrUnbound and that nothing is done", err)
		}
		if err := bound.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if memberships, err := bound.Workspaces.Memberships(t.Context(), b.user.ID); err != nil || len(memberships) == 0 || bound.Ping(t.Context()) != nil {
		t.Errorf("after Connect: %v, %v", memberships, err)
	}
}

// A setting of a session, unlike one of a transaction, stays with the connection
// and meets the next tenant.
func TestNothingSetsATenantForAWholeSession(t *testing.T) {
	t.Parallel()
	session := regexp.MustCompile(`(?i)set_config\s*\([^)]*,\s*false\s*\)|\bSET\s+(SESSION\s+)?"?app\.`)
	for _, banned := range []string{"set_config('app.workspace_id', $1, false)", "SET app.workspace_id = 'x'", "set session app.user_id TO 'x'"} {
		if !session.MatchString(banned) {
			t.Errorf("the test does not find %s", banned)
		}
	}
	files := 0
	tree := os.DirFS("../..")
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && (entry.Name() == "node_modules" || entry.Name() == "data" || strings.HasPrefix(entry.Name(), ".git")) {
				return fs.SkipDir
			}
			return err
		}
		if extension := filepath.Ext(path); extension != ".go" && extension != ".sql" || filepath.Base(path) == "isolation_test.go" {
			return nil
		}
		content, err := fs.ReadFile(tree, path)
		files++
		for _, found := range session.FindAll(content, -1) {
			t.Errorf("%s: %s", path, found)
		}
		return err
	})
	if err != nil || files < 50 {
		t.Fatalf("read %d files (%v)", files, err)
	}
}

// fill puts a row of the bundle's workspace into every table.
func fill(t *testing.T, b bundle) {
	t.Helper()
	b.logIn(t, 1<<40)
	b.addKey(t, b.workspace)
	b.addProviderKey(t, b.workspace, "anthropic")
	tagged := func() tenants.Exchange {
		exchange := b.exchange(now())
		exchange.Request.Tags = tenants.Tags{"team": "search"}
		return exchange
	}
	b.record(t, b.workspace, tagged())
	b.fold(t)
	b.record(t, b.workspace, tagged()) // not folded yet
	session, lane := uuid.New(), uuid.New()
	owner := b.database.Owner(t)
	for _, statement := range []string{
		"INSERT INTO pipeline_configs (workspace_id, version, saved_by) VALUES ($1, 1, $2)",
		"INSERT INTO exchange_tags (workspace_id, tag, at, exchange_id) VALUES ($1, 't=v', now(), $2)",
		"INSERT INTO model_windows (workspace_id, model, window_tokens, source) VALUES ($1, 'm', 1000, 'learnt')",
		"INSERT INTO data_keys (workspace_id, wrapped) VALUES ($1, 'w')",
		"INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at) VALUES ($1, $2, $2, 'anthropic', 'header', 'today', 'today')",
		"INSERT INTO session_words (workspace_id, word, session_id, api_key_id) VALUES ($1, 'word', $2, $2)",
		"INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at) VALUES ($1, $3, $2, 'today', 'today')",
		"INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at) VALUES ($1, 'h', $3, 1, now())",
		"INSERT INTO epochs (workspace_id, lane_id, number, covers, chain, projection, reason, tokens_before, tokens_after) VALUES ($1, $3, 1, 1, 'c', 'p', 'r', 1, 1)",
		"INSERT INTO lane_inserts (workspace_id, lane_id, number, message, chain, module, text, tokens) VALUES ($1, $3, 1, 0, 'c', 'patterns', 't', 1)",
		"INSERT INTO lane_plans (workspace_id, lane_id, sent_at, due_at, outline) VALUES ($1, $3, now(), current_timestamp, 'o')",
		`INSERT INTO patterns (workspace_id, id, kind, text, words, status, source, created_at, edited_at, last_seen)
			VALUES ($1, $2, 'fix', 't', 'w', 'approved', 'mined', now(), current_timestamp, 'today')`,
		"INSERT INTO pattern_evidence (workspace_id, pattern_id, lane_id, message, session_id, hash, at) VALUES ($1, $2, $3, 0, $2, 'h', now())",
		"INSERT INTO pattern_uses (workspace_id, pattern_id, lane_id, outcome, at) VALUES ($1, $2, $3, 'success', now())",
		"INSERT INTO pattern_lanes (workspace_id, lane_id, last_at) VALUES ($1, $3, now())",
		"INSERT INTO lane_pins (workspace_id, lane_id, message, pinned_by) VALUES ($1, $3, 0, $2)",
		"INSERT INTO joined_lanes (workspace_id, lane_id, into_id) VALUES ($1, $2, $3)",
		"INSERT INTO session_stars (workspace_id, user_id, session_id) SELECT workspace_id, user_id, $2 FROM members WHERE workspace_id = $1",
		"INSERT INTO session_comments (workspace_id, id, session_id, text) VALUES ($1, $2, $2, 't')",
		"INSERT INTO session_scores (workspace_id, id, session_id, score, note) VALUES ($1, $2, $2, 1, 'n')",
		"INSERT INTO session_labels (workspace_id, session_id, label) VALUES ($1, $2, 'l')",
		`INSERT INTO summaries (workspace_id, lane_id, number, session_id, covers, chain, status, version, form, model,
			input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd)
			VALUES ($1, $3, 1, $2, 1, 'c', 'accepted', 1, 'own', 'm', 1, 1, 1, 1, 1)`,
		"INSERT INTO cached_answers (workspace_id, key, model, content_type, question, answer, size, cost_microusd, created_at, expires_at) VALUES ($1, 'k', 'm', 'c', 'q', 'a', 1, 1, now(), now())",
		"INSERT INTO archive_objects (workspace_id, hash, size, encoding, bytes) VALUES ($1, 'h', 1, 0, 'x')",
		"INSERT INTO archive_entries (workspace_id, lane_id, index, session_id, hash, role, tokens) VALUES ($1, $3, 0, $2, 'h', 'user', 1)",
		`INSERT INTO archive_documents (workspace_id, lane_id, first, part, after, session_id, api_key_id, at, sampled, terms)
			VALUES ($1, $3, 0, 0, 1, $2, $2, now(), 2, '{4}')`,
		"INSERT INTO archive_vectors (workspace_id, lane_id, first, part, after, model, vector) VALUES ($1, $3, 0, 0, 1, 'm', 'v')",
		"INSERT INTO archive_unindexed (workspace_id, lane_id) VALUES ($1, $3)",
		"INSERT INTO archive_indexed (workspace_id, lane_id, position) VALUES ($1, $3, 1)",
		"INSERT INTO archive_segments (workspace_id, id, dead_since, retired_at) VALUES ($1, $2, now(), now())",
		"INSERT INTO archive_movers (workspace_id, until) VALUES ($1, now())",
		"INSERT INTO end_users (workspace_id, id) VALUES ($1, 'hash')",
		`INSERT INTO device_logins (device_hash, code_hash, machine, asked_from, asked_at, expires_at, pause_seconds, user_id, workspace_id)
			SELECT 'h', 'c', 'm', 'a', now(), now() + interval '5 minutes', 5, user_id, workspace_id FROM members WHERE workspace_id = $1`,
		"INSERT INTO redaction_counts (workspace_id, kind, found) VALUES ($1, 'email', 1)",
		"INSERT INTO browser_origins (workspace_id, origin) VALUES ($1, 'https://a.example')",
		"INSERT INTO billing_accounts (workspace_id, customer) VALUES ($1, 'cus_1')",
		"INSERT INTO billing_events (workspace_id, id, event, type, received_at) VALUES ($1, $2, 'evt_1', 'invoice.paid', now())",
		"INSERT INTO meter_events (workspace_id, id, customer, at, exchanges) VALUES ($1, $2, 'cus_1', now(), 1)",
		"INSERT INTO suspensions (workspace_id, reason) VALUES ($1, 'r')",
		"INSERT INTO master_proof (sealed) VALUES ('p')",
		"INSERT INTO mails (id, recipient, subject, body) VALUES ($1, 'a', 's', 't')",
		"INSERT INTO subscription_ends (id, customer, asked_at, next_at) VALUES ($1, 'cus_2', now(), now())",
		"INSERT INTO account_requests (id, kind, email) VALUES ($1, 'reset', 'a')",
		"INSERT INTO invitations (workspace_id, id, email, role, hash, created_at, sent_at, expires_at) VALUES ($1, $2, 'a', 'member', 'h', now(), current_timestamp, 'today')",
		"INSERT INTO views (workspace_id, id, user_id, list, name, query) SELECT workspace_id, $2, user_id, 'sessions', 'n', 'q' FROM members WHERE workspace_id = $1",
		`INSERT INTO trigger_advice (workspace_id, made_at, since, trigger, sessions, has_more, received, verbatim, other_verbatim, cost, other_cost)
			VALUES ($1, now(), current_timestamp, 'window', 5, false, 1, 1, 1, 1, 1)`,
		"INSERT INTO alert_settings (workspace_id, quiet_from, quiet_to, time_zone, error_percent) VALUES ($1, 1, 2, 'UTC', 3)",
		"INSERT INTO alert_channels (workspace_id, id, kind, name, place, rules) VALUES ($1, $2, 'email', 'n', '', 'budget')",
		"INSERT INTO alert_marks (workspace_id, rule, subject, period, at) VALUES ($1, 'budget', 's', 'p', now())",
		`INSERT INTO alert_deliveries (workspace_id, id, channel_id, rule, subject, title, body, path, created_at, next_at, until, state)
			VALUES ($1, $2, $2, 'budget', 's', 't', 'b', '/', now(), current_timestamp, 'today', 'waiting')`,
		"INSERT INTO sign_ons (workspace_id, issuer, client_id, sealed, role) VALUES ($1, 'i', 'c', 's', 'member')",
		"INSERT INTO sign_on_domains (workspace_id, domain, token) VALUES ($1, 'd', 't')",
		"INSERT INTO second_factors (user_id, sealed, created_at) SELECT user_id, 's', now() FROM members WHERE workspace_id = $1",
		"INSERT INTO recovery_codes (user_id, hash) SELECT user_id, 'h' FROM members WHERE workspace_id = $1",
		`INSERT INTO passkeys (user_id, id, name, credential, public_key, sign_count, backup_eligible, backed_up, created_at)
			SELECT user_id, $2, 'n', 'c', 'k', 1, true, false, now() FROM members WHERE workspace_id = $1`,
		"INSERT INTO passkey_challenges (user_id, hash, used_at) SELECT user_id, 'h', now() FROM members WHERE workspace_id = $1",
		"INSERT INTO user_tokens (hash, kind, user_id, email, expires_at) SELECT 'h', 'reset', user_id, 'a', now() FROM members WHERE workspace_id = $1",
	} {
		// Each parameter has its type whether a statement uses it or not.
		statement = "WITH given AS (SELECT $1::uuid, $2::uuid, $3::uuid) " + statement
		if _, err := owner.Exec(t.Context(), statement, b.workspace, session, lane); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// columns returns every table with the column that says whose a row is.
func columns(t *testing.T, owner *pgxpool.Pool) map[string]string {
	t.Helper()
	rows, err := owner.Query(t.Context(), `SELECT relname FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'goose_db_version'`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	tables := make(map[string]string, len(names))
	for _, name := range names {
		tables[name] = "workspace_id"
	}
	tables["users"], tables["logins"], tables["user_tokens"] = "id", "user_id", "user_id"
	tables["operators"], tables["operator_entries"] = "user_id", "id"
	tables["second_factors"], tables["recovery_codes"] = "user_id", "user_id"
	tables["passkeys"], tables["passkey_challenges"] = "user_id", "user_id"
	tables["mails"], tables["account_requests"], tables["subscription_ends"] = "id", "id", "id"
	tables["master_proof"] = "sealed"
	return tables
}

// row returns a row of a table as JSON.
func row(t *testing.T, owner *pgxpool.Pool, table string) string {
	t.Helper()
	var planted string
	if err := owner.QueryRow(t.Context(), "SELECT row_to_json(r)::text FROM "+table+" r LIMIT 1").Scan(&planted); err != nil {
		t.Fatalf("row of %s: %v", table, err)
	}
	return planted
}

// queues are the tables that requests can only insert into; the worker login empties them.
func queues() []string { return []string{"mails", "account_requests"} }

// insert returns the statement that inserts a row of a table, but for what the database
// generates.
func insert(t *testing.T, owner *pgxpool.Pool, table string) string {
	t.Helper()
	var written string
	if err := owner.QueryRow(t.Context(), `SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`, table).Scan(&written); err != nil {
		t.Fatalf("columns of %s: %v", table, err)
	}
	return "INSERT INTO " + table + " (" + written + ") SELECT " + written + " FROM json_populate_record(NULL::" + table + ", ?::json)"
}

func refused(t *testing.T, b bundle, table string) {
	t.Helper()
	owner := b.database.Owner(t)
	_, err := b.Pool().Exec(t.Context(), strings.Replace(insert(t, owner, table), "?", "$1", 1), row(t, owner, table))
	if !isRefused(err) {
		t.Errorf("%s takes a row without a tenant: %v, want 42501", table, err)
	}
}

// isRefused reports whether row-level security refused a statement.
func isRefused(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == "42501"
}
