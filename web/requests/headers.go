package requests

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
)

// header is one of our response headers, in plain words.
type header struct{ Name, Value, Words string }

const ownPrefix = "X-Palimpsest-"

// headersOf returns our headers of the response to a request. Requests that only count a prompt have no
// figures, because those must not be added up.
func headersOf(e *tenants.Exchange, report *pipeline.Report) []header {
	list := []header{{Name: ownPrefix + "Request-Id", Value: e.ID.String()}}
	add := func(name, value string) { list = append(list, header{Name: ownPrefix + name, Value: value}) }
	if e.Status >= 400 && e.ErrorFrom != "" {
		add("Error-Source", e.ErrorFrom)
	}
	if source := e.Signed["Session-Source"]; source != "" && e.Session != uuid.Nil {
		add("Session-Id", e.Session.String())
		add("Session-Source", source)
		add("Lane", e.Lane.String())
	}
	if !strings.HasSuffix(e.Endpoint, "_tokens") {
		for _, told := range modules.Catalog().Headers(*report, e.Model != "") {
			add(told.Name, told.Value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Signed)) {
		if name != "Session-Source" && name != serverTiming {
			add(name, e.Signed[name])
		}
	}
	if e.Provider != "" {
		add("Provider", string(e.Provider))
		add("Attempts", strconv.Itoa(e.Attempts))
		add("Overhead-Ms", milliseconds(e.Overhead))
		timing := e.Signed[serverTiming]
		if timing == "" {
			timing = "palimpsest;dur=" + milliseconds(e.Overhead) + ", archive;dur=" + milliseconds(0) + ", provider;dur=" + milliseconds(e.TTFB)
		}
		list = append(list, header{Name: serverTiming, Value: timing})
	}
	for i := range list {
		list[i].Words = words(strings.TrimPrefix(list[i].Name, ownPrefix), list[i].Value)
	}
	return list
}

const serverTiming = "Server-Timing"

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64)
}

// words explains one of our headers with its value.
func words(name, value string) string {
	switch name {
	case "Compression":
		return compressionWords(pipeline.Compression(value))
	case "Cache":
		return cacheWords(pipeline.Cache(value))
	case "Session-Source":
		return sourceWords(value)
	}
	if limited, is := strings.CutPrefix(name, "Ratelimit-"); is {
		return limitWords(limited)
	}
	return map[string]string{ //nolint:gosec // sentences, no secrets
		"Request-Id":     "The id of this request, in lists, logs and errors. Quote it to the person who helps.",
		"Error-Source":   "Whose error the answer was: the provider’s, passed on as it came, or the proxy’s own.",
		"Session-Id":     "The session that the request was counted to.",
		"Lane":           "The thread of that session. Subagents and side calls have threads of their own.",
		"Modules":        "How each module ended. Applied: it changed the prompt. Noop: there was nothing to do. Failed: it was undone. Skipped: it is not there.",
		"Tokens-Before":  "The prompt as the client sent it, in tokens of the model, estimated.",
		"Tokens-After":   "The prompt as it went to the provider, estimated.",
		"Tokens-Saved":   "The difference. Negative where modules put in more than was taken out.",
		"Levels":         "Turns at each level in the prompt: L0 verbatim, L1 tool results cut, L2 first sentences, L3 one line for a block.",
		"Archived":       "Messages that a compaction in this request no longer sends as they came. Their originals were stored before it was sent.",
		"Injected":       "What modules put into the prompt, in items: recovered by the bridge, recalled, patterns.",
		"Answered-From":  "The provider was not asked: the client’s request for its own summary was answered from Palimpsest’s compaction of the same history.",
		"Warning":        "What you should know: how often the thread was compressed, whether the prompt was truncated, and whether compression cost more than it saved.",
		"Context-Window": "How many tokens the model takes as input.",
		"Utilization":    "How full that is: as the client sent the prompt, then as it was sent.",
		"Dry-Run":        "What the pipeline would have done. The prompt went out as it came.",
		"Provider":       "Whose API the request went to.",
		"Attempts":       "How often the provider was asked. More than once after it found the prompt too long, or after a provider key failed and another one took the request.",
		"Overhead-Ms":    "What the proxy itself took before the provider was asked, in milliseconds.",
		serverTiming:     "The same for a browser’s tools: our own work, storing a compaction’s originals, and the wait for the provider’s first byte.",
	}[name]
}

func compressionWords(value pipeline.Compression) string {
	what := map[pipeline.Compression]string{
		pipeline.None:        "The prompt went out as the client sent it.",
		pipeline.Replayed:    "An earlier compaction’s form was sent again, byte for byte, so that the provider’s cache holds.",
		pipeline.Epoch:       "This request compressed older turns. Later ones replay the result.",
		pipeline.Emergency:   "The provider found the prompt too long; it was compressed and sent again.",
		pipeline.Truncated:   "No level was enough: turns were left out. Their originals are in the archive.",
		pipeline.Unreachable: "The prompt was over the target and nothing could bring it below.",
		pipeline.Bypassed:    "The request must not be edited, or asked not to be.",
	}[value]
	if what == "" {
		return "What was done to the prompt."
	}
	return what
}

func cacheWords(value pipeline.Cache) string {
	switch value {
	case pipeline.CacheMiss:
		return "No kept answer fitted, so the provider was asked."
	case pipeline.CacheHit:
		return "The same request had been answered before: that answer was given again, and the provider was not asked."
	case pipeline.CacheSemanticHit:
		return "The same question had been answered in other words: that answer was given again, and the provider was not asked."
	case pipeline.CacheOff:
	}
	return "Kept answers were not looked at. This is not the provider’s own prompt cache."
}

func sourceWords(value string) string {
	switch value {
	case "lineage":
		return "How the session was found: by its content, because the client named none."
	default:
		return "How the session was found: the client named it in " + value + "."
	}
}

func limitWords(name string) string {
	what, of, _ := strings.Cut(name, "-")
	unit := map[string]string{
		"Requests": "requests a minute", "Tokens": "tokens a minute", "Concurrency": "requests at once",
		"Day-Usd": "US dollars a day", "Month-Usd": "US dollars a month",
	}[of]
	if what == "Limit" {
		return "What the API key is held to, in " + unit + "."
	}
	return "What was left of it, in " + unit + "."
}
