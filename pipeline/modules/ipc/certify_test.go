package ipc_test

import (
	"encoding/json"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
)

// An epoch whose certificate is incomplete gets a higher goal, within what the prompt may have; one
// that is complete stays as it was planned.
func TestIncompleteCertificateRaisesTheGoal(t *testing.T) {
	t.Parallel()
	const limit = 40_000
	counter := newCounter(t)
	talk := sessiontest.Generate(1, sessiontest.Options{Format: conversation.Anthropic, Turns: 60, Parallel: true, TargetTokens: 60_000})
	exchange := pipelinetest.NewExchange(t, codecs()[conversation.Anthropic], talk.Body(talk.Steps()-1), pipelinetest.Options{
		Counter: counter, Config: modules.Catalog().Default(), Limit: limit,
	})
	view := &exchange.View
	size := view.Size(nil)
	for name, damage := range map[string]func(*session.Projection){
		"nothing lost": func(*session.Projection) {},
		"no record": func(projection *session.Projection) {
			for i := range projection.Parts {
				if projection.Parts[i].Level >= 2 {
					projection.Parts[i].Raw = json.RawMessage(`{"role":"user","content":"Go on."}`)
				}
			}
		},
	} {
		before, after, err := ipc.New(counter.Message).Completed(t.Context(), view, size, damage)
		if err != nil {
			t.Fatal(err)
		}
		if before.Certificate == nil || !after.Certificate.IsComplete() {
			t.Errorf("%s: kept %+v", name, after.Certificate)
		}
		if wasLost := before.Certificate.Lost() > 0; wasLost != (name == "no record") || wasLost != (after != before) {
			t.Errorf("%s: %d lost before, another projection %v", name, before.Certificate.Lost(), after != before)
		}
		if after != before && (view.Estimate(after) <= view.Estimate(before) || view.Estimate(after) > limit) {
			t.Errorf("%s: %d tokens after %d", name, view.Estimate(after), view.Estimate(before))
		}
	}
}
