package main

import (
	"context"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api"
	"palimpsest/api/alerts"
	"palimpsest/api/manage"
	"palimpsest/api/proxysettings"
	"palimpsest/billing"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/tenants/deletion"
	"palimpsest/tenants/identity"
	"palimpsest/web"
	"palimpsest/web/live"
)

// product holds the dependencies of the JSON API and the dashboard.
type product struct {
	base
	stored
	proxying
	people   *identity.Service
	keys     *identity.Keys
	mails    func(context.Context) ([]tenants.WaitingMail, error) // unsent mails; nil if mails are sent
	deleting *deletion.Service
	sold     *billing.Service
	preview  *preview.Preview
	advice   *previewdb.Store
	alerting *alerts.Service
	again    api.Resender
	pages    *live.Hub // notifies open pages
}

// serve adds the JSON API and the dashboard to e, according to the process's role.
func (p product) serve(e *echo.Echo) {
	if p.Config.Serving.Role == settings.RoleWorker {
		return
	}
	credentials, invitations := newCredentials(p.base, p.keys, p.provider), identity.NewInvitations(p.people, p.db.Invitations, p.Reachable())
	signOn, devices := newSignOn(p.base, p.people), newDevices(p.base, p.people, credentials)
	reads := p.db.Reader()
	costs := sessiondb.New(reads, p.archiveKeys).Browser()
	api := manage.Config{
		Defaults: p.Defaults(), Codecs: formats.ByFormat(),
		People: manage.People{
			Identity: admittingPeople{p.people}, Cookies: tenants.NewCookies(p.Reachable()), Keys: admittingKeys{p.keys}, Members: p.people.Workspaces(),
			Invitations: invitations, Operators: p.db.Operators, SignOn: signOn, Devices: devices,
		},
		Gateway: manage.Gateway{
			APIKeys: credentials, ProviderKeys: credentials, Pipelines: p.db.Pipelines, ModelWindows: p.db.ModelWindows, Patterns: p.learned, Previews: p.preview,
		},
		Conversations: manage.Conversations{
			Sessions: p.sessions.Browser(), Archive: p.originals, ArchiveKeys: p.archiveKeys, Searcher: p.index, Stars: p.db.Stars,
			Comments: p.db.Comments,
		},
		Traffic:        manage.Traffic{Costs: costs, Exchanges: reads.Exchanges, Usage: reads.Usage, Views: p.db.Views, Alerts: p.alerting},
		Administration: manage.Administration{Workspaces: p.people.Workspaces(), Data: p.db.Data, Audit: p.db.Audit, Deletion: p.deleting, Billing: p.sold},
		Version:        version(), Log: p.Log, Now: p.Now,
	}
	manage.Register(e.Group("/api/v1"), api)
	if !p.Config.Serving.Role.Shows() {
		return
	}
	web.New(web.Config{
		PublicURL: p.Reachable(), Defaults: p.Defaults(), Codecs: formats.ByFormat(), Log: p.Log, Now: p.Now, Contact: p.Config.Accounts.OperatorContact, Demo: p.Config.Demos.Demo, PublicDemo: p.Config.Demos.PublicDemo,
		MailToken: p.MailToken, Version: version(),
	}, web.Deps{
		People: web.People{
			Identity: admittingPeople{p.people}, Members: p.people.Workspaces(), Invitations: invitations, SignOn: signOn,
			Passkeys: newPasskeys(p.base, p.people), Devices: devices, Visitor: p.visitor(),
		},
		Gateway: web.Gateway{
			APIKeys: credentials, ProviderKeys: credentials, Pipelines: p.db.Pipelines, Preview: p.preview, TriggerAdvice: p.advice,
			ModelWindows: p.db.ModelWindows, Patterns: p.learned,
		},
		Traffic: web.Traffic{
			Usage: reads.Usage, Costs: costs, Exchanges: reads.Exchanges, Alerts: p.alerting,
			Resend: p.again.Send, Models: p.writer.Models, Prices: p.settings.Overrides,
		},
		Conversations: web.Conversations{
			Sessions: p.sessions.Browser(), Archive: p.originals, ArchiveKeys: p.archiveKeys, Searcher: p.index, Stars: p.db.Stars,
			Comments: p.db.Comments,
		},
		Installation: web.Installation{Mails: p.mails, Operator: p.db.Operators, Health: p.health.parts.NewChecks, LatestHealth: p.health.parts.LatestChecks},
		Administration: web.Administration{
			Workspaces: p.people.Workspaces(), Data: p.db.Data, Audit: p.db.Audit, Deletion: p.deleting,
			ImportConfig: manage.NewConfigurations(api).Import, Billing: p.sold,
		},
		Live: p.pages,
	}).Register(e)
}

// settingsIn returns a function that reads a workspace's pipeline from the database.
func settingsIn(b base) func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error) {
	return func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error) {
		saved, err := b.db.Pipelines.Pipeline(ctx, workspace)
		if err != nil {
			return pipeline.Config{}, err
		}
		config, _, err := modules.Catalog().Resolve(b.Defaults(), pipeline.WorkspaceLayer(saved.Modules, saved.YAML))
		return config, err
	}
}

// advise schedules the replay of recent sessions with the other trigger. It returns the preview service and
// the store of its results.
func advise(b base, sessions *sessiondb.Store, models *tokens.Models, settings *proxysettings.Cache) (*preview.Preview, *previewdb.Store) {
	prices := func(ctx context.Context, workspace tenants.WorkspaceID) (tokens.Overrides, error) {
		return settings.Overrides(ctx, workspace, uuid.Nil)
	}
	compares, store := preview.New(sessions.Browser(), models).WithPrices(prices), previewdb.New(b.db)
	advisor := preview.Advisor{Preview: compares, Store: store, Workspaces: b.db.Workspaces.AllWorkspaces, Settings: settingsIn(b), Now: b.Now}
	b.work.Every("trigger_advice", preview.AdviceEvery, preview.AdviceTimeout, advisor.Pass)
	return compares, store
}
