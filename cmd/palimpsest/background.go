package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/proxysettings"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/web/live"
)

// keyFlush is how often the API keys' times of last use are written.
const keyFlush = 30 * time.Second

// changes holds the parts to notify when another replica changes something.
type changes struct {
	people   *identity.Service
	keys     *identity.Keys
	settings *proxysettings.Cache
	archive  *archive.Keys
	lanes    *session.Resolver
	ahead    func() // reads recently used state
	patterns *patterns.Cache
	answers  *semanticcache.Cache
	pages    *live.Hub
	work     *jobsdb.Runner
}

// hear returns a listener that drops changed entries from memory once it is started. After a gap in which
// it may have missed a change, it drops everything.
func hear(b base, changes changes) *tenantsdb.Listener {
	listener := b.db.NewListener(b.Log)
	listener.Handle(tenantsdb.LoginsChannel, func(string) { changes.people.Forget() }, changes.people.Forget)
	listener.Handle(tenantsdb.KeysChannel, changes.keys.Changed, changes.keys.Forget)
	listener.Handle(tenantsdb.SettingsChannel, func(workspace string) {
		if id, err := tenants.ParseWorkspaceID(workspace); err == nil {
			changes.settings.Forget(id)
		}
	}, changes.settings.ForgetAll)
	listener.Handle(tenantsdb.DeletedChannel, func(workspace string) {
		if id, err := tenants.ParseWorkspaceID(workspace); err == nil {
			changes.archive.Forget(id)
		}
	}, func() {})
	listener.Handle(patternsdb.Channel, func(workspace string) {
		if id, err := tenants.ParseWorkspaceID(workspace); err == nil {
			changes.patterns.Forget(id)
		}
	}, changes.patterns.ForgetAll)
	erased := func() { changes.answers.Forget(); changes.patterns.ForgetAll() }
	listener.Handle(sessiondb.UsersChannel, func(string) { erased() }, erased)
	listener.Handle(tenantsdb.ExchangesChannel, changes.pages.Told, changes.pages.Missed)
	for channel, kinds := range map[string][]jobs.Kind{tenantsdb.ExchangesChannel: {"index", "archive"}, tenantsdb.MailsChannel: {"mail"}} {
		listener.Handle(channel, func(string) { changes.work.Wake(kinds...) }, func() { changes.work.Wake(kinds...) })
	}
	listener.Handle(tenantsdb.LoginsChannel, func(string) { changes.pages.Recheck() }, changes.pages.Recheck)
	listener.Handle(sessiondb.Channel, ofLane(changes.lanes.Compacted), func() { changes.lanes.Missed(); changes.ahead() })
	for channel, changed := range map[string]func(lane uuid.UUID, number int){
		sessiondb.InsertChannel: changes.lanes.InsertsChanged, sessiondb.PlanChannel: changes.lanes.PlanChanged, sessiondb.SummaryChannel: changes.lanes.SummaryChanged,
	} {
		listener.Handle(channel, ofLane(func(_ tenants.WorkspaceID, lane uuid.UUID, number int) { changed(lane, number) }), changes.lanes.Missed)
	}
	b.OnClose(listener.Stop)
	return listener
}

// ofLane returns a function that parses a notice about a lane, "workspace/lane/number".
func ofLane(changed func(workspace tenants.WorkspaceID, lane uuid.UUID, number int)) func(payload string) {
	return func(payload string) {
		parts := strings.Split(payload, "/")
		if len(parts) != 3 {
			return
		}
		workspace, workspaceErr := tenants.ParseWorkspaceID(parts[0])
		lane, laneErr := uuid.Parse(parts[1])
		number, numberErr := strconv.Atoi(parts[2])
		if errors.Join(workspaceErr, laneErr, numberErr) == nil {
			changed(workspace, lane, number)
		}
	}
}
