package recall_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"palimpsest/api/recall"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// A model that searches right after its prompt was shortened finds what has just left it.
func TestSearchWaitsForWhatIsNotIndexedYet(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.tenant(t, "ant")
	sent := conversations()[conversation.Anthropic]
	told := w.send(t, sent[0], sent[1])
	looks := 0
	p.behind = func(ctx context.Context, workspace tenants.WorkspaceID, upTo time.Time) (bool, time.Time, error) {
		behind, asOf, err := p.index.Behind(ctx, workspace, upTo)
		if looks++; looks == 1 && (!behind || asOf.IsZero()) || looks > 1 && (behind || !asOf.Equal(upTo)) {
			t.Errorf("look %d up to %s: behind %t as of %s", looks, upTo, behind, asOf)
		}
		if looks == 1 {
			w.catchUp(t)
		}
		return behind, asOf, err
	}

	var found hits
	text, failed := w.model(t, w.key).call("recall_search", message{"query": "serial-07919"}, &found)
	if failed || len(found.Hits) == 0 || found.Hits[0].Session != told.session || looks != 2 {
		t.Errorf("after %d looks: %.300s", looks, text)
	}
	// What is indexed is searched without a look, and nothing stays nothing.
	text, failed = w.model(t, w.key).call("recall_search", message{"query": "serial-07919"}, &found)
	if failed || len(found.Hits) == 0 || looks != 2 {
		t.Errorf("again, after %d looks: %.300s", looks, text)
	}
	p.behind = p.index.Behind
	if text, failed = w.model(t, w.key).call("recall_search", message{"query": "zebrafish"}, &found); failed || !strings.Contains(text, "Nothing in the archive matches") {
		t.Errorf("what does not exist: %.300s", text)
	}
}

// nothing is an archive in which nothing is found.
type nothing struct{ archive.Searcher }

// Search implements archive.Searcher.
func (nothing) Search(context.Context, tenants.WorkspaceID, archive.Query) ([]archive.Hit, error) {
	return nil, nil
}

func TestSearchSaysThatItMayHaveMissedTheNewestMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		server := recall.New(recall.Config{
			Readers: everything{}, Lanes: known{}, Searcher: nothing{}, Now: time.Now, Observe: func(context.Context, recall.Call) {},
			Behind: func(context.Context, tenants.WorkspaceID, time.Time) (bool, time.Time, error) {
				return true, began, nil
			},
		})
		answer := serve(t, server, `"recall_search","arguments":{"query":"heron"}`)
		if said := fmt.Sprint(answer.Body); !strings.Contains(said, "still being indexed") || strings.Contains(said, "Try other words") {
			t.Errorf("%d %s", answer.Code, said)
		}
		if waited := time.Since(began); waited < time.Second || waited > 10*time.Second {
			t.Errorf("it waited %s", waited)
		}
	})
}
