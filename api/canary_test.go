package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
)

// S14: a module that panics with everything it knows, of which the log tells with its
// stack, gives away neither the workspace's key, nor one that the client sent along, nor
// the API key: no module knows them.
func TestAPanicOfAModuleShowsNoKey(t *testing.T) {
	t.Parallel()
	const once = "Zx9canaryWq4onceTt7"
	for name, how := range map[string]func(*pipeline.Draft) error{
		"with all it has": func(draft *pipeline.Draft) error {
			panic(fmt.Sprintf("%+v %+v %s", draft, draft.Request, draft.Conversation.Unmarked(0)))
		},
		"with an error": func(draft *pipeline.Draft) error {
			return fmt.Errorf("%#v", *draft)
		},
		"of the runtime": func(draft *pipeline.Draft) error {
			return fmt.Errorf("%d", draft.Conversation.Chain[len(draft.Conversation.Chain)+7])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			double := providertest.NewServer(t, providerdouble.Config{})
			p := setupAt(t, double.URL, broken{how})
			var told strings.Builder
			for _, header := range [][]string{nil, {"X-Palimpsest-Provider-Key", once, "X-Palimpsest-Base-Url", double.URL}} {
				got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 3, 80), header...)
				if got.status != http.StatusOK || !strings.Contains(got.header.Get("X-Palimpsest-Modules"), "ipc;failed") {
					t.Fatalf("status %d, modules %s: %s", got.status, got.header.Get("X-Palimpsest-Modules"), got.body)
				}
				last, _ := double.Last()
				if key := last.Header.Get("X-Api-Key"); key != providerKey && key != once {
					t.Fatalf("the provider was sent %q: nothing could be given away", key)
				}
				fmt.Fprintln(&told, got.header, string(got.body))
			}
			for _, kept := range []int{1, 2} {
				fmt.Fprintf(&told, "%+v %s\n", p.last(kept), p.last(kept).Prompt.Report)
			}
			log := p.log.String()
			if !strings.Contains(log, "ipc.failed") {
				t.Fatalf("the log does not tell of it: %s", log)
			}
			for _, secret := range []string{providerKey, once, testKey} {
				if strings.Contains(log, secret) || strings.Contains(told.String(), secret) {
					t.Errorf("%s is given away", secret[:4])
				}
			}
		})
	}
}
