package api

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/summaries"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/summary"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// A8: a prompt goes to the account that it was for, or to none: what is sealed in it
// another one cannot read.
func TestAPromptIsGoneOnFromAtItsOwnAccountOnly(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	summaries := &summaries.Service{Config: summaries.Config{Settings: p.Settings, Upstream: p.Upstream}}
	call := summary.Call{Workspace: p.store.workspace, Codec: anthropic.New(), Body: []byte(streamed)}
	for _, key := range p.store.keys {
		if key.Provider == tenants.ProviderAnthropic {
			call.Account = key.ID
		}
	}
	if reply, err := summaries.Ask(t.Context(), call); err != nil || reply.Status != http.StatusOK {
		t.Fatalf("its own account: status %d, %v: %s", reply.Status, err, reply.Body)
	}
	p.renewProviderKeys()
	if _, err := summaries.Ask(t.Context(), call); !errors.Is(err, summary.ErrOtherAccount) || len(double.Requests()) != 1 {
		t.Errorf("another account: %v after %d requests", err, len(double.Requests()))
	}
	call.Account = uuid.Nil
	if reply, err := summaries.Ask(t.Context(), call); err != nil || reply.Status != http.StatusOK {
		t.Errorf("any account: status %d, %v: %s", reply.Status, err, reply.Body)
	}
}
