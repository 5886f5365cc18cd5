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
	if e.Answer.Status >= 400 && e.Answer.ErrorFrom != "" {
		add("Error-Source", e.Answer.ErrorFrom)
	}
	if source := e.Answer.Signed["Session-Source"]; source != "" && e.Request.Session != uuid.Nil {
		add("Session-Id", e.Request.Session.String())
		add("Session-Source", source)
		add("Lane", e.Request.Lane.String())
	}
	if !strings.HasSuffix(e.Request.Endpoint, "_tokens") {
		for _, told := range modules.Catalog().Headers(*report, e.Request.Model != "") {
			add(told.Name, told.Value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Answer.Signed)) {
		if name != "Session-Source" && name != serverTiming {
			add(name, e.Answer.Signed[name])
		}
	}
	if e.Answer.Provider != "" {
		add("Provider", string(e.Answer.Provider))
		add("Attempts", strconv.Itoa(e.Answer.Attempts))
		add("Overhead-Ms", milliseconds(e.Times.Overhead))
		timing := e.Answer.Signed[serverTiming]
		if timing == "" {
			timing = "palimpsest;dur=" + milliseconds(e.Times.Overhead) + ", archive;dur=" + milliseconds(0) + ", provider;dur=" + milliseconds(e.Times.TTFB)
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
		"Request-Id":     "The id of this request in lists, logs and errors. Quote it when you ask for help.",
		"Error-Source":   "Source of the error: the provider (passed on unchanged) or the proxy.",
		"Session-Id":     "The session of the request.",
		"Lane":           "The thread of that session. Subagents and side calls have threads of their own.",
		"Modules":        "Result of each module. Applied: it changed the prompt. Noop: it had no work. Failed: it was undone. Skipped: it is not installed.",
		"Tokens-Before":  "The prompt as the client sent it, in tokens of the model, estimated.",
		"Tokens-After":   "The prompt as sent to the provider, estimated.",
		"Tokens-Saved":   "The difference. Negative if modules added more than they removed.",
		"Levels":         "Turns at each level in the prompt: L0 verbatim, L1 tool results cut, L2 first sentences, L3 outline of requests.",
		"Archived":       "Messages shortened by a compaction in this request. Their originals were stored before it was sent.",
		"Injected":       "Items that modules added to the prompt: restored by the bridge, recalled, patterns.",
		"Answered-From":  "The provider was not asked, because the client’s request for a summary was answered from Palimpsest’s compaction of the same history.",
		"Warning":        "Warnings: how often the thread was compressed, whether the prompt was truncated, and whether compression cost more than it saved.",
		"Context-Window": "Maximum input of the model, in tokens.",
		"Utilization":    "Share of the window filled: first as the client sent the prompt, then as it was sent to the provider.",
		"Dry-Run":        "Changes that the pipeline would have made. The prompt was sent unchanged.",
		"Provider":       "Whose API the request went to.",
		"Attempts":       "Number of attempts at the provider. More than one if it found the prompt too long, or if another provider key took over.",
		"Overhead-Ms":    "Time that the proxy added before the provider was asked, in milliseconds.",
		serverTiming:     "The same for a browser’s tools: our own work, storing a compaction’s originals, and the wait for the provider’s first byte.",
	}[name]
}

func compressionWords(value pipeline.Compression) string {
	what := map[pipeline.Compression]string{
		pipeline.None:        "The prompt went out as the client sent it.",
		pipeline.Replayed:    "The result of an earlier compaction was sent again, byte for byte, so that the provider’s cache stays valid.",
		pipeline.Epoch:       "This request compressed older turns. Later ones replay the result.",
		pipeline.Emergency:   "The provider found the prompt too long; it was compressed and sent again.",
		pipeline.Truncated:   "No level was enough, so turns were left out. Their originals are in the archive.",
		pipeline.Unreachable: "The prompt was over the target and could not be shortened enough.",
		pipeline.Bypassed:    "The request must not be edited, or asked for no edits.",
	}[value]
	if what == "" {
		return "Changes made to the prompt."
	}
	return what
}

func cacheWords(value pipeline.Cache) string {
	switch value {
	case pipeline.CacheMiss:
		return "No kept answer matched, so the provider was asked."
	case pipeline.CacheHit:
		return "The same request had been answered before. That answer was sent again, and the provider was not asked."
	case pipeline.CacheSemanticHit:
		return "The same question had been answered in other words. That answer was sent again, and the provider was not asked."
	case pipeline.CacheOff:
	}
	return "Kept answers were not used. This is not the provider’s own prompt cache."
}

func sourceWords(value string) string {
	switch value {
	case "lineage":
		return "How the session was found: by its content, because the client did not name it."
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
		return "Limit of the API key, in " + unit + "."
	}
	return "Remaining of the limit, in " + unit + "."
}
