package pipeline_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

func outlined(t *testing.T) *pipeline.Outline {
	t.Helper()
	model := tokens.Model{Name: "claude-sonnet-4-5", Family: "claude-sonnet", Provider: "anthropic", Known: true, Window: 200_000, Cache: tokens.Cache{Min: 1024}}
	exchange := &pipeline.Exchange{Codec: anthropic.New(), View: pipeline.View{
		ID: uuid.New(), Scope: session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: conversation.Anthropic},
		Config: modules.Catalog().Default(), Model: model, Limits: pipeline.Limits{Limit: 190_000, Factor: 1.2345678901, Fixed: 812},
		Request: wire.Request{Model: "claude-sonnet-4-5", Stream: true, MaxOutput: 100, Markers: 2, MarkerTTL: "1h", ThinkingFirst: true},
		Class:   client.Class{Kind: client.Main, Client: "claude-code", Confidence: 0.95, Window: -1},
		Conversation: pipeline.Conversation{
			Digests: []conversation.Digest{{Identity: conversation.Hash{1}}},
			Chain:   []conversation.Hash{{2}, conversation.Extend(conversation.Hash{2}, conversation.Hash{1})},
		},
	}}
	pipeline.Change[ipc.Config](&exchange.Config).ContextWindow = 64_000
	pipeline.Change[ipc.Config](&exchange.Config).LLMCompression.Prompt = "short, please"
	return exchange.Outline()
}

func TestOutlineReadsBackAsItWas(t *testing.T) {
	t.Parallel()
	outline := outlined(t)
	encoded, err := outline.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	codecs := map[conversation.Format]wire.Codec{conversation.Anthropic: outline.Codec()}
	read, err := modules.Catalog().ReadOutline(encoded, codecs)
	if err != nil || !reflect.DeepEqual(read, outline) {
		t.Errorf("%v\nread\n%+v\nwant\n%+v", err, read, outline)
	}
}

// S31: an outline is stored unsealed, so nothing of the body may stand in it.
func TestAnOutlineHoldsNothingOfTheBody(t *testing.T) {
	t.Parallel()
	body := `{"model":"claude-sonnet-4-5","max_tokens":100,"metadata":{"user_id":"u"},
		"system":[{"type":"text","text":"kanarienvogel system","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"kanarienvogel_tool","description":"kanarienvogel","input_schema":{"type":"object"}}],
		"messages":[{"role":"user","content":"kanarienvogel typed"},{"role":"assistant","content":"kanarienvogel said"}]}`
	codec := anthropic.New()
	envelope, err := wire.Open([]byte(body), codec.List())
	if err != nil {
		t.Fatal(err)
	}
	request, err := codec.Request(envelope)
	if err != nil || !strings.Contains(string(slices.Concat(request.Fixed...)), "kanarienvogel") {
		t.Fatalf("%s, %v", request.Fixed, err)
	}
	exchange := &pipeline.Exchange{Codec: codec, Body: envelope, View: pipeline.View{
		ID: uuid.New(), Scope: session.Scope{Format: conversation.Anthropic}, Config: modules.Catalog().Default(), Request: request,
		Conversation: pipeline.Conversation{Digests: make([]conversation.Digest, 2), Chain: make([]conversation.Hash, 3)},
	}}
	for i := range exchange.Conversation.Digests {
		if exchange.Conversation.Digests[i], err = wire.Digest(codec, envelope.Element(i), func(conversation.Message) int { return 1 }); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := exchange.Outline().Bytes()
	if err != nil || len(encoded) < 100 || strings.Contains(string(encoded), "kanarienvogel") {
		t.Errorf("the outline says %s, %v", encoded, err)
	}
}

func TestOutlineThatNobodyWroteIsRefused(t *testing.T) {
	t.Parallel()
	encoded, err := outlined(t).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	codecs := map[conversation.Format]wire.Codec{conversation.Anthropic: anthropic.New()}
	for name, c := range map[string]struct {
		encoded string
		codecs  map[conversation.Format]wire.Codec
	}{
		"no JSON":        {"{", codecs},
		"no links":       {`{"Scope":{"Format":"anthropic"}}`, codecs},
		"unknown format": {string(encoded), nil},
	} {
		if _, err := modules.Catalog().ReadOutline([]byte(c.encoded), c.codecs); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}
