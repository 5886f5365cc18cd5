package manage_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/archive/export"
	"palimpsest/tenants"
)

// S31: the export holds everything, opens without us, and its hashes match.
func TestEverythingIsExportedAndVerifies(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, b := p.tenant(t, "ant"), p.tenant(t, "zebra")
	a.send(t, http.MethodPost, "/invitations", `{"email":"invited@corp.example","role":"viewer"}`).want(t, http.StatusCreated)
	signOn := tenants.SignOn{Issuer: "https://login.example", ClientID: "client-of-ant", Sealed: []byte(canaryKey), Role: tenants.Viewer}
	if err := errors.Join(p.db.DB.SignOn.SaveSignOn(tenants.WithActor(t.Context(), tenants.Actor{User: uuid.MustParse(a.userID(t))}), a.workspace, signOn), p.db.DB.Accounts.VerifyUser(t.Context(), uuid.MustParse(a.userID(t)))); err != nil {
		t.Fatal(err)
	}
	channel := tenants.AlertChannel{ID: uuid.New(), Kind: tenants.AlertWebhook, Name: "on call of ant", Sealed: []byte(canaryKey), Rules: tenants.AlertRules(), CreatedAt: time.Now()}
	if err := p.db.DB.Alerts.AddAlertChannel(t.Context(), a.workspace, channel); err != nil {
		t.Fatal(err)
	}
	a.send(t, http.MethodPost, a.path("/compact"), `{"instructions":"keep the tests"}`).want(t, http.StatusAccepted)
	for _, user := range []string{a.userID(t), a.viewer} { // each has their own; the export has both
		const save = "INSERT INTO views (workspace_id, id, user_id, list, name, query) VALUES ($1, $2, $3, 'sessions', $4, 'range=7d')" // of an earlier version
		if _, err := p.db.Owner(t).Exec(t.Context(), save, a.workspace, uuid.New(), user, "of "+user); err != nil {
			t.Fatal(err)
		}
	}
	answer := a.send(t, http.MethodGet, "/export", "")
	answer.want(t, http.StatusOK)
	totals, err := export.VerifyBundle(bytes.NewReader(answer.body), func(fault export.Fault) { t.Error(fault) })
	if err != nil || totals.Sessions != 1 || totals.Messages != len(a.messages) {
		t.Fatalf("%+v, %v", totals, err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(bytes.NewReader(answer.body)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
	for name, part := range map[string]string{
		"workspace.json": "ant@example.com", "api_keys.json": a.keyID, "provider_keys.json": a.providerKey, "pipeline.json": "targetUtilization",
		"model_windows.json": "64000", "patterns.ndjson": a.pattern, "audit.ndjson": string(tenants.PatternAdded), "usage.ndjson": a.request.String(),
		"sessions/" + a.session.String() + ".ndjson": "question 3 of ant", "manifest.json": "sha256",
	} {
		if !strings.Contains(files[name], part) {
			t.Errorf("%s does not hold %q: %.300s", name, part, files[name])
		}
	}
	for name, parts := range map[string][]string{
		"workspace.json":  {`"name": "ant"`, "invited@corp.example", "client-of-ant", `"name": "on call of ant"`, `"verified_at": "20`},
		"stars.ndjson":    {`{"user":"` + a.userID(t) + `","session":"` + a.session.String() + `","starred_at":"20`},
		"comments.ndjson": {`"author":"` + a.userID(t) + `","author_email":"ant@example.com","text":"Look at this."`},
		"views.ndjson":    {`"name":"of ` + a.userID(t), `"user":"` + a.viewer, `"query":"range=7d"`},
		"sessions/" + a.session.String() + ".ndjson": {`"type":"pin"`, `"message":1,"pinned_by":"` + a.userID(t), `"type":"order"`, "keep the tests"},
	} {
		for _, part := range parts {
			if !strings.Contains(files[name], part) {
				t.Errorf("%s does not hold %s: %s", name, part, files[name])
			}
		}
	}
	for _, secret := range []string{canaryKey, a.manage, a.read, b.workspace.String(), b.session.String(), "zebra"} {
		if bytes.Contains(answer.body, []byte(secret)) {
			t.Errorf("the export holds %s", secret)
		}
	}
	// Who may not read everything does not take everything away.
	a.setPolicy(t, tenants.ReadsOwn, tenants.ReadsOwn, tenants.ReadsNone)
	a.send(t, http.MethodGet, "/export", "").want(t, http.StatusForbidden)
}

// S31: of each table it is known where the export has what it holds, or why not.
func TestEveryTableIsExportedOrLeftOutForAReason(t *testing.T) {
	t.Parallel()
	const (
		derived = "made of what is exported"
		worked  = "what work waits or was done, nothing of the workspace's own"
		secret  = "opens or proves what is exported, and is no use to anybody else"
		stripes = "at Stripe, which keeps the customer and the invoices"
	)
	known := map[string]string{
		"workspaces": "workspace.json", "members": "workspace.json", "invitations": "workspace.json", "sign_ons": "workspace.json", "sign_on_domains": "workspace.json",
		"api_keys": "api_keys.json", "provider_keys": "provider_keys.json", "pipeline_configs": "pipeline.json", "model_windows": "model_windows.json",
		"session_stars": "stars.ndjson", "session_comments": "comments.ndjson", "session_scores": "scores.ndjson", "session_labels": "labels.ndjson",
		"patterns": "patterns.ndjson", "views": "views.ndjson", "audit_entries": "audit.ndjson", "suspensions": "audit.ndjson",
		"exchanges": "usage.ndjson", "exchange_tags": "usage.ndjson",
		"sessions": "sessions/", "lanes": "sessions/", "archive_entries": "sessions/", "archive_objects": "sessions/", "end_users": "sessions/", "epochs": "sessions/", "lane_pins": "sessions/",

		"browser_origins": derived, "rollups": derived, "usage_meter": derived, "rollup_deltas": derived, "tag_sums": derived, "tag_sum_deltas": derived, "usage_meter_deltas": derived, "session_words": derived, "lane_heads": derived, "archive_documents": derived, "archive_vectors": derived,
		"cached_answers": derived, "lane_inserts": derived, "summaries": derived, "pattern_evidence": derived, "pattern_uses": derived,
		"trigger_advice": derived, "redaction_counts": "counts of what no message has any more",
		"alert_channels": "workspace.json", "alert_settings": "workspace.json", "alert_marks": worked, "alert_deliveries": worked,
		"lane_plans": worked, "joined_lanes": worked, "pattern_lanes": worked, "archive_indexed": worked, "archive_unindexed": worked, "archive_segments": worked, "archive_movers": worked, "meter_events": worked, "billing_events": worked,
		"data_keys": secret, "logins": secret, "device_logins": secret, "billing_accounts": stripes,
	}
	rows, err := setup(t).db.Owner(t).Query(t.Context(), `SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if known[table] == "" {
			t.Errorf("nobody says where the export has %s", table)
		}
		delete(known, table)
	}
	if len(known) > 0 {
		t.Errorf("there are no such tables: %v", known)
	}
}

// S31
func TestAWorkspaceIsDeletedByItsOwnerWithNameAndPassword(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, b := p.tenant(t, "ant"), p.tenant(t, "bee")
	admin := a.colleague(t, tenants.Admin)
	before := p.db.Rows(t, b.workspace)
	right := fmt.Sprintf(`{"name":"ant","password":%q}`, password)
	admin.send(t, http.MethodDelete, "/workspace", right).want(t, http.StatusForbidden)
	a.sendWith(t, a.manage, http.MethodDelete, "/workspace", right).want(t, http.StatusForbidden)
	for field, body := range map[string]string{
		"name":     fmt.Sprintf(`{"name":"bee","password":%q}`, password),
		"password": `{"name":"ant","password":"another one"}`,
	} {
		answer := a.send(t, http.MethodDelete, "/workspace", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if answer.field(t) != field {
			t.Errorf("%s: the field is %s", body, answer.field(t))
		}
	}
	a.send(t, http.MethodGet, "/me", "").want(t, http.StatusOK)
	a.send(t, http.MethodDelete, "/workspace", right).want(t, http.StatusAccepted)
	p.forget(a.workspace)
	for _, answer := range []reply{
		a.send(t, http.MethodGet, "/me", ""), admin.send(t, http.MethodGet, "/sessions", ""),
		a.sendWith(t, a.manage, http.MethodGet, "/sessions", ""), a.sendWith(t, a.read, http.MethodGet, "/sessions", ""),
	} {
		answer.want(t, http.StatusUnauthorized)
	}
	if after := p.db.Rows(t, b.workspace); after != before {
		t.Errorf("the other workspace has changed:\n%s\nwas:\n%s", after, before)
	}
}
