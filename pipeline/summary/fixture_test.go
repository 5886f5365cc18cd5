package summary

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func codecs() []wire.Codec {
	return []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New()}
}

func newCounter(t testing.TB) *tokens.Counter {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// double is a provider double without a network.
type double struct {
	*providerdouble.Double

	mu    sync.Mutex
	calls []Call
}

func newDouble(t testing.TB, config providerdouble.Config) *double {
	t.Helper()
	config.Count = newCounter(t).Count
	if config.Script == nil {
		config.Script = notes(providerdouble.Notes)
	}
	return &double{Double: providerdouble.NewHandler(config)}
}

// notes is a script that answers every request with a text.
func notes(text string) providerdouble.Script {
	return func(providerdouble.Request) providerdouble.Reply { return providerdouble.Reply{Text: text} }
}

// Ask implements Provider.
func (d *double) Ask(ctx context.Context, call Call) (Reply, error) {
	d.mu.Lock()
	d.calls = append(d.calls, call)
	d.mu.Unlock()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, call.Codec.Traits().Path, bytes.NewReader(call.Body))
	request.Header.Set("Content-Type", "application/json")
	if call.Codec.Format() == conversation.Anthropic {
		request.Header.Set("X-Api-Key", "sk-double")
		request.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		request.Header.Set("Authorization", "Bearer sk-double")
	}
	for name, value := range call.Header {
		request.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, request)
	stream := strings.HasPrefix(answer.Header().Get("Content-Type"), "text/event-stream")
	return Reply{Status: answer.Code, Stream: stream, Body: answer.Body.Bytes()}, nil
}

// asked returns the calls so far.
func (d *double) asked() []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// lane is a conversation in Anthropic's format with its originals and summaries.
type lane struct {
	mu        sync.Mutex
	messages  []string
	calls     int
	chain     []conversation.Hash
	summaries []session.Summary
	attempts  []session.SummaryAttempt
	rejected  []string
}

func newLane() *lane { return &lane{chain: []conversation.Hash{{}}} }

func (l *lane) add(messages ...string) *lane {
	for _, message := range messages {
		l.messages = append(l.messages, message)
		l.chain = append(l.chain, conversation.Extend(l.chain[len(l.chain)-1], sha256.Sum256([]byte(message))))
	}
	return l
}

func (l *lane) user(text string) *lane {
	return l.add(`{"role":"user","content":` + quoted(text) + `}`)
}

func (l *lane) say(text string) *lane {
	return l.add(`{"role":"assistant","content":[{"type":"text","text":` + quoted(text) + `}]}`)
}

// run adds a call of a tool and its result.
func (l *lane) run(tool, input, result string) *lane {
	l.calls++
	id := fmt.Sprintf("toolu_%d", l.calls)
	return l.add(
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, id, tool, input),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, id, quoted(result)),
	)
}

// work adds turns of about 400 tokens each.
func (l *lane) work(turns int) *lane {
	for range turns {
		l.run("Bash", fmt.Sprintf(`{"command":"go test ./part%d"}`, len(l.messages)), filler(400))
	}
	return l
}

func filler(count int) string {
	var text strings.Builder
	for i := range count / 4 {
		fmt.Fprintf(&text, "item %d ", i*7919%100_000)
	}
	return text.String()
}

func quoted(text string) string { return string(wire.Quote(text)) }

// Originals implements Originals.
func (l *lane) Originals(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, from, to int) ([]archive.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var entries []archive.Entry
	for i := from; i < min(to, len(l.messages)); i++ {
		entries = append(entries, archive.Entry{Index: i, Raw: []byte(l.messages[i])})
	}
	return entries, nil
}

// Summaries implements Store.
func (l *lane) Summaries(context.Context, tenants.WorkspaceID, uuid.UUID) ([]session.Summary, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]session.Summary(nil), l.summaries...), nil
}

// SummaryTried implements Store.
func (l *lane) SummaryTried(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, covers int) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.attempts, func(a session.SummaryAttempt) bool { return a.Covers >= covers }), nil
}

// SaveSummary implements Store.
func (l *lane) SaveSummary(_ context.Context, _ tenants.WorkspaceID, attempt session.SummaryAttempt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts = append(l.attempts, attempt)
	if attempt.Reason == "" {
		l.summaries = append(l.summaries, attempt.Summary)
	}
	return nil
}

// Summarized implements Lanes.
func (l *lane) Summarized(uuid.UUID, session.Summary) {}

// SummaryRejected implements Lanes.
func (l *lane) SummaryRejected(_ uuid.UUID, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rejected = append(l.rejected, reason)
}

// job asks for a summary of all messages so far.
func (l *lane) job() Job {
	return Job{
		Scope: session.Scope{Workspace: tenants.NewWorkspaceID(), Format: conversation.Anthropic}, Session: uuid.New(), Lane: uuid.New(),
		Covers: len(l.messages), Chain: l.chain, Codec: anthropic.New(), Model: "claude-sonnet-4-5", Window: 200_000, Factor: 1,
		Settings: Settings{Model: "claude-haiku-4-5"},
	}
}

// bench is a worker on a lane.
type bench struct {
	*lane

	worker *Worker
	ended  chan session.SummaryAttempt
}

func newBench(t testing.TB, l *lane, provider interface {
	Ask(ctx context.Context, call Call) (Reply, error)
}) *bench {
	t.Helper()
	models, err := tokens.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{lane: l, ended: make(chan session.SummaryAttempt, queueJobs+workers)}
	b.worker = NewWorker(Config{
		Originals: l, Store: l, Lanes: l, Ask: provider.Ask, Models: models, Count: newCounter(t).Count,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		Ended: func(_ Job, attempt session.SummaryAttempt) { b.ended <- attempt },
	})
	b.worker.Start()
	t.Cleanup(b.worker.Stop)
	return b
}

// do has a job done and returns how it ended.
func (b *bench) do(t testing.TB, job Job) session.SummaryAttempt {
	t.Helper()
	if !b.worker.Ask(job) {
		t.Fatal("the job was not taken")
	}
	return <-b.ended
}
