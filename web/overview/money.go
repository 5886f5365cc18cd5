package overview

import (
	"context"
	"fmt"

	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// fillMoney reads what was missed, and what people should be told by what happened
// in the last seven days.
func (h *Handler) fillMoney(ctx context.Context, workspace tenants.WorkspaceID, model *model) {
	var err error
	model.Balance, err = h.deps.Usage.Balance(ctx, workspace, model.From, model.To)
	model.BalanceFailed = h.failed(ctx, "balance", err)

	since := model.Now.Add(-cost.AdviceSpan)
	recent, err := h.deps.Usage.Balance(ctx, workspace, since, model.Now)
	if err == nil {
		model.Advice, model.Advised = cost.Advise(recent.Edited, recent.CostMicroUSD, recent.NetMicroUSD)
		model.Notices, err = h.notices(ctx, workspace, model)
	}
	model.NoticesFailed = h.failed(ctx, "notices", err)
}

// notices returns which sessions need attention by the settings that hold now.
func (h *Handler) notices(ctx context.Context, workspace tenants.WorkspaceID, model *model) ([]cost.Notice, error) {
	saved, err := h.deps.Pipelines.Pipeline(ctx, workspace)
	if err != nil {
		return nil, err
	}
	config, _, err := pipeline.Resolve(h.deps.Defaults, pipeline.Layer{Source: pipeline.FromWorkspace, Modules: saved.Modules, YAML: saved.YAML})
	if err != nil {
		return nil, fmt.Errorf("saved pipeline, version %d: %w", saved.Version, err)
	}
	return h.deps.Sessions.Notices(ctx, workspace, model.Now.Add(-cost.AdviceSpan), model.Now, config.IPC.WarnAfterEpochs)
}

// hold takes the titles off the notices for who may not read every session.
func (h *Handler) hold(ctx context.Context, who tenants.Principal, model *model) {
	reader, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err == nil && reader.All {
		return
	}
	if err != nil {
		h.deps.Log.ErrorContext(ctx, "what somebody may read", "user", who.User.ID, "error", err)
	}
	for i := range model.Notices {
		model.Notices[i].Title = "Session " + model.Notices[i].Session.String()[:8]
	}
}

// noticeTitle says what is the matter.
func noticeTitle(notice cost.Notice) string {
	sessions := components.Plural(int64(notice.Sessions), "session")
	switch notice.Kind {
	case cost.NoticeLoss:
		return fmt.Sprintf("%s cost %s more than compression saved", sessions, components.Money(-notice.Net))
	case cost.NoticeTruncated:
		return sessions + " reached terminal truncation"
	default:
		return sessions + " compressed many times"
	}
}

// noticeText says it of the session that needs attention most.
func noticeText(notice cost.Notice) string {
	title := notice.Title
	if title == "" {
		title = "Untitled session"
	}
	switch notice.Kind {
	case cost.NoticeLoss:
		return "Most of it: “" + title + "”. Each epoch rewrote the provider’s cache; a higher target makes fewer."
	case cost.NoticeTruncated:
		return "“" + title + "”. The originals are in the archive."
	default:
		return fmt.Sprintf("“%s”, %s. What was said first is known to the model by its shortest form only.", title, components.Plural(int64(notice.Epochs), "epoch"))
	}
}

// noticePath returns the page of the session that needs attention most.
func noticePath(notice cost.Notice) string { return paths.Session(notice.Session) }

// missName says why the provider's cache did not have what it should.
func missName(cause string) string {
	switch cost.Cause(cause) {
	case cost.TTLExpiry:
		return "It had expired"
	case cost.PrefixChangeOurs:
		return "We edited the prompt: an epoch"
	case cost.PrefixChangeClient:
		return "The client edited the prompt"
	case cost.ColdStart:
		return "First request of a lane"
	default:
		return "The provider did not find it"
	}
}
