package web_test

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// audited says what a form writes into the audit log.
type audited struct {
	path   string
	typed  []string
	action tenants.Action // empty: it changes nothing of the workspace
}

// auditedForms has an entry for every form, filled in for a tenant.
func auditedForms(own *tenant, providerURL string) map[string]audited {
	own.Post("/sessions/" + own.session + "/pin-session")          // only a pinned session can be released
	own.Post("/sessions/"+own.session+"/labels", "label", "found") // only a label that is there can be removed
	return map[string]audited{
		"POST /signup": {}, "POST /login": {}, "POST /theme": {}, // of nobody
		"POST /logout":             {}, // ends the login that the test works with: tenantsdb tests it
		"POST /providers/:id/test": {path: "/providers/" + own.provider + "/test"},
		"POST /keys":               {path: "/keys", typed: []string{"name", "another", "expiry", ""}, action: tenants.KeyCreated},
		"POST /device/check":       {}, "POST /device/decide": {}, // the key is made when the terminal asks for it: TestTerminalLogsInAndOut
		"POST /keys/:id/revoke":      {path: "/keys/" + own.key + "/revoke", typed: []string{"confirm", "laptop"}, action: tenants.KeyRevoked},
		"POST /providers":            {path: "/providers", typed: []string{"provider", "openai", "name", "another", "key", "sk-another-key", "base_url", providerURL}, action: tenants.ProviderKeyAdded},
		"POST /providers/:id/remove": {path: "/providers/" + own.provider + "/remove", typed: []string{"name", "anthropic-prod"}, action: tenants.ProviderKeyRemoved},
		"POST /members/invite":       {path: "/members/invite", typed: []string{"email", "another@example.com", "role", "viewer"}, action: tenants.InvitationCreated},
		"POST /members/:id/role":     {path: "/members/" + own.viewer + "/role", typed: []string{"role", "member"}, action: tenants.MemberRoleChanged},
		"POST /workspaces/rename":    {path: "/workspaces/rename", typed: []string{"workspace", "another name"}, action: tenants.WorkspaceRenamed},

		// The table of the JSON API has what these do with the same stores.
		"POST /keys/:id/edit": {}, "POST /keys/:id/rotate": {}, "POST /providers/:id/edit": {}, "POST /providers/:id/replace": {},
		"POST /members/:id/remove": {}, "POST /members/invitations/:id/resend": {}, "POST /members/invitations/:id/revoke": {},
		"POST /settings/sign-on": {}, "POST /settings/sign-on/remove": {}, "POST /settings/import": {},
		"POST /settings/sign-on/domains": {}, "POST /settings/sign-on/domains/prove": {}, "POST /settings/sign-on/domains/remove": {},

		"POST /pipeline/history/:version/restore": {}, // needs two versions: web/pipelines tests it

		// What people do with their account and where they belong, and what Stripe is
		// asked for: tenants/identity, passkey, tenantsdb and billing test what is noted of it.
		"POST /account/password": {}, "POST /account/email": {}, "POST /account/verification": {},
		"POST /account/logins/end": {}, "POST /account/logins/:id/end": {}, "POST /account/delete": {},
		"POST /reset": {}, "POST /reset/new": {}, "POST /verify": {}, "POST /verify/confirm": {},
		"POST /workspaces": {}, "POST /workspaces/:id/enter": {}, "POST /workspaces/leave": {},
		"POST /invite/:secret": {}, "POST /invite/:secret/signup": {},
		"POST /billing/checkout": {}, "POST /billing/portal": {},
		"POST /account/passkeys": {}, "POST /account/passkeys/new": {}, "POST /account/passkeys/recovery-codes": {},
		"POST /account/passkeys/:id/rename": {}, "POST /account/passkeys/:id/remove": {},
		"POST /login/code": {}, "POST /account/second-factor/start": {}, "POST /account/second-factor/confirm": {},
		"POST /account/second-factor/remove": {}, "POST /account/second-factor/recovery-codes": {},

		// What is asked of someone who logs in, and what operators do: tenants/passkey and
		// tenantsdb test what is noted of it.
		"POST /login/sign-on": {}, "POST /login/passkey/options": {}, "POST /login/passkey": {}, "POST /login/code/passkey/options": {}, "POST /login/code/passkey": {},
		"POST /operator/workspaces/:id/suspend": {}, "POST /operator/workspaces/:id/resume": {},

		"POST /patterns":             {path: "/patterns", typed: []string{"kind", "directive", "text", "Never push to the release branch."}, action: tenants.PatternAdded},
		"POST /patterns/:id/approve": {path: "/patterns/" + own.Learn("Use bun for scripts.").ID.String() + "/approve", action: tenants.PatternChanged},
		"POST /patterns/:id/disable": {path: "/patterns/" + own.Learn("Use make for builds.").ID.String() + "/disable", action: tenants.PatternChanged},
		"POST /patterns/:id/edit":    {path: "/patterns/" + own.rule + "/edit", typed: []string{"text", "Ants are fed at noon.", "version", "1"}, action: tenants.PatternChanged},
		"POST /patterns/:id/delete":  {path: "/patterns/" + own.Learn("Use zsh for shells.").ID.String() + "/delete", action: tenants.PatternDeleted},

		"POST /pipeline/preview":             {path: "/pipeline/preview", typed: own.Get("/pipeline").Form("form[data-tuning]", "ipc.targetUtilization", "0.61")},
		"POST /pipeline/preview/csv":         {path: "/pipeline/preview/csv", typed: own.Get("/pipeline").Form("form[data-tuning]", "ipc.targetUtilization", "0.61")},
		"POST /pipeline":                     {path: "/pipeline", typed: own.Get("/pipeline").Form("form[data-tuning]", "ipc.targetUtilization", "0.61"), action: tenants.PipelineSaved},
		"POST /pipeline/windows":             {path: "/pipeline/windows", typed: []string{"model", "ours-1", "window_tokens", "64000"}, action: tenants.ModelWindowSet},
		"POST /pipeline/windows/remove":      {path: "/pipeline/windows/remove", typed: []string{"model", "ours-0"}, action: tenants.ModelWindowRemoved},
		"POST /sessions/:id/pin":             {path: "/sessions/" + own.session + "/pin", typed: []string{"m", "0"}, action: tenants.PinAdded},
		"POST /sessions/:id/pin-session":     {path: "/sessions/" + own.session + "/pin-session", action: tenants.SessionPinned},
		"POST /sessions/:id/release-session": {path: "/sessions/" + own.session + "/release-session", action: tenants.SessionUnpinned},
		"POST /sessions/:id/restore":         {path: "/sessions/" + own.session + "/restore", typed: []string{"m", "0"}, action: tenants.PinAdded},
		"POST /sessions/:id/compact":         {path: "/sessions/" + own.session + "/compact", typed: []string{"instructions", "keep the names"}, action: tenants.CompactAsked},
		"POST /sessions/:id/release":         {path: "/sessions/" + own.session + "/release", typed: []string{"m", "4711"}},       // refused: no such pin
		"POST /sessions/:id/delete":          {path: "/sessions/" + own.session + "/delete", typed: []string{"confirm", "wrong"}}, // refused

		// What someone looks at is theirs, like their theme: nothing of the workspace changes.
		"POST /overview/choose":                 {}, // web/overview has the row
		"POST /overview/trigger-advice/dismiss": {path: "/overview/trigger-advice/dismiss"},

		"POST /sessions/:id/star":                     {path: "/sessions/" + own.session + "/star", typed: []string{"starred", "true"}}, // the person's own, like a view
		"POST /sessions/:id/score":                    {path: "/sessions/" + own.session + "/score", typed: []string{"score", "1"}, action: tenants.SessionScored},
		"POST /sessions/:id/labels":                   {path: "/sessions/" + own.session + "/labels", typed: []string{"label", "good"}, action: tenants.SessionLabeled},
		"POST /sessions/:id/labels/remove":            {path: "/sessions/" + own.session + "/labels/remove", typed: []string{"label", "found"}, action: tenants.SessionLabeled},
		"POST /sessions/:id/comments":                 {path: "/sessions/" + own.session + "/comments", typed: []string{"text", "Look at this."}, action: tenants.CommentAdded},
		"POST /sessions/:id/comments/:comment/delete": {path: "/sessions/" + own.session + "/comments/" + own.comment + "/delete", action: tenants.CommentDeleted},

		"POST /requests/:id/again": {path: "/requests/" + own.request + "/again", typed: []string{"key", own.key}, action: tenants.RequestSentAgain},

		"POST /settings": {path: "/settings", typed: []string{"time_zone", "Europe/Berlin", "managers_read", "all", "members_read", "all", "viewers_read", "all"},
			action: tenants.SettingsSaved},
		"POST /sessions/delete":        {path: "/sessions/delete", typed: []string{"id", own.session, "confirm", "delete 1"}, action: tenants.SessionDeleted},
		"POST /sessions/erase":         {path: "/sessions/erase", typed: []string{"end_user", strings.Repeat("ab", 16), "confirm", "erase abababab"}, action: tenants.EndUserErased},
		"POST /settings/budgets":       {path: "/settings/budgets", typed: []string{"whose", "workspace", "budget_day_usd", "5"}, action: tenants.BudgetsSet},
		"POST /settings/prices":        {path: "/settings/prices", typed: []string{"model", "ours-1", "input", "1", "output", "2"}, action: tenants.ModelPricesSet},
		"POST /settings/prices/remove": {path: "/settings/prices/remove", typed: []string{"model", "ours-1", "provider_key_id", "00000000-0000-0000-0000-000000000000"}, action: tenants.ModelPricesSet},
		"POST /settings/limits":        {path: "/settings/limits", typed: []string{"limit_model", "ours-1", "output_tokens", "4000"}, action: tenants.ModelLimitsSet},
		"POST /settings/limits/remove": {path: "/settings/limits/remove", typed: []string{"model", "ours-1", "provider_key_id", "00000000-0000-0000-0000-000000000000"}, action: tenants.ModelLimitsSet},
		"POST /settings/retention":     {path: "/settings/retention", typed: []string{"days", "30"}, action: tenants.RetentionSet},
		"POST /settings/alerts": {path: "/settings/alerts", typed: []string{"quiet_from", "22:00", "quiet_to", "07:00", "time_zone", "Europe/Berlin", "error_percent", "30", "spend_percent", "300", "slow_seconds", "120", "held_percent", "25"},
			action: tenants.AlertsSaved},
		"POST /settings/alerts/channels": {path: "/settings/alerts/channels", typed: []string{"kind", "slack", "name", "ops", "url", providerURL, "rules", "budget", "on", "yes"},
			action: tenants.AlertChannelAdded},
		"POST /settings/alerts/channels/:id": {path: "/settings/alerts/channels/" + own.channel, typed: []string{"name", "renamed", "user", own.User.ID.String(), "rules", "budget", "rules", "access"},
			action: tenants.AlertChannelChanged},
		"POST /settings/alerts/channels/:id/test":    {path: "/settings/alerts/channels/" + own.channel + "/test"},
		"POST /settings/alerts/channels/:id/remove":  {path: "/settings/alerts/channels/" + own.removed + "/remove", action: tenants.AlertChannelRemoved},
		"POST /settings/alerts/deliveries/:id/retry": {path: "/settings/alerts/deliveries/" + own.delivery + "/retry"},
		"POST /settings/delete":                      {path: "/settings/delete", typed: []string{"confirm", "another"}}, // refused; deleted, no log is left
	}
}

// S32: every form that changes something of a workspace writes one row, and what is
// refused writes none. A new form without a row here fails.
func TestEveryFormIsAudited(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	own := newTenant(t, product, "ant")
	own.Post("/pipeline/windows", "model", "ours-0", "window_tokens", "64000")
	forms := auditedForms(own, webtest.Provider(t, window).URL)
	noted := func() []tenants.AuditEntry {
		entries, err := product.DB.Audit.Audit(t.Context(), own.Workspace.ID, tenants.AuditFilter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	order := slices.Clone(product.Routes)
	ends := func(route *echo.Route) int {
		return strings.Count(route.Path, "delete") + strings.Count(route.Path, "revoke")
	} // what others need
	depth := func(route *echo.Route) int { return strings.Count(route.Path, "/") }
	slices.SortFunc(order, func(a, b *echo.Route) int { // a comment ends before its session
		return cmp.Or(ends(a)-ends(b), depth(b)-depth(a), strings.Compare(a.Path, b.Path))
	})
	for _, route := range order {
		name := route.Method + " " + route.Path
		form, listed := forms[name]
		if route.Method != http.MethodPost {
			continue
		}
		if !listed {
			t.Errorf("%s: this test does not say what it writes", name)
			continue
		}
		delete(forms, name)
		if form.path == "" {
			continue
		}
		before := noted()
		page := own.Post(form.path, form.typed...)
		after := noted()
		switch {
		case form.action == "" && len(after) != len(before):
			t.Errorf("%s wrote %s", name, after[0].Action)
		case form.action != "" && (len(after) != len(before)+1 || after[0].Action != form.action):
			t.Errorf("%s wrote %d rows, the newest %s; want %s (status %d)", name, len(after)-len(before), after[0].Action, form.action, page.Status)
		case form.action != "" && (after[0].Actor.Name != own.Email || after[0].Actor.From == ""):
			t.Errorf("%s: done by %+v", name, after[0].Actor)
		}
	}
	for name := range forms {
		t.Errorf("%s: no such form", name)
	}
}

// S32: the entry is written in the transaction of the change: where it cannot be, the
// form changes nothing.
func TestFormThatCannotBeNotedChangesNothing(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	own := newTenant(t, product, "ant")
	own.Post("/pipeline/windows", "model", "ours-0", "window_tokens", "64000")
	forms := auditedForms(own, webtest.Provider(t, window).URL)
	for _, statement := range []string{
		`CREATE FUNCTION full_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the log is full'; END $$`,
		`CREATE TRIGGER full_log BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION full_log()`,
	} {
		if _, err := product.Database.Owner(t).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	before := product.Database.Rows(t, own.Workspace.ID)
	for name, form := range forms {
		if form.action == "" {
			continue
		}
		if page := own.Post(form.path, form.typed...); page.Status != http.StatusInternalServerError {
			t.Errorf("%s: status %d", name, page.Status)
		}
		if after := product.Database.Rows(t, own.Workspace.ID); after != before {
			t.Errorf("%s has changed the workspace:\n%s\nwas:\n%s", name, after, before)
			before = after
		}
	}
}
