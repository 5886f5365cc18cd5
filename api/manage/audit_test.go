package manage_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// audited returns how many entries a workspace has, and the newest one's action.
func (w *tenant) audited(t *testing.T) (count int, newest tenants.Action) {
	t.Helper()
	entries, err := w.db.DB.Audit.Audit(t.Context(), w.workspace, tenants.AuditFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		newest = entries[0].Action
	}
	return len(entries), newest
}

// actions has an entry for every route that changes something or takes text away: what
// it writes into the audit log; empty if none.
func actions() map[string]tenants.Action {
	return map[string]tenants.Action{
		"POST /keys": tenants.KeyCreated, "DELETE /keys/:id": tenants.KeyRevoked,
		"POST /provider-keys": tenants.ProviderKeyAdded, "DELETE /provider-keys/:id": tenants.ProviderKeyRemoved,
		"POST /provider-keys/:id/test": "", // it changes nothing
		"PATCH /keys/:id":              tenants.KeyChanged, "POST /keys/:id/rotate": tenants.KeyRotated,
		"PATCH /provider-keys/:id": tenants.ProviderKeyChanged, "POST /provider-keys/:id/replace": tenants.ProviderKeyReplaced,
		"PATCH /members/:id": tenants.MemberRoleChanged, "DELETE /members/:id": tenants.MemberRemoved,
		"POST /members": tenants.InvitationCreated, "POST /invitations": tenants.InvitationCreated,
		"POST /invitations/:id/resend": tenants.InvitationResent, "DELETE /invitations/:id": tenants.InvitationRevoked,
		"PATCH /workspaces/:id": tenants.WorkspaceRenamed,
		"PUT /pipeline":         tenants.PipelineSaved, "POST /pipeline/preview": "",
		"PUT /budgets":               tenants.BudgetsSet,
		"PUT /models/prices":         tenants.ModelPricesSet,
		"PUT /models/limits":         tenants.ModelLimitsSet,
		"PUT /models/windows/:model": tenants.ModelWindowSet, "DELETE /models/windows/:model": tenants.ModelWindowRemoved,
		"POST /patterns": tenants.PatternAdded, "PATCH /patterns/:id": tenants.PatternChanged, "DELETE /patterns/:id": tenants.PatternDeleted,
		"DELETE /users/:id": tenants.EndUserErased, "DELETE /sessions/:id": tenants.SessionDeleted, "POST /sessions/:id/compact": tenants.CompactAsked,
		"PUT /sessions/:id/pin": tenants.SessionPinned, "DELETE /sessions/:id/pin": tenants.SessionUnpinned,
		"POST /sessions/:id/pins": tenants.PinAdded, "DELETE /sessions/:id/pins/:message": tenants.PinRemoved,
		"PUT /sessions/:id/score": tenants.SessionScored, "DELETE /sessions/:id/score": tenants.SessionScored,
		"PUT /sessions/:id/labels/:label": tenants.SessionLabeled, "DELETE /sessions/:id/labels/:label": tenants.SessionLabeled,
		"POST /sessions/:id/comments": tenants.CommentAdded, "DELETE /sessions/:id/comments/:comment": tenants.CommentDeleted,
		"PUT /sessions/:id/star": "", "DELETE /sessions/:id/star": "", // the caller's own, like a view
		"POST /config/import": tenants.ConfigImported,
		"PUT /retention":      tenants.RetentionSet, "PUT /settings": tenants.SettingsSaved,
		"PUT /alerts":  tenants.AlertsSaved,
		"PUT /sign-on": tenants.SignOnSaved, "POST /sign-on/domains": tenants.DomainClaimed,
		"POST /sign-on/domains/:domain/prove": tenants.DomainProven, "DELETE /sign-on/domains/:domain": tenants.DomainRemoved,
		"GET /sessions/export":     tenants.SessionExported,
		"GET /sessions/:id/export": tenants.SessionExported, "GET /export": tenants.WorkspaceExported, "GET /audit.csv": tenants.AuditDownloaded,
	}
}

// S32: every route that changes something writes one row, and so does every one that
// takes text away; those that change nothing write none. A new route without a row
// here, or without a row in the log, fails.
func TestEveryMutatingRouteIsAudited(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a := p.tenant(t, "ant")
	a.judge(t)
	actions := actions()
	reaches := reaches()
	order := routes(a.echo)
	slices.SortStableFunc(order, func(x, y string) int { return deletes(x) - deletes(y) })
	for _, route := range order {
		try := reaches[route]
		if _, listed := actions[route]; try.public || try.own || try.person || try.people && !listed || try.runs { // what people and operators alone do, and the deletion, have tests of their own
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		if try.path != nil {
			path = try.path(a)
		}
		before, _ := a.audited(t)
		answer := a.send(t, method, path, try.body)
		if answer.status >= http.StatusBadRequest {
			t.Fatalf("%s: status %d: %s", route, answer.status, answer.body)
		}
		after, newest := a.audited(t)
		want, changes := actions[route]
		switch {
		case !changes && method != http.MethodGet:
			t.Errorf("%s changes something and is not in the table", route)
		case changes && want == "" && after != before:
			t.Errorf("%s wrote %s, want nothing", route, newest)
		case changes && want == "":
		case !changes && after != before:
			t.Errorf("%s wrote %s", route, newest)
		case changes && (after != before+max(try.rows, 1) || newest != want):
			t.Errorf("%s wrote %d rows, the newest %s; want %d, %s", route, after-before, newest, max(try.rows, 1), want)
		}
		delete(actions, route)
	}
	for route := range actions {
		t.Errorf("%s: no such route", route)
	}
}

// S32: the entry is written in the transaction of the change: where it cannot be, there
// is no change, and no text is given away.
func TestWhatCannotBeNotedIsNotDone(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a := p.tenant(t, "ant")
	a.judge(t)
	a.send(t, http.MethodGet, "/me", "").want(t, http.StatusOK) // notes when someone was there
	for _, statement := range []string{
		`CREATE FUNCTION full_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the log is full'; END $$`,
		`CREATE TRIGGER full_log BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION full_log()`,
	} {
		if _, err := p.db.Owner(t).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	before := p.db.Rows(t, a.workspace)
	reaches := reaches()
	for route, action := range actions() {
		if action == "" {
			continue
		}
		try := reaches[route]
		method, path, _ := strings.Cut(route, " ")
		if try.path != nil {
			path = try.path(a)
		}
		answer := a.send(t, method, path, try.body)
		if answer.status != http.StatusInternalServerError || strings.Contains(string(answer.body), "question") {
			t.Errorf("%s: status %d: %.300s", route, answer.status, answer.body)
		}
		if after := p.db.Rows(t, a.workspace); after != before {
			t.Errorf("%s has changed the workspace:\n%s\nwas:\n%s", route, after, before)
			before = after
		}
	}
}

// S32: what was refused is not noted.
func TestWhatARouteRefusesIsNotAudited(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, b := p.tenant(t, "ant"), p.tenant(t, "bee")
	before, _ := a.audited(t)
	for route, try := range reaches() {
		method, _, _ := strings.Cut(route, " ")
		if try.path == nil || try.public {
			continue
		}
		a.send(t, method, try.path(b), try.body)
	}
	a.send(t, http.MethodPut, "/retention", `{"days":-1}`).want(t, http.StatusUnprocessableEntity)
	a.send(t, http.MethodPut, "/settings", `{"time_zone":"x"}`).want(t, http.StatusUnprocessableEntity)
	if after, newest := a.audited(t); after != before {
		t.Errorf("%d rows more, the newest %s", after-before, newest)
	}
}

func TestTheAuditIsFilteredPagedAndDownloaded(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a := p.tenant(t, "ant")
	for _, days := range []string{"10", "20", "30"} {
		a.send(t, http.MethodPut, "/retention", `{"days":`+days+`}`).want(t, http.StatusOK)
	}
	a.sendWith(t, a.manage, http.MethodPut, "/retention", `{"days":40}`).want(t, http.StatusOK)
	type entry struct {
		Action string
		Actor  struct {
			Name   string
			User   string
			APIKey string `json:"api_key"`
		}
		Before, After map[string]string
	}
	var page struct {
		Data []entry
		Next *string `json:"next_cursor"`
	}
	var days []string
	for path := "/audit?action=retention.set&limit=3"; ; {
		page.Next = nil
		answer := a.send(t, http.MethodGet, path, "")
		answer.want(t, http.StatusOK)
		answer.decode(t, &page)
		for _, one := range page.Data {
			days = append(days, one.Before["days"]+"-"+one.After["days"])
		}
		if page.Next == nil {
			break
		}
		path = "/audit?action=retention.set&limit=3&cursor=" + *page.Next
	}
	if !slices.Equal(days, []string{"30-40", "20-30", "10-20", "0-10"}) {
		t.Errorf("paged through %v", days)
	}
	a.send(t, http.MethodGet, "/audit?action=retention&actor="+a.keyID, "").decode(t, &page)
	if len(page.Data) != 1 || page.Data[0].Actor.APIKey != a.keyID {
		t.Errorf("of the key: %+v", page.Data)
	}
	for _, answer := range []reply{
		a.send(t, http.MethodGet, "/audit?action=retention.set", "", "Accept", "text/csv"),
		a.send(t, http.MethodGet, "/audit.csv?action=retention.set", ""),
	} {
		answer.want(t, http.StatusOK)
		rows, err := csv.NewReader(strings.NewReader(string(answer.body))).ReadAll()
		if err != nil || len(rows) != 5 || rows[1][8] != `{"days":"40"}` || !strings.HasPrefix(answer.header.Get(echo.HeaderContentType), "text/csv") {
			t.Errorf("%v: %v", err, rows)
		}
	}
	for query, logins := range map[string]bool{"": true, "?except=login": false} {
		csv := string(a.send(t, http.MethodGet, "/audit.csv"+query, "").body)
		list := string(a.send(t, http.MethodGet, "/audit"+query, "").body)
		if strings.Contains(csv, "login.opened") != logins || strings.Contains(list, "login.opened") != logins || !strings.Contains(csv, "retention.set") {
			t.Errorf("/audit%s holds logins: want %v\n%s\n%s", query, logins, csv, list)
		}
	}
	for _, query := range []string{"?cursor=x", "?from=x", "?nobody=1"} {
		a.send(t, http.MethodGet, "/audit"+query, "").want(t, http.StatusUnprocessableEntity)
	}
}

// S32, S14: the log of a workspace with one of everything holds no secret and nothing
// of what was said.
func TestTheAuditHoldsNoSecretAndNothingThatWasSaid(t *testing.T) {
	t.Parallel()
	a := setup(t).tenant(t, "ant")
	a.send(t, http.MethodPost, a.path("/compact"), `{"instructions":"Keep the question."}`).want(t, http.StatusAccepted)
	entries, err := a.db.DB.Audit.Audit(t.Context(), a.workspace, tenants.AuditFilter{Limit: 1000})
	if err != nil || len(entries) < 8 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	all, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{canaryKey, a.manage, a.read, "question", "Keep the", "pnpm"} {
		if strings.Contains(string(all), secret) {
			t.Errorf("the audit log holds %q", secret)
		}
	}
}
