package replay_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/tenants"
)

// repeating sends one history, request by request, with ipc.repeats: point.
type repeating struct {
	scope  session.Scope
	codec  wire.Codec
	config pipeline.Config
	store  *session.Memory
	count  *tokens.Counter
	now    time.Time
	window int // of every model
}

func newRepeating(t *testing.T, codec wire.Codec, window int) *repeating {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	config := modules.Catalog().Default()
	config.Modules = []string{"ipc"}
	settings := pipeline.Change[ipc.Config](&config)
	settings.Repeats = ipc.RepeatsPoint
	return &repeating{
		scope: session.Scope{Workspace: tenants.WorkspaceID{1}, APIKey: uuid.UUID{2}, Format: codec.Format()},
		codec: codec, config: config, store: session.NewMemory(), count: counter, now: time.Unix(1_700_000_000, 0), window: window,
	}
}

// process returns a process that serves the history, with nothing in its memory.
func (r *repeating) process(t *testing.T) *prompt.Writer {
	t.Helper()
	writer, err := prompt.NewWriter(r.store, r.count, pipeline.NewChain(modules.All(r.count, modules.Memory{})...))
	if err != nil {
		t.Fatal(err)
	}
	writer.Now, writer.Window = func() time.Time { return r.now }, r.window
	return writer
}

func (r *repeating) send(t *testing.T, writer *prompt.Writer, body []byte) *prompt.Prompt {
	t.Helper()
	written, err := writer.Write(t.Context(), prompt.Request{
		Scope: r.scope, Codec: r.codec, Config: r.config, Body: body, Headers: http.Header{"X-Palimpsest-Session-Id": {"repeating"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range written.Exchange.Report.Events {
		if event.Type == "failed" {
			t.Fatalf("%+v", event)
		}
	}
	size := written.Exchange.Report.After
	writer.Answered(written.Sent(), wire.Answer{Complete: true, Usage: wire.Usage{Reported: true, Input: size}})
	r.now = r.now.Add(time.Second)
	return written
}

// Whole recorded sessions: what pointers save, that the prompt goes on with the same
// bytes in another process, and that no edit quotes a line that was only pointed at.
func TestRecordedRepeatsArePointedAt(t *testing.T) {
	t.Parallel()
	var whole, saved, pointers, quotes, edits int
	files := sharedtest.Files(t, "data/transcripts/*.json")
	for i := range fulltest.Part(len(files)) {
		file := files[i]
		var codec wire.Codec = anthropic.New()
		if strings.HasSuffix(file, ".openai.json") {
			codec = openaichat.New()
		}
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		double := providerdouble.NewHandler(providerdouble.Config{Window: 10_000_000})
		double.Trust(body)
		r := newRepeating(t, codec, 10_000_000)
		writer := r.process(t)
		var last *prompt.Prompt
		var before []byte
		for i, request := range pipelinetest.Grow(t, codec, body) {
			if i%16 == 15 {
				writer = r.process(t) // a restart
			}
			last = r.send(t, writer, request)
			if i%24 == 0 {
				if err := double.Validate(string(codec.Format()), last.Body); err != nil {
					t.Fatalf("%s: request %d: %v", file, i, err)
				}
			}
			if head := listOf(t, codec, last.Body); !bytes.HasPrefix(head, before) {
				t.Fatalf("%s: request %d changes what was sent before", file, i)
			} else {
				before = head
			}
		}
		exchange := last.Exchange
		found, quoted, edited := quotedOf(t, exchange)
		t.Logf("%s: %d tokens of %d, %d pointers, %d of %d edits quote", filepath.Base(file), -exchange.Inserted(nil), exchange.Report.Before, found, quoted, edited)
		whole += exchange.Report.Before
		saved -= exchange.Inserted(nil)
		pointers += found
		quotes += quoted
		edits += edited
	}
	t.Logf("%d of %d tokens (%.2f %%), %d pointers, %d of %d edits quote what was only pointed at", saved, whole, 100*float64(saved)/float64(whole), pointers, quotes, edits)
	if fulltest.Everything() && (pointers == 0 || saved <= 0) { // not every session repeats a result
		t.Error("nothing was pointed at")
	}
	if quotes > 0 {
		t.Errorf("%d edits quote lines that were only pointed at", quotes)
	}
}

// listOf returns the messages of a body without their end.
func listOf(t *testing.T, codec wire.Codec, body []byte) []byte {
	t.Helper()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	var list []byte
	for i := range envelope.Len() {
		list = append(append(list, codec.Mark(envelope.Element(i), "")...), ',')
	}
	return list
}

// quotedOf counts the pointers in a history, and the edits behind them that quote a line
// which was only pointed at since: one that neither the pointer nor anything after it has.
func quotedOf(t *testing.T, exchange *pipeline.Exchange) (pointers, quotes, edits int) {
	t.Helper()
	var pointed, shown strings.Builder // since the first pointer
	isOnlyPointedAt := func(line string) bool {
		line = strings.TrimSpace(line)
		return len(line) >= 8 && strings.Contains(pointed.String(), line) && !strings.Contains(shown.String(), line)
	}
	for i := range exchange.Digests {
		message, err := exchange.Message(i)
		if err != nil {
			t.Fatal(err)
		}
		for j := range message.Blocks {
			block := &message.Blocks[j]
			text := block.Text
			if pointer := pointerAt(exchange, i, j); pointer != "" {
				pointers++
				pointed.WriteString(text + "\n")
				text = pointer
			}
			if block.Kind == conversation.ToolCall {
				for _, old := range oldTexts(block) {
					edits++
					if slices.ContainsFunc(strings.Split(old, "\n"), isOnlyPointedAt) {
						quotes++
						t.Logf("message %d quotes what was only pointed at: %.200s", i, old)
					}
				}
			}
			if pointed.Len() > 0 {
				shown.WriteString(text + "\n")
			}
		}
	}
	return pointers, quotes, edits
}

func pointerAt(exchange *pipeline.Exchange, message, block int) string {
	for _, insert := range exchange.Inserts {
		if insert.Message == message && insert.Block == block+1 {
			return insert.Text
		}
	}
	return ""
}

// oldTexts returns what an edit says stands in the file.
func oldTexts(block *conversation.Block) []string {
	call := ledger.ParseCall(block)
	if len(call.Writes) == 0 {
		return nil
	}
	var input map[string]any
	if json.Unmarshal([]byte(block.Text), &input) != nil {
		return nil
	}
	var texts []string
	var collect func(value any, name string)
	collect = func(value any, name string) {
		switch value := value.(type) {
		case string:
			if strings.HasPrefix(name, "old") {
				texts = append(texts, value)
			}
		case []any:
			for _, one := range value {
				collect(one, name)
			}
		case map[string]any:
			for name, one := range value {
				collect(one, name)
			}
		}
	}
	collect(input, "")
	return texts
}
