package manage

import (
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

type figuresJSON struct {
	Sessions int   `json:"sessions"`
	Requests int   `json:"requests"`
	Epochs   int   `json:"epochs"`
	Rewrites int   `json:"cache_rewrites"`
	Received int64 `json:"tokens_before"`
	Sent     int64 `json:"tokens_after"`
	Verbatim int64 `json:"tokens_verbatim"`
	AtL3     int64 `json:"tokens_at_l3"`
	Deepest  int   `json:"deepest_level"`
	TooLong  int   `json:"sessions_too_long"`
	Cost     int64 `json:"cost_microusd"`
	Net      int64 `json:"net_microusd"`
	Reach    int   `json:"reach"`

	ReachReceived int64 `json:"reach_tokens_before"`
	ReachSent     int64 `json:"reach_tokens_after"`
}

type comparisonJSON struct {
	Sample bool         `json:"sample"`           // based on invented sessions, because the workspace has too few
	Was    *figuresJSON `json:"actual,omitempty"` // absent for a sample
	Saved  figuresJSON  `json:"saved"`
	Wanted figuresJSON  `json:"preview"`
}

// previewPipeline shows the effect of a pipeline on the newest sessions. Omitted settings get their defaults,
// as in a saved one.
func (h pipelineHandler) previewPipeline(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Pipeline json.RawMessage `json:"pipeline"`
		Sessions int             `json:"sessions"`
	}](c)
	if err != nil {
		return err
	}
	if asked.Sessions == 0 {
		asked.Sessions = preview.Newest
	}
	if asked.Sessions < 1 || asked.Sessions > preview.Most {
		return tenants.Invalid{Field: "sessions", Message: "must be between 1 and 200"}
	}
	wanted, _, err := modules.Catalog().Resolve(h.defaults, pipeline.Layer{Source: pipeline.FromWorkspace, YAML: string(asked.Pipeline)}) // JSON is YAML
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	newest, err := h.pipelines.Pipeline(ctx, who.workspace)
	if err != nil {
		return err
	}
	saved, _, err := modules.Catalog().Resolve(h.defaults, pipeline.WorkspaceLayer(newest.Modules, newest.YAML))
	if err != nil {
		return err
	}
	found, err := h.previews.Compare(ctx, who.workspace, session.Selection{Newest: asked.Sessions}, saved, wanted)
	if err != nil {
		return err
	}
	answer := comparisonJSON{Sample: found.IsSample, Saved: figuresJSON(found.Saved), Wanted: figuresJSON(found.Wanted)}
	if !found.IsSample {
		answer.Was = (*figuresJSON)(&found.Was)
	}
	return c.JSON(http.StatusOK, answer)
}
