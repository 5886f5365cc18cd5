package formats_test

import (
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
)

func TestEndpointsOfFormatsAreDistinct(t *testing.T) {
	t.Parallel()

	seen := map[string]conversation.Format{}
	for _, codec := range formats.All() {
		traits := codec.Traits()
		if traits.Path == "" || traits.Provider == "" {
			t.Errorf("%s: path %q, provider %q: neither may be empty", codec.Format(), traits.Path, traits.Provider)
		}
		for _, path := range []string{traits.Path, traits.CountPath, traits.CompactPath} {
			if path == "" {
				continue
			}
			if other, taken := seen[path]; taken {
				t.Errorf("%s is an endpoint of %s and of %s", path, other, codec.Format())
			}
			seen[path] = codec.Format()
		}
	}
}

func TestCodecIsFoundByItsFormatAndItsPath(t *testing.T) {
	t.Parallel()

	for _, codec := range formats.All() {
		if found, known := formats.Of(codec.Format()); !known || found != codec {
			t.Errorf("%s: found %v, %t", codec.Format(), found, known)
		}
		if found, known := formats.AtPath(codec.Traits().Path); !known || found != codec {
			t.Errorf("%s: found %v, %t", codec.Traits().Path, found, known)
		}
		if formats.ByFormat()[codec.Format()] != codec {
			t.Errorf("%s is not in the map", codec.Format())
		}
	}
	if _, known := formats.Of("x"); known {
		t.Error("the format x is known")
	}
	if codec, known := formats.AtPath("/v1/models"); known || codec != nil {
		t.Errorf("/v1/models belongs to %v", codec)
	}
	if _, err := formats.Parse("x", []byte(`{}`)); err == nil {
		t.Error("a message of the format x is read")
	}
}

// A body is recognized by the members that only its format has; without any, most servers
// speak Chat Completions.
func TestFormatIsRecognizedByMembers(t *testing.T) {
	t.Parallel()

	for body, want := range map[string]conversation.Format{
		`{"input":"hi"}`:                                                                     conversation.OpenAIResponses,
		`{"input":[],"messages":[]}`:                                                         conversation.OpenAIResponses,
		`{"input":"","messages":[],"system":""}`:                                             conversation.OpenAIResponses,
		`{"system":"s","messages":[]}`:                                                       conversation.Anthropic,
		`{"system":"s","messages":[{"role":"tool"}]}`:                                        conversation.Anthropic,
		`{"max_tokens":1,"messages":[{"role":"user"}]}`:                                      conversation.Anthropic,
		`{"max_tokens":1,"messages":[{"role":"system"}]}`:                                    conversation.OpenAIChat,
		`{"max_tokens":1,"messages":[{"role":"user"},{"role":"assistant","tool_calls":[]}]}`: conversation.OpenAIChat,
		`{"messages":[{"role":"developer"}]}`:                                                conversation.OpenAIChat,
		`{"messages":[{"role":"user"}]}`:                                                     conversation.OpenAIChat,
		`{"prompt":"hi"}`:                                                                    "",
		`{"messages":["hi"]}`:                                                                "",
		`[]`:                                                                                 "",
		``:                                                                                   "",
	} {
		var got conversation.Format
		if codec, known := formats.Recognize([]byte(body)); known {
			got = codec.Format()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// What Palimpsest asks in a request of its own is read by the same codec as a client's.
func TestComposedRequestIsReadByItsOwnCodec(t *testing.T) {
	t.Parallel()

	question := wire.Question{Model: "m-1", System: "Be <brief>.", User: "What & why?", MaxOutput: 77, Effort: "low", NoThinking: true}
	for _, codec := range formats.All() {
		body, err := codec.Compose(question)
		if err != nil {
			t.Fatalf("%s: %v", codec.Format(), err)
		}
		if recognized, known := formats.Recognize(body); !known || recognized != codec {
			t.Errorf("%s is recognized as %v: %s", codec.Format(), recognized, body)
		}
		envelope, err := wire.Open(body, codec.List())
		if err != nil {
			t.Fatalf("%s: %v", codec.Format(), err)
		}
		request, err := codec.Request(envelope)
		if err != nil || request.Model != "m-1" || request.MaxOutput != 77 || request.Stream || request.ReadOnly != "" {
			t.Errorf("%s: %+v, %v", codec.Format(), request, err)
		}
		last, err := codec.Parse(envelope.Element(envelope.Len() - 1))
		if err != nil || last.Role != conversation.User || len(last.Blocks) != 1 || last.Blocks[0].Text != question.User {
			t.Errorf("%s: %+v, %v", codec.Format(), last, err)
		}
		for _, name := range []string{"store", "metadata", "n", "model", codec.List()} {
			if _, has := envelope.Member(name); has && codec.Reuse().Member(name) == wire.Unknown {
				t.Errorf("%s: the member %s of a composed body is not known", codec.Format(), name)
			}
		}
	}
}
