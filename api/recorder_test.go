package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/recorder"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// gated is a session store that waits for leave to record.
type gated struct {
	*memory

	open chan struct{}
}

// Record implements session.Store.
func (g gated) Record(ctx context.Context, tenant tenants.Tenant, seen []session.Update) error {
	<-g.open
	return g.memory.Record(ctx, tenant, seen)
}

// The memory of a body is used for the next one, but not while its messages wait to be
// recorded, whether they hold it or are a small part of it.
func TestMessagesThatWaitToBeRecordedStayAsTheyCame(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, quickAnswer) })
	store := gated{p.memory, make(chan struct{})}
	records := recorder.New(p.store, store, p.store, archivetest.Keys(), p.Metrics.Recorded, p.Log)
	records.Start()
	t.Cleanup(records.Stop)
	p.Recorder = records

	sent := map[uuid.UUID][]string{}
	for _, word := range []string{"alpha", "bravo", "charlie", "delta"} {
		body := toolSession("claude-sonnet-4-5", 6, 600)
		body = strings.ReplaceAll(strings.ReplaceAll(body, "word", word), "Do it all.", "Do it all: "+word)
		for _, more := range []string{"", `,{"role":"assistant","content":"Done."},{"role":"user","content":"Thanks, ` + word + `."}`} {
			whole := strings.TrimSuffix(body, `],"model":"claude-sonnet-4-5"}`) + more + `],"model":"claude-sonnet-4-5"}`
			got := p.send(http.MethodPost, messagesPath, whole, "X-Palimpsest-Session-Id", word)
			if got.status != http.StatusOK {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			var asked struct {
				Messages []json.RawMessage `json:"messages"`
			}
			if err := json.Unmarshal([]byte(whole), &asked); err != nil {
				t.Fatal(err)
			}
			lane := uuid.MustParse(got.header.Get("X-Palimpsest-Lane"))
			sent[lane] = nil
			for _, message := range asked.Messages {
				sent[lane] = append(sent[lane], string(message))
			}
		}
	}
	close(store.open)
	records.Stop()

	for lane, messages := range sent {
		kept := p.memory.Originals(lane)
		for i, message := range messages {
			if string(kept[i].Raw) != message {
				t.Fatalf("lane %s, message %d: kept %.60q, sent %.60q", lane, i, kept[i].Raw, message)
			}
		}
	}
	if len(sent) != 4 {
		t.Errorf("%d lanes", len(sent))
	}
}
