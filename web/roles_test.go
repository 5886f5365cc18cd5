package web_test

import (
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// reach says who may go through a route of the dashboard.
type reach struct {
	roles string // initials of owner, admin, member, viewer, billing; "" if everyone may, logged in or not
	// path is the route with ids of a workspace; nil for a route without.
	path  func(of *tenant) string
	typed []string // names and values of the form
	ends  bool     // the login that this test works with
	// streams: its answer has no end.
	streams bool
	// outside: also for people who belong to no workspace.
	outside bool
	// operates: there is no such page but for operators.
	operates bool
}

// reaches has an entry for every route.
func reaches() map[string]reach {
	session := func(of *tenant) string { return "/sessions/" + of.session }
	sessionAt := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return session(of) + "/" + action }
	}
	key := func(of *tenant) string { return "/keys/" + of.key + "/revoke" }
	login := func(of *tenant) string { return "/account/logins/" + of.login + "/end" }
	member := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/members/" + of.viewer + "/" + action }
	}
	invitation := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/members/invitations/" + of.invitation + "/" + action }
	}
	passkey := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/account/passkeys/" + of.passkey + "/" + action }
	}
	keyAt := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/keys/" + of.key + "/" + action }
	}
	rule := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/patterns/" + of.rule + action }
	}
	provider := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/providers/" + of.provider + "/" + action }
	}
	channel := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/settings/alerts/channels/" + of.channel + action }
	}
	operated := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/operator/workspaces/" + of.Workspace.ID.String() + "/" + action }
	}
	return map[string]reach{
		"GET /static/*": {}, "HEAD /static/*": {},
		"GET /": {}, "GET /docs": {}, "GET /docs/:page": {}, "GET /signup": {}, "POST /signup": {}, "GET /login": {}, "POST /login": {}, "POST /theme": {},

		"GET /reset": {}, "POST /reset": {}, "GET /reset/:secret": {}, "GET /reset/new": {}, "POST /reset/new": {},
		"GET /verify": {}, "POST /verify": {}, "GET /verify/:secret": {}, "GET /verify/confirm": {}, "POST /verify/confirm": {},
		"GET /dev/mail/:token": {},

		"GET /account":               {roles: "oamvb"},
		"POST /account/password":     {roles: "oamvb"},
		"POST /account/email":        {roles: "oamvb"},
		"POST /account/verification": {roles: "oamvb"},
		"POST /account/logins/end":   {roles: "oamvb", ends: true},
		"POST /account/delete":       {roles: "oamvb"},
		"GET /login/code":            {}, "POST /login/code": {},

		"POST /login/passkey/options": {}, "POST /login/passkey": {}, "POST /login/code/passkey/options": {}, "POST /login/code/passkey": {},

		"GET /account/passkeys":                 {roles: "oamvb", outside: true},
		"POST /account/passkeys":                {roles: "oamvb", outside: true},
		"GET /account/passkeys/new":             {roles: "oamvb", outside: true},
		"POST /account/passkeys/new":            {roles: "oamvb", outside: true},
		"POST /account/passkeys/recovery-codes": {roles: "oamvb", outside: true},
		"GET /account/passkeys/:id/rename":      {roles: "oamvb", outside: true, path: passkey("rename")},
		"POST /account/passkeys/:id/rename":     {roles: "oamvb", outside: true, path: passkey("rename"), typed: []string{"new_name", "mine"}},
		"GET /account/passkeys/:id/remove":      {roles: "oamvb", outside: true, path: passkey("remove")},
		"POST /account/passkeys/:id/remove":     {roles: "oamvb", outside: true, path: passkey("remove"), typed: []string{"remove_password", webtest.Password}},

		"GET /login/sign-on": {}, "POST /login/sign-on": {}, "GET /login/sign-on/callback": {},

		"GET /settings/sign-on":                 {roles: "o"},
		"POST /settings/sign-on":                {roles: "o"},
		"POST /settings/sign-on/remove":         {roles: "o"},
		"POST /settings/sign-on/domains":        {roles: "o"},
		"POST /settings/sign-on/domains/prove":  {roles: "o"},
		"POST /settings/sign-on/domains/remove": {roles: "o"},

		"GET /account/second-factor":                 {roles: "oamvb", outside: true},
		"POST /account/second-factor/start":          {roles: "oamvb", outside: true},
		"GET /account/second-factor/qr.svg":          {roles: "oamvb", outside: true},
		"POST /account/second-factor/confirm":        {roles: "oamvb", outside: true},
		"POST /account/second-factor/recovery-codes": {roles: "oamvb", outside: true},
		"POST /account/second-factor/remove":         {roles: "oamvb", outside: true},

		"POST /account/logins/:id/end": {roles: "oamvb", path: login},

		"POST /logout":                {roles: "oamvb", outside: true, ends: true},
		"GET /overview":               {roles: "oamvb"},
		"GET /overview/first-request": {roles: "oamvb"},
		"GET /overview/data.csv":      {roles: "oamvb"},
		"GET /spend":                  {roles: "oamvb"},
		"GET /spend/data.csv":         {roles: "oamvb"},
		"GET /spend/statement":        {roles: "oamvb"},

		"POST /overview/choose":                 {roles: "oa", typed: []string{"trigger", "window"}},
		"POST /overview/trigger-advice/dismiss": {roles: "oa"},

		"GET /more": {roles: "oamvb"},

		"GET /invite/:secret": {}, "POST /invite/:secret/signup": {},

		"POST /invite/:secret":       {roles: "oamvb", outside: true}, // and nobody's role lets them in
		"GET /workspaces":            {roles: "oamvb"},
		"GET /workspaces/new":        {roles: "oamvb", outside: true},
		"POST /workspaces":           {roles: "oamvb", outside: true},
		"POST /workspaces/:id/enter": {roles: "oamvb", outside: true, path: func(of *tenant) string { return "/workspaces/" + of.Workspace.ID.String() + "/enter" }},
		"GET /workspaces/rename":     {roles: "oa"},
		"POST /workspaces/rename":    {roles: "oa"},
		"GET /workspaces/leave":      {roles: "oamvb"},
		"POST /workspaces/leave":     {roles: "oamvb"},

		"GET /operator": {operates: true}, "GET /operator/csv": {operates: true}, "GET /operator/log/csv": {operates: true},

		"GET /operator/workspaces/:id/suspend":  {operates: true, path: operated("suspend")},
		"POST /operator/workspaces/:id/suspend": {operates: true, path: operated("suspend"), typed: []string{"reason", "why", "confirm", "zebra"}},
		"GET /operator/workspaces/:id/resume":   {operates: true, path: operated("resume")},
		"POST /operator/workspaces/:id/resume":  {operates: true, path: operated("resume"), typed: []string{"reason", "why", "confirm", "zebra"}},

		"GET /members":                         {roles: "oa"},
		"GET /members/csv":                     {roles: "oa"},
		"GET /members/invitations/csv":         {roles: "oa"},
		"GET /members/invite":                  {roles: "oa"},
		"POST /members/invite":                 {roles: "oa"},
		"POST /members/invitations/:id/resend": {roles: "oa", path: invitation("resend")},
		"POST /members/invitations/:id/revoke": {roles: "oa", path: invitation("revoke")},
		"GET /members/:id/role":                {roles: "oa", path: member("role")},
		"POST /members/:id/role":               {roles: "oa", path: member("role")},
		"GET /members/:id/remove":              {roles: "oa", path: member("remove")},
		"POST /members/:id/remove":             {roles: "oa", path: member("remove")},

		"GET /device":         {roles: "oamvb", outside: true}, // and each person's workspaces let them create keys, or not
		"POST /device/check":  {roles: "oamvb", outside: true},
		"POST /device/decide": {roles: "oamvb", outside: true},

		"GET /keys":             {roles: "oamv"},
		"GET /keys/csv":         {roles: "oamv"},
		"GET /keys/new":         {roles: "oam"},
		"POST /keys":            {roles: "oam"},
		"GET /keys/:id/use":     {roles: "oamv", path: keyAt("use")},
		"GET /keys/:id/edit":    {roles: "oam", path: keyAt("edit")},
		"POST /keys/:id/edit":   {roles: "oam", path: keyAt("edit")},
		"GET /keys/:id/rotate":  {roles: "oam", path: keyAt("rotate")},
		"POST /keys/:id/rotate": {roles: "oam", path: keyAt("rotate")},
		"GET /keys/:id/revoke":  {roles: "oam", path: key},
		"POST /keys/:id/revoke": {roles: "oam", path: key},

		"GET /providers":              {roles: "oamv"},
		"GET /providers/csv":          {roles: "oamv"},
		"GET /providers/new":          {roles: "oa"},
		"POST /providers":             {roles: "oa"},
		"POST /providers/:id/test":    {roles: "oa", path: provider("test")},
		"GET /providers/:id/edit":     {roles: "oa", path: provider("edit")},
		"POST /providers/:id/edit":    {roles: "oa", path: provider("edit")},
		"GET /providers/:id/replace":  {roles: "oa", path: provider("replace")},
		"POST /providers/:id/replace": {roles: "oa", path: provider("replace")},
		"GET /providers/:id/remove":   {roles: "oa", path: provider("remove")},
		"POST /providers/:id/remove":  {roles: "oa", path: provider("remove")},

		"GET /audit":                                 {roles: "oa"},
		"GET /settings":                              {roles: "oa"},
		"POST /settings":                             {roles: "oa"},
		"POST /settings/retention":                   {roles: "oa"},
		"POST /settings/budgets":                     {roles: "oa"},
		"POST /settings/prices":                      {roles: "oa"},
		"POST /settings/prices/remove":               {roles: "oa"},
		"POST /settings/limits":                      {roles: "oa"},
		"POST /settings/limits/remove":               {roles: "oa"},
		"GET /settings/import":                       {roles: "oa"},
		"POST /settings/import":                      {roles: "oa"},
		"GET /settings/alerts":                       {roles: "oa"},
		"POST /settings/alerts":                      {roles: "oa"},
		"GET /settings/alerts/channels/new":          {roles: "oa"},
		"POST /settings/alerts/channels":             {roles: "oa"},
		"GET /settings/alerts/channels/:id":          {roles: "oa", path: channel("")},
		"POST /settings/alerts/channels/:id":         {roles: "oa", path: channel("")},
		"POST /settings/alerts/channels/:id/test":    {roles: "oa", path: channel("/test")},
		"POST /settings/alerts/channels/:id/remove":  {roles: "oa", path: channel("/remove")},
		"POST /settings/alerts/deliveries/:id/retry": {roles: "oa", path: func(of *tenant) string { return "/settings/alerts/deliveries/" + of.delivery + "/retry" }},

		"GET /settings/delete":  {roles: "o"},
		"POST /settings/delete": {roles: "o"},

		"GET /billing":              {roles: "ob"},
		"GET /billing/invoices/csv": {roles: "ob"},
		"POST /billing/checkout":    {roles: "ob"},
		"POST /billing/portal":      {roles: "ob"},

		"GET /patterns":              {roles: "oamv"},
		"GET /patterns/csv":          {roles: "oamv"},
		"GET /patterns/new":          {roles: "oa"},
		"POST /patterns":             {roles: "oa"},
		"POST /patterns/:id/approve": {roles: "oa", path: rule("/approve")},
		"POST /patterns/:id/disable": {roles: "oa", path: rule("/disable")},
		"GET /patterns/:id/edit":     {roles: "oa", path: rule("/edit")},
		"POST /patterns/:id/edit":    {roles: "oa", path: rule("/edit")},
		"GET /patterns/:id/delete":   {roles: "oa", path: rule("/delete")},
		"POST /patterns/:id/delete":  {roles: "oa", path: rule("/delete")},

		"GET /jump": {roles: "oamvb"},
		"GET /live": {roles: "oamvb", streams: true}, // TestOpenStreamEndsWithItsReadersRights

		"GET /pipeline":              {roles: "oamv"},
		"POST /pipeline":             {roles: "oa"},
		"POST /pipeline/preview":     {roles: "oamv"},
		"POST /pipeline/preview/csv": {roles: "oamv"},

		"GET /pipeline/windows/csv":     {roles: "oamv"},
		"POST /pipeline/windows":        {roles: "oa"},
		"POST /pipeline/windows/remove": {roles: "oa"},

		// Every workspace counts its versions from 1: web/pipelines tests that they are its own.
		"GET /pipeline/history":                   {roles: "oamv"},
		"GET /pipeline/history/:version":          {roles: "oamv"},
		"GET /pipeline/history/:version/restore":  {roles: "oa"},
		"POST /pipeline/history/:version/restore": {roles: "oa"},
		"GET /pipeline/yaml":                      {roles: "oamv"},
		"GET /pipeline/yaml/pipeline.yaml":        {roles: "oamv"},

		"GET /sessions":            {roles: "oamv"},
		"GET /sessions/:id":        {roles: "oamv", path: session},
		"GET /sessions/csv":        {roles: "oamv"},
		"GET /sessions/delete":     {roles: "oa"},
		"POST /sessions/delete":    {roles: "oa"},
		"GET /sessions/erase":      {roles: "oa"},
		"POST /sessions/erase":     {roles: "oa"},
		"GET /requests":            {roles: "oamvb"},
		"GET /requests/:id":        {roles: "oamvb", path: func(of *tenant) string { return "/requests/" + of.request }},
		"GET /requests/compare":    {roles: "oamvb", path: func(of *tenant) string { return "/requests/compare?a=" + of.request }},
		"POST /requests/:id/again": {roles: "oamv", path: func(of *tenant) string { return "/requests/" + of.request + "/again" }},
		"GET /sessions/export":     {roles: "oamv"},

		"GET /sessions/:id/find":                      {roles: "oamv", path: sessionAt("find")},
		"GET /sessions/:id/continue":                  {roles: "oamv", path: sessionAt("continue")},
		"GET /sessions/:id/count":                     {roles: "oamv", path: sessionAt("count")},
		"GET /sessions/:id/requests.csv":              {roles: "oamv", path: sessionAt("requests.csv")},
		"GET /sessions/:id/epochs.csv":                {roles: "oamv", path: sessionAt("epochs.csv")},
		"GET /sessions/compare":                       {roles: "oamv", path: func(of *tenant) string { return "/sessions/compare?a=" + of.session }},
		"POST /sessions/:id/star":                     {roles: "oamv", path: sessionAt("star"), typed: []string{"starred", "true"}},
		"POST /sessions/:id/comments":                 {roles: "oam", path: sessionAt("comments"), typed: []string{"text", "Look."}},
		"POST /sessions/:id/comments/:comment/delete": {roles: "oam", path: func(of *tenant) string { return session(of) + "/comments/" + of.comment + "/delete" }},
		"POST /sessions/:id/score":                    {roles: "oam", path: sessionAt("score"), typed: []string{"score", "1"}},
		"POST /sessions/:id/labels":                   {roles: "oam", path: sessionAt("labels"), typed: []string{"label", "good"}},
		"POST /sessions/:id/labels/remove":            {roles: "oam", path: sessionAt("labels/remove"), typed: []string{"label", "good"}},
		"POST /sessions/:id/pin":                      {roles: "oam", path: sessionAt("pin")},
		"POST /sessions/:id/pin-session":              {roles: "oam", path: sessionAt("pin-session")},
		"POST /sessions/:id/release-session":          {roles: "oam", path: sessionAt("release-session")},
		"POST /sessions/:id/release":                  {roles: "oam", path: sessionAt("release")},
		"POST /sessions/:id/restore":                  {roles: "oam", path: sessionAt("restore")},
		"GET /sessions/:id/compact":                   {roles: "oam", path: sessionAt("compact")},
		"POST /sessions/:id/compact":                  {roles: "oam", path: sessionAt("compact")},
		"GET /sessions/:id/delete":                    {roles: "oa", path: sessionAt("delete")},
		"POST /sessions/:id/delete":                   {roles: "oa", path: sessionAt("delete")},
	}
}

// tenant is a workspace with one of everything.
type tenant struct {
	*webtest.Person

	name, session, request, key, provider, login, viewer, invitation, passkey, rule, channel, delivery, removed, comment string
}

func newTenant(t *testing.T, product *webtest.Product, name string) *tenant {
	t.Helper()
	owner := product.SignUp(t, name)
	owner.TalkOnce(owner.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"a question from `+name+`"},
			{"role":"assistant","content":"an answer"},{"role":"user","content":"another question"}]}`, claudeCode)
	exchanges, _, err := product.DB.Exchanges.Exchanges(tenants.OwnWork(t.Context()), owner.Workspace.ID, tenants.ExchangeFilter{})
	if err != nil || len(exchanges) != 1 {
		t.Fatalf("%d exchanges, %v", len(exchanges), err)
	}
	keys, err := product.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), owner.Workspace.ID)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	providers, err := product.DB.ProviderKeys.ProviderKeys(t.Context(), owner.Workspace.ID)
	if err != nil || len(providers) == 0 {
		t.Fatalf("%d provider keys, %v", len(providers), err)
	}
	logins, err := product.DB.Logins.Logins(t.Context(), owner.User.ID)
	if err != nil || len(logins) == 0 {
		t.Fatalf("%d logins, %v", len(logins), err)
	}
	owner.Post("/members/invite", "email", "pending-"+name+"@example.com", "role", "member")
	pending, err := product.DB.Invitations.Invitations(t.Context(), owner.Workspace.ID)
	if err != nil || len(pending) != 1 {
		t.Fatalf("%d invitations, %v", len(pending), err)
	}
	passkey := webtest.KeepPasskey(t, owner)
	channel, delivery := webtest.KeepAlerts(t, owner)
	removed, _ := webtest.KeepAlerts(t, owner)
	said := tenants.Comment{Session: owner.Newest().ID, Author: owner.User.ID, Text: "Of " + name + "."}
	comment, err := product.DB.Comments.AddComment(t.Context(), owner.Workspace.ID, said)
	if err != nil {
		t.Fatal(err)
	}
	return &tenant{
		name: name, comment: comment.ID.String(), channel: channel, delivery: delivery, removed: removed,
		Person: owner, passkey: passkey, request: exchanges[0].ID.String(), login: logins[0].ID.String(), session: owner.Newest().ID.String(), key: keys[0].ID.String(), provider: providers[0].ID.String(),
		viewer: owner.Colleague(tenants.Viewer).User.ID.String(), invitation: pending[0].ID.String(),
		rule: owner.Learn("Only " + name + "s are fed in the morning.").ID.String(),
	}
}
