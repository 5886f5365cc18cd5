package memorybench

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// work is the session before a labeled request: an order that its summary does not hold, and a file.
const work = `[{"role":"user","content":"Always run gofmt before you commit, and never touch the folder vendor/legacy.\n\nAdd a way to delete orders."},` +
	`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"/home/dev/shop/store.go"}}]},` +
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"     1→package store\n     2→\n     3→// Store keeps orders in memory.\n     4→type Store struct{ orders map[string]Order }"}]},` +
	`{"role":"assistant","content":"I decided to keep deleted orders in a tombstone table, because the report needs their totals."},` +
	`{"role":"user","content":"Fine. Look at the failing test next."}]`

// Detection sends labeled requests, each into a session with earlier work, and returns by label how many of
// them compaction-bridge added something to. It sends recorded requests under their client's name and again
// without it.
func Detection(ctx context.Context, counter *tokens.Counter, requests []Labeled) ([]Figure, error) {
	figures := map[string]*Figure{}
	for i := range requests {
		request := &requests[i]
		for _, row := range request.rows() {
			figure := figures[row.name]
			if figure == nil {
				figure = &Figure{Name: row.name, Never: request.Label != Continuation}
				if request.Label == Continuation {
					figure.Least = 1
				}
				figures[row.name] = figure
			}
			bridged, err := isBridged(ctx, counter, row.header, request)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", request.ID, err)
			}
			figure.add(bridged, func() string { return fmt.Sprintf("%s (%s)", request.ID, request.Client) })
		}
	}
	var all []Figure
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		all = append(all, *figures[name])
	}
	return all, nil
}

// sent is a way to send a request, with its row's name and its headers.
type sent struct {
	name   string
	header http.Header
}

// rows returns the ways to send a request. Templates of many clients, and requests that continue a
// conversation, are sent in only one way.
func (l *Labeled) rows() []sent {
	known, unknown := http.Header{"User-Agent": {"claude-cli/2.1.329"}}, http.Header{}
	for _, header := range []http.Header{known, unknown} {
		header.Set("X-Palimpsest-Session-Id", l.ID)
	}
	switch {
	case !l.Real:
		return []sent{{l.Label + ", after a client's template", unknown}}
	case l.Label == Normal: // its first request is a fresh one
		return []sent{{l.Label, known}}
	}
	return []sent{{l.Label, known}, {l.Label + ", client not known", unknown}}
}

// talk is a client that uses the proxy's own prompt writer.
type talk struct {
	memory *session.Memory
	writer *prompt.Writer
	scope  session.Scope
	header http.Header
}

func newTalk(counter *tokens.Counter, header http.Header) (*talk, error) {
	codec := anthropic.New()
	t := &talk{
		memory: session.NewMemory(), header: header,
		scope: session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: codec.Format()},
	}
	past := compactionbridge.Past{Lanes: t.memory, Originals: session.MemoryArchive{Memory: t.memory}}
	var err error
	t.writer, err = prompt.NewWriter(t.memory, counter, pipeline.NewChain(compactionbridge.New(counter, past)))
	if err != nil {
		return nil, fmt.Errorf("make writer: %w", err)
	}
	return t, nil
}

// send writes a request and records it.
func (t *talk) send(ctx context.Context, body []byte) (*pipeline.Exchange, error) {
	config := modules.Catalog().Default()
	config.Modules = []string{compactionbridge.Name}
	written, err := t.writer.Write(ctx, prompt.Request{
		Scope: t.scope, Codec: anthropic.New(), Config: config, Headers: t.header, Path: "/v1/messages", Body: body,
	})
	if err != nil {
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	if err := t.memory.Record(ctx, t.scope.Workspace, []session.Update{written.Update(time.Now())}); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	written.Lane.Arrived(0, len(written.Exchange.Conversation.Digests))
	return written.Exchange, failure(written.Exchange)
}

// isBridged reports whether the module fires at a request after work in the same session. A request that
// continues a conversation follows that conversation's beginning.
func isBridged(ctx context.Context, counter *tokens.Counter, header http.Header, request *Labeled) (bool, error) {
	t, err := newTalk(counter, header)
	if err != nil {
		return false, err
	}
	before, err := around(json.RawMessage(work))
	if err != nil {
		return false, err
	}
	bodies := [][]byte{before}
	if request.Label == Normal { // send its conversation's beginning first
		envelope, err := wire.Open(request.Body, "messages")
		if err != nil {
			return false, fmt.Errorf("open body: %w", err)
		}
		bodies = append(bodies, envelope.Seal([]wire.Piece{{From: 0, To: 1}, {From: 1, To: envelope.Len(), Raw: json.RawMessage{}}}))
	}
	for _, body := range bodies {
		if _, err := t.send(ctx, body); err != nil {
			return false, err
		}
	}
	exchange, err := t.send(ctx, request.Body)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(exchange.Report.Events, func(event pipeline.ReportEntry) bool {
		return event.Module == compactionbridge.Name && event.Type == compactionbridge.Recovered
	}), nil
}
