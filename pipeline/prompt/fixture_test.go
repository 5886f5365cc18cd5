package prompt_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/tenants"
)

// bench writes the prompts of one session and has the provider judge them.
type bench struct {
	t         *testing.T
	writer    *prompt.Writer
	double    *providerdouble.Double
	codec     wire.Codec
	scope     session.Scope
	config    pipeline.Config
	headers   http.Header
	betas     string // the client's own
	bypass    bool
	overrides tokens.Overrides
	epochs    int
}

// newBench returns a bench with a context window of so many tokens.
func newBench(t *testing.T, format conversation.Format, window int) *bench {
	t.Helper()
	return newBenchWith(t, session.NewMemory(), format, window)
}

// newBenchOn returns a bench in Anthropic's format on a store that others share.
func newBenchOn(t *testing.T, store session.Store, window int) *bench {
	t.Helper()
	return newBenchWith(t, store, conversation.Anthropic, window)
}

func newBenchWith(t *testing.T, store session.Store, format conversation.Format, window int) *bench {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	writer, err := prompt.NewWriter(store, counter, pipeline.NewChain(ipc.New(counter.Message)))
	if err != nil {
		t.Fatal(err)
	}
	writer.Window = window
	b := &bench{
		t: t, writer: writer,
		double: providerdouble.NewHandler(providerdouble.Config{Window: 10_000_000, BindThinking: true}),
		codec: map[conversation.Format]wire.Codec{
			conversation.Anthropic: anthropic.New(), conversation.OpenAIChat: openaichat.New(), conversation.OpenAIResponses: openairesponses.New(),
		}[format],
		scope: session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: format}, config: modules.Catalog().Default(),
		headers: http.Header{"X-Palimpsest-Session-Id": {"s"}},
	}
	pipeline.Change[ipc.Config](&b.config).PreserveTokens = 0
	return b
}

// paths returns the endpoint of each format.
func paths() map[conversation.Format]string {
	return map[conversation.Format]string{
		conversation.Anthropic: "/v1/messages", conversation.OpenAIChat: "/v1/chat/completions", conversation.OpenAIResponses: "/v1/responses",
	}
}

// write returns the prompt of a body, unjudged.
func (b *bench) write(body []byte) *prompt.Prompt {
	b.t.Helper()
	written, err := b.writer.Write(b.t.Context(), b.request(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, event := range written.Exchange.Report.Events {
		if event.Type == "failed" {
			b.t.Fatalf("%+v", event)
		}
	}
	if written.Exchange.Report.Archived > 0 {
		b.epochs++
	}
	return written
}

// request returns the request with a body.
func (b *bench) request(body []byte) prompt.Request {
	return prompt.Request{
		Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, Bypass: b.bypass, Overrides: b.overrides,
		Headers: b.headers, Path: paths()[b.scope.Format],
	}
}

// send returns the prompt of a body that the provider takes.
func (b *bench) send(body []byte) *prompt.Prompt {
	b.t.Helper()
	written := b.write(body)
	if err := b.judge(written.Body, written.Beta); err != nil {
		b.t.Fatalf("refused: %v\n%.3000s", err, written.Body)
	}
	return written
}

// judge returns what the provider has against a body with the client's beta values
// and another one.
func (b *bench) judge(body []byte, beta string) error {
	return b.double.Judge(string(b.scope.Format), http.Header{"Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {b.betas, beta}}, body)
}

// epoch sends a body that must be compressed.
func (b *bench) epoch(body []byte) *prompt.Prompt {
	b.t.Helper()
	written := b.send(body)
	if written.Exchange.Report.Archived == 0 {
		b.t.Fatalf("no epoch: %+v", written.Exchange.Report)
	}
	return written
}

// talk writes a conversation in Anthropic's format, message by message.
type talk struct {
	head     string // members before the messages
	messages []string
	calls    int
}

func (c *talk) add(role string, blocks ...string) *talk {
	c.messages = append(c.messages, fmt.Sprintf(`{"role":%q,"content":[%s]}`, role, strings.Join(blocks, ",")))
	return c
}

func (c *talk) user(blocks ...string) *talk      { return c.add("user", blocks...) }
func (c *talk) assistant(blocks ...string) *talk { return c.add("assistant", blocks...) }

// filled adds turns, each with a result of about so many tokens.
func (c *talk) filled(turns, tokens int) *talk {
	for range turns {
		c.calls++
		id := fmt.Sprintf("toolu_f%d", c.calls)
		c.assistant(said("I run it."), call(id)).user(result(id, quoted(words(tokens))))
	}
	return c
}

// body returns the request that ends with the newest message.
func (c *talk) body() []byte {
	return fmt.Appendf(nil, `{%s,"max_tokens":1000,"messages":[%s]}`, c.head, strings.Join(c.messages, ","))
}

// begun returns a conversation of a model that has begun with a question.
func begun(model string) *talk {
	return (&talk{head: fmt.Sprintf(`"model":%q`, model)}).user(said("Please begin."))
}

func said(text string) string { return `{"type":"text","text":` + quoted(text) + `}` }

func call(id string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"make"}}`, id)
}

func result(id, content string) string {
	return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%s}`, id, content)
}

func quoted(text string) string { return string(wire.Quote(text)) }

// words returns about so many tokens of text that repeats nothing for long.
func words(tokens int) string {
	text := strings.Builder{}
	for i := range tokens / 4 {
		fmt.Fprintf(&text, "item %d ", i*7919%100_000)
	}
	return text.String()
}

func holds(t *testing.T, body []byte, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !bytes.Contains(body, []byte(part)) {
			t.Errorf("%.300q is not in the prompt %.4000s", part, body)
		}
	}
}

func lacks(t *testing.T, body []byte, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if bytes.Contains(body, []byte(part)) {
			t.Errorf("%.300q is in the prompt %.4000s", part, body)
		}
	}
}

// elements returns the elements of a body's list.
func (b *bench) elements(body []byte) [][]byte {
	b.t.Helper()
	envelope, err := wire.Open(body, b.codec.List())
	if err != nil {
		b.t.Fatal(err)
	}
	list := make([][]byte, envelope.Len())
	for i := range list {
		list[i] = envelope.Element(i)
	}
	return list
}

// member returns a top-level member of a body; empty if it has none.
func (b *bench) member(body []byte, name string) string {
	b.t.Helper()
	envelope, err := wire.Open(body, b.codec.List())
	if err != nil {
		b.t.Fatal(err)
	}
	raw, _ := envelope.Member(name)
	return string(raw)
}
