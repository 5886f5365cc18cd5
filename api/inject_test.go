package api

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
)

// What a request injects is named in its headers and recorded with it; the next one
// has it still, and names nothing.
func TestInjectedItemsAreNamedInTheHeaders(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	once := false
	p := setupAt(t, double.URL, broken{func(draft *pipeline.Draft) error {
		if once {
			return nil
		}
		once = true
		inject := func(module, text string, items ...string) {
			own := draft.Draft(module)
			own.Inject(pipeline.PlacementTurn, text, items)
			draft.View = own.View
		}
		inject("patterns", "[patterns]", "a", "b", "c")
		inject("rehydrator", "[rehydrated]", "#1", "#2")
		inject("compaction-bridge", "[bridge]")
		inject("ipc", "[other]")
		return nil
	}})
	for request, want := range []string{"bridge=1,rehydrated=2,patterns=3,ipc=1", ""} {
		got := p.send(http.MethodPost, messagesPath, `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"Hello"}]}`)
		last, _ := double.Last()
		if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Injected") != want {
			t.Errorf("request %d: status %d, %q, want %q", request, got.status, got.header.Get("X-Palimpsest-Injected"), want)
		}
		if outcome := map[bool]string{true: "ipc;applied", false: "ipc;noop"}[request == 0]; !strings.Contains(got.header.Get("X-Palimpsest-Modules"), outcome) {
			t.Errorf("request %d: modules %s", request, got.header.Get("X-Palimpsest-Modules"))
		}
		if !strings.Contains(string(last.Body), `{"type":"text","text":"Hello"},{"type":"text","text":"[patterns]"},{"type":"text","text":"[rehydrated]"},{"type":"text","text":"[bridge]"},{"type":"text","text":"[other]"}]`) {
			t.Errorf("request %d: sent %s", request, last.Body)
		}
		p.last(request + 1)
	}
	if !p.log.holds("patterns.injected") {
		t.Errorf("log: %s", p.log)
	}
}
