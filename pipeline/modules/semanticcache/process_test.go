package semanticcache_test

import (
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/pipelinetest"
)

// An exchange is answered from the cache only if its messages are one plain question:
// nothing that another flag tells of.
func TestOnlySingleQuestionsAreLookedUp(t *testing.T) {
	t.Parallel()
	system, asks := conversation.Digest{Role: conversation.System}, conversation.Digest{Role: conversation.User}
	answers := conversation.Digest{Role: conversation.Assistant}
	tests := map[string]struct {
		digests []conversation.Digest
		frozen  string
		want    pipeline.Cache
	}{
		"a question":            {[]conversation.Digest{asks}, "", pipeline.CacheMiss},
		"behind a system":       {[]conversation.Digest{system, system, asks}, "", pipeline.CacheMiss},
		"nothing":               {nil, "", pipeline.CacheOff},
		"a system alone":        {[]conversation.Digest{system}, "", pipeline.CacheOff},
		"a system behind it":    {[]conversation.Digest{asks, system}, "", pipeline.CacheOff},
		"two questions":         {[]conversation.Digest{asks, asks}, "", pipeline.CacheOff},
		"an answer before":      {[]conversation.Digest{answers, asks}, "", pipeline.CacheOff},
		"an answer alone":       {[]conversation.Digest{answers}, "", pipeline.CacheOff},
		"a history that stands": {[]conversation.Digest{asks}, "previous_response_id", pipeline.CacheOff},
	}
	for name, flag := range map[string]conversation.Flags{
		"a call": conversation.HasCall, "a result": conversation.HasResult, "thinking": conversation.HasThinking, "opaque": conversation.HasOpaque,
		"a piece": conversation.IsPart, "loaded tools": conversation.LoadsTools, "pending": conversation.HasPending, "settled": conversation.HasSettled,
	} {
		flagged := asks
		flagged.Flags = flag
		test := tests["a question"]
		test.digests, test.want = []conversation.Digest{flagged}, pipeline.CacheOff
		tests["a question with "+name] = test
		first := system
		first.Flags = flag
		test.digests = []conversation.Digest{first, asks}
		tests["a system with "+name] = test
	}
	for name, test := range tests {
		exchange := &pipeline.Exchange{View: pipeline.View{Conversation: pipeline.Conversation{Digests: test.digests}}}
		exchange.Request.ReadOnly = test.frozen
		if err := pipelinetest.Process(t.Context(), semanticcache.New(), exchange); err != nil || exchange.Report.Cache != test.want {
			t.Errorf("%s: %q (%v), want %q", name, exchange.Report.Cache, err, test.want)
		}
	}
}
