package ipc_test

import (
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/gemini"
	"palimpsest/pipeline/wire/geminiinteractions"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

func newCounter(t testing.TB) *tokens.Counter {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

func codecs() map[conversation.Format]wire.Codec {
	return map[conversation.Format]wire.Codec{
		conversation.Anthropic:       anthropic.New(),
		conversation.OpenAIChat:      openaichat.New(),
		conversation.OpenAIResponses: openairesponses.New(),
		conversation.Gemini:          gemini.New(),

		conversation.GeminiInteractions: geminiinteractions.New(),
	}
}
