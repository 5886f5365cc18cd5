package overview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

const (
	// soon is how long before its end a key in use needs attention.
	soon = 7 * day
	// used is how recently a key must have been used to count as in use.
	used = 7 * day
	// brusque is how shortly before its revocation a key must have been used so that clients probably still
	// hold it.
	brusque = day

	// Links to the settings that help if compression costs more than it saves, or if prompts stay above the
	// target.
	targetSetting = "ipc.targetUtilization"
	turnsSetting  = "ipc.preserveLastTurns"

	triggerSetting = "ipc.trigger"
	scopeSetting   = "rehydrator.scope"
)

// item is something that needs attention.
type item struct {
	Dot         string // "bad", "warn"
	Title, Text string
	Since       time.Time // shown after Text; zero if absent
	Action      string    // the button's label; "" if absent
	Path        string
}

// attend collects the items that need attention, from events of the last seven days and the current settings.
// Losses through compression have an item of their own.
func (h *Handler) attend(ctx context.Context, who tenants.Principal, m *model) error {
	h.broken(ctx, who, m)
	m.bill()
	err := h.compressed(ctx, who, m)
	for _, read := range []func(context.Context, tenants.Principal, *model) error{h.rejected, h.failedOver, h.keys, h.ended, h.notices, h.narrowed} {
		if err == nil {
			err = read(ctx, who, m)
		}
	}
	// Failures come before costs.
	slices.SortStableFunc(m.Attention, func(a, b item) int { return strings.Compare(a.Dot, b.Dot) })
	return err
}

// broken adds failing or late parts of the installation, for its operators.
func (h *Handler) broken(ctx context.Context, who tenants.Principal, m *model) {
	if !who.User.Operator || h.deps.Health == nil {
		return
	}
	for _, check := range h.deps.Health(ctx) {
		if check.OK {
			continue
		}
		one := item{Dot: "bad", Title: check.Name + ": " + check.Text, Text: check.Means, Action: "Open health", Path: paths.Operator}
		if check.Late {
			one.Dot = "warn"
		}
		m.Attention = append(m.Attention, one)
	}
}

// bill adds an item for a failed payment and for an exhausted quota. People who may not see the bills are
// told whom to ask.
func (m *model) bill() {
	if m.Plan == nil {
		return
	}
	warning, is := m.Plan.Warning()
	if !is {
		return
	}
	day := components.DayIn(warning.On, m.Zone)
	var one item
	switch {
	case warning.Reason == tenants.QuotaUsed:
		one = item{Dot: "warn", Title: "This month’s exchanges are used up", Text: "Until " + day + " requests pass uncompressed; they are never blocked."}
	case warning.Now:
		one = item{Dot: "bad", Title: "A payment failed", Text: "Since " + day + " requests pass uncompressed; they are never blocked.", Since: m.Plan.PastDueSince}
	default:
		one = item{Dot: "bad", Title: "A payment failed", Text: "Everything works as before until " + day + "; then requests pass uncompressed.", Since: m.Plan.PastDueSince}
	}
	if !one.Since.IsZero() {
		one.Text += " It failed:"
	}
	if one.link(m.Role, tenants.ManageBilling, "Open billing", paths.Billing); one.Action == "" {
		one.Text = layout.AskAboutBilling + " " + one.Text
	}
	m.Attention = append(m.Attention, one)
}

// compressed reads the advice, and adds an item if prompts stayed above the target.
func (h *Handler) compressed(ctx context.Context, who tenants.Principal, m *model) error {
	recent, err := h.deps.Usage.Totals(ctx, who.Workspace.ID, tenants.UsageFilter{From: m.Now.Add(-cost.AdviceSpan), To: m.Now}.SeenBy(who.User.ID, who.Role.May))
	if err != nil {
		return err
	}
	m.Advice, m.Advised = cost.Advise(recent.Prompts.Edited, recent.CostMicroUSD, recent.NetMicroUSD)
	if m.Advised {
		one := item{
			Dot: "warn", Title: "Compression cost " + components.Money(m.Advice.Lost) + " more than it saved",
			Text: "Over " + components.Plural(m.Advice.Exchanges, "compressed request") + ". A higher target compresses less often.",
		}
		one.link(who.Role, tenants.ReadConfig, "Open target", paths.Setting(targetSetting))
		m.Attention = append(m.Attention, one)
	}
	if recent.Prompts.Unreachable == 0 {
		return nil
	}
	obstacles, err := h.deps.Usage.Obstacles(ctx, who.Workspace.ID, m.Now.Add(-cost.AdviceSpan))
	if err != nil {
		return err
	}
	one := item{Dot: "warn", Title: components.Plural(recent.Prompts.Unreachable, "request") + " stayed above the target", Text: hindranceText(obstacles)}
	one.link(who.Role, tenants.ReadConfig, "Open setting", paths.Setting(turnsSetting))
	m.Attention = append(m.Attention, one)
	return nil
}

// hindranceText explains why prompts stayed above their target and names the client and model that this
// affects most.
func hindranceText(obstacles []tenants.Obstacle) string {
	if len(obstacles) == 0 {
		return hindranceReason("")
	}
	most := obstacles[0]
	of := components.ClientName(most.Client)
	if most.Version != "" {
		of += " " + most.Version
	}
	return fmt.Sprintf("%s Most often with %s on %s.", hindranceReason(most.Reason), of, most.Model)
}

// hindranceReason explains why prompts stay above their target, and the remedy.
func hindranceReason(reason string) string {
	switch reason {
	case "newest_turn":
		return "The newest turn alone is too large. Compression never touches it."
	case "system_prompt_and_tools":
		return "The system prompt and the tools take most of the prompt. Use fewer tools, or raise the target."
	case "pinned_turns":
		return "Pinned turns take most of the prompt. Unpin some of them."
	case "provider_compaction":
		return "The prompt holds a compaction made by the provider. Everything before it must stay."
	case "unanswered_calls":
		return "The prompt has tool calls without a result. They must stay as they are."
	case "tool_loop_opener":
		return "The turn that opens the running tool loop is too large. The model requires it."
	case "typed_message":
		return "The newest typed message takes most of the prompt. Compression never touches it."
	case "context_window":
		return "The context window that the pipeline sets is too small for what these prompts need. Raise contextWindow, or set it to auto."
	case "answer_reserve":
		return "The client reserves so much of the window for the answer that the prompt has too little. Lower its max_tokens."
	case "kept_messages":
		return "The client sends messages that must stay as they are, such as tools it adds. Check whether the client is new."
	default:
		return "The turns kept verbatim are larger than the target allows. Keep fewer turns verbatim, or allow deeper levels."
	}
}

// rejected adds provider keys that do not work.
func (h *Handler) rejected(ctx context.Context, who tenants.Principal, m *model) error {
	rejections, err := h.deps.Usage.Rejections(ctx, who.Workspace.ID, m.Now.Add(-cost.AdviceSpan))
	if err != nil {
		return err
	}
	refused := map[string]bool{}
	for _, rejection := range rejections {
		refused[rejection.Key.String()] = true
		one := item{
			Dot: "bad", Title: fmt.Sprintf("Provider key %s was rejected %s", rejection.Name, times(rejection.Count)), Since: rejection.Since,
			Text: fmt.Sprintf("%d from %s. Requests that go to it fail until it is replaced.", rejection.Status, rejection.Provider.Title()),
		}
		one.link(who.Role, tenants.ManageProviders, "Replace key", paths.ReplaceProvider(rejection.Key))
		m.Attention = append(m.Attention, one)
	}
	providers, err := h.deps.ProviderKeys.ProviderKeys(ctx, who.Workspace.ID)
	for i := range providers {
		key := &providers[i]
		if key.Disabled || key.Check.At.IsZero() || key.Check.OK || refused[key.ID.String()] {
			continue
		}
		one := item{Dot: "bad", Title: key.Name + " failed its last test", Since: key.Check.At, Text: key.Check.Problem}
		one.link(who.Role, tenants.ReadConfig, "Open", paths.Providers)
		m.Attention = append(m.Attention, one)
	}
	return err
}

// failedOver adds an item if requests failed that another provider key could have answered, while failover is
// off.
func (h *Handler) failedOver(ctx context.Context, who tenants.Principal, m *model) error {
	settings, err := h.deps.Readers.DataSettings(ctx, who.Workspace.ID)
	if err != nil || settings.Failover != tenants.FailoverOff {
		return err
	}
	keys, err := h.deps.ProviderKeys.ProviderKeys(ctx, who.Workspace.ID)
	if err != nil || len(keys) < 2 {
		return err
	}
	failures, err := h.deps.Usage.KeyFailures(ctx, who.Workspace.ID, m.Now.Add(-cost.AdviceSpan))
	for _, failure := range failures {
		place := slices.IndexFunc(keys, func(key tenants.ProviderKey) bool { return key.ID == failure.Key })
		if place < 0 || !hasAlternative(keys, place) {
			continue
		}
		one := item{
			Dot: "warn", Title: components.Plural(failure.Count, "request") + " failed at " + keys[place].Name,
			Text: "Rate limits, errors of the provider or no answer, in the last seven days. Another of your provider keys could have answered them.",
		}
		one.link(who.Role, tenants.ManageSettings, "Turn failover on", paths.Settings+"#field-failover")
		m.Attention = append(m.Attention, one)
	}
	return err
}

// hasAlternative reports whether another key accepts the requests of the key at an index.
func hasAlternative(keys []tenants.ProviderKey, place int) bool {
	asked := tenants.Asked{Dialect: keys[place].Provider}
	if len(keys[place].Models) > 0 {
		asked.Model = keys[place].Models[0]
	}
	routes, err := tenants.Routes(keys, asked)
	return err == nil && len(routes) > 1 && slices.Contains(routes, place)
}

// keys adds API keys in use that have stopped working or soon will.
func (h *Handler) keys(ctx context.Context, who tenants.Principal, m *model) error {
	keys, err := h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID)
	for i := range keys {
		one, needs := keyItem(&keys[i], m.Now)
		if !needs {
			continue
		}
		one.link(who.Role, tenants.ReadConfig, "Open", paths.Keys)
		m.Attention = append(m.Attention, one)
	}
	return err
}

func keyItem(key *tenants.APIKey, now time.Time) (item, bool) {
	if key.LastUsedAt == nil {
		return item{}, false
	}
	inUse := now.Sub(*key.LastUsedAt) < used
	switch {
	case key.RevokedAt != nil:
		return item{
			Dot: "warn", Title: "Key " + key.Name + " was revoked while it was used", Since: *key.LastUsedAt,
			Text: "Clients that still hold it are refused. Last used:",
		}, now.Sub(*key.RevokedAt) < soon && key.RevokedAt.Sub(*key.LastUsedAt) < brusque
	case key.ExpiresAt != nil && !key.ExpiresAt.After(now):
		return item{
			Dot: "bad", Title: "Key " + key.Name + " has expired", Since: *key.ExpiresAt,
			Text: "It was in use; its clients are refused. Expired:",
		}, now.Sub(*key.ExpiresAt) < soon && key.ExpiresAt.Sub(*key.LastUsedAt) < brusque
	case key.ExpiresAt != nil && key.ExpiresAt.Sub(now) < soon:
		return item{
			Dot: "warn", Title: "Key " + key.Name + " expires " + until(*key.ExpiresAt, now), Since: *key.ExpiresAt,
			Text: "It is in use; its clients are refused from then on.",
		}, inUse
	case key.OldUntil != nil && key.OldUntil.After(now) && key.OldUntil.Sub(now) < soon:
		return item{
			Dot: "warn", Title: "The old secret of key " + key.Name + " ends " + until(*key.OldUntil, now), Since: *key.OldUntil,
			Text: "Clients that were not given the new one are refused from then on.",
		}, inUse
	}
	return item{}, false
}

// notices adds the sessions that need attention under the current settings, with their titles if the reader
// may read every session.
func (h *Handler) notices(ctx context.Context, who tenants.Principal, m *model) error {
	_, config, err := h.pipeline(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	notices, err := h.deps.Costs.Notices(ctx, who.Workspace.ID, m.Now.Add(-cost.AdviceSpan), m.Now, pipeline.SettingsOf[ipc.Config](config).WarnsAfter())
	if err != nil {
		return err
	}
	reader, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	for _, notice := range notices {
		if err != nil || !reader.All {
			notice.Title = "Session " + notice.Session.String()[:8]
		}
		one := item{Dot: "warn", Title: noticeTitle(notice), Text: noticeText(notice)}
		one.link(who.Role, tenants.ReadSessions, "Open", paths.Session(notice.Session))
		m.Attention = append(m.Attention, one)
	}
	return err
}

// narrowed announces, for a month, that the default scope of memory became narrower, unless someone has
// chosen a scope.
func (h *Handler) narrowed(ctx context.Context, who tenants.Principal, m *model) error {
	at, err := h.deps.Pipelines.MemoryNarrowed(ctx, who.Workspace.ID)
	if err != nil || at.IsZero() || m.Now.Sub(at) > 30*day {
		return err
	}
	_, config, err := h.pipeline(ctx, who.Workspace.ID)
	if err != nil || !config.Runs(rehydrator.Name) || pipeline.SettingsOf[rehydrator.Config](config).Scope != pipeline.ScopeSession {
		return err
	}
	one := item{
		Dot: "warn", Title: "Memory stays inside its session now", Since: at,
		Text: "Messages of earlier sessions no longer come back, because several people may share an API key. If each person has their own key, choose Person. Changed:",
	}
	one.link(who.Role, tenants.ReadConfig, "Open setting", paths.Setting(scopeSetting))
	m.Attention = append(m.Attention, one)
	return nil
}

// link adds a button to an item if the reader may use it.
func (i *item) link(role tenants.Role, needs tenants.Permission, action, path string) {
	if role.May(needs) {
		i.Action, i.Path = action, path
	}
}

// times formats how often something happened.
func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return components.Count(n) + " times"
}

// until formats how soon something will happen.
func until(at, now time.Time) string { return "in " + components.Span(at.Sub(now)) }

// noticeTitle describes the problem.
func noticeTitle(notice cost.Notice) string {
	sessions := components.Plural(int64(notice.Sessions), "session")
	switch notice.Kind {
	case cost.NoticeLoss:
		return fmt.Sprintf("%s cost %s more than compression saved", sessions, components.Money(-notice.Net))
	case cost.NoticeTruncated:
		return sessions + " had turns cut off"
	case cost.NoticeIncomplete:
		return "Compactions of " + sessions + " lost details"
	default:
		return sessions + " compressed many times"
	}
}

// noticeText describes the problem of the session that needs attention most.
func noticeText(notice cost.Notice) string {
	title := render.Visible(notice.Title)
	if title == "" {
		title = "Untitled session"
	}
	title = strings.TrimSuffix(title, ".") // the sentence continues after it
	switch notice.Kind {
	case cost.NoticeLoss:
		if notice.Epochs == 0 {
			return "Most of it: “" + title + "”. It had no compaction: restored messages, summaries and embeddings cost more than they saved."
		}
		return "Most of it: “" + title + "”. Each compaction rewrote the provider’s cache. A higher target makes fewer compactions."
	case cost.NoticeTruncated:
		return "“" + title + "”. The originals are in the archive."
	case cost.NoticeIncomplete:
		return fmt.Sprintf("“%s”: %s neither in the prompt nor available to recall. The session’s page lists them. A higher target keeps more.", title, components.Plural(int64(notice.Epochs), "detail"))
	default:
		return fmt.Sprintf("“%s”, %s. The model has the oldest turns in their shortest form only.", title, components.Plural(int64(notice.Epochs), "compaction"))
	}
}

// missName explains a provider cache miss.
func missName(cause string) string {
	switch cost.Cause(cause) {
	case cost.TTLExpiry:
		return "Cache expired"
	case cost.PrefixChangeOurs:
		return "Compaction rewrote the prompt"
	case cost.PrefixChangeClient:
		return "The client edited the prompt"
	case cost.ColdStart:
		return "First request of a thread"
	default:
		return "The provider did not find it"
	}
}
