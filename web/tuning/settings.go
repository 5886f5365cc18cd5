package tuning

import (
	"cmp"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/web/components"
)

// card is a box with settings of one module.
type card struct {
	Module, Title, Sub string
	Docs               string // page and section that explain its settings
	Settings           []setting
}

// cards are all settings of the pipeline in the order of the page, numbers with the
// bounds that the pipeline holds them to.
func cards() []card {
	cards, bounds := slices.Concat(ipcCards(), memoryCards(), cacheCards()), pipeline.AllBounds()
	for _, card := range cards {
		for i := range card.Settings {
			card.Settings[i].Docs = cmp.Or(card.Settings[i].Docs, card.Docs)
			if s := &card.Settings[i]; s.Kind == number {
				s.Low, s.High = bounds[s.path()].Lowest, bounds[s.path()].Highest
			}
		}
	}
	return cards
}

// settings are all settings of the pipeline.
func settings() []setting {
	var all []setting
	for _, card := range cards() {
		all = append(all, card.Settings...)
	}
	return all
}

// settingOf returns the setting with a path.
func settingOf(path string) (setting, bool) {
	all := settings()
	at := slices.IndexFunc(all, func(s setting) bool { return s.path() == path })
	if at < 0 {
		return setting{}, false
	}
	return all[at], true
}

// with returns the settings as those of a module.
func with(module string, settings ...setting) []setting {
	for i := range settings {
		settings[i].Module = module
	}
	return settings
}

func share(name, label, hint string) setting {
	return setting{Name: name, Kind: number, Label: label, Hint: hint, Step: "0.01"}
}

func whole(name, label, unit, step, hint string) setting {
	return setting{Name: name, Kind: number, Label: label, Unit: unit, Hint: hint, Step: step}
}

func sw(name, label, hint string) setting {
	return setting{Name: name, Kind: toggle, Label: label, Hint: hint}
}

func one(name, label, hint string, options ...components.Option) setting {
	return setting{Name: name, Kind: choice, Label: label, Hint: hint, Options: options}
}

// targetPath and goalPath are the watermarks; the second follows the first down.
const (
	targetPath   = "ipc.targetUtilization"
	goalPath     = "ipc.compressTo"
	minClearPath = "ipc.minClear"
	turnsPath    = "ipc.preserveLastTurns"
	summaryPath  = "ipc.llmCompression"
)

// dialCard is the card that holds the target alone, beside presets and slider.
const dialCard = "dial"

func ipcCards() []card {
	return []card{
		{Module: "ipc", Title: dialCard, Docs: "compaction#when", Settings: with("ipc",
			share("targetUtilization", "Target utilization", "share of the model’s context window that a request may fill before the oldest turns are compressed"),
		)},
		{Module: "ipc", Title: "When", Docs: "compaction#when", Sub: "what decides that old turns are compressed", Settings: with(
			"ipc",
			one("trigger", "Compress", "Only near the limit: prompts below the target go out as they are. Spend less: as soon as reading old turns again has cost as much as a compaction, so that the model sees shorter forms of them earlier.",
				components.TriggerOptions()...),
			whole("minContext", "Spend less touches nothing up to", "tokens", "1000", "More keeps more of the old turns word for word, and saves less."),
		)},
		{Module: "ipc", Title: "Limits", Docs: "compaction#the-order", Sub: "what a compaction may take", Settings: with(
			"ipc",
			share("compressTo", "Compress down to", "Share of the window that is filled after a compaction. A lower target lowers it along."),
			share("minClear", "Free at least", "Share of the window; a compaction that frees less is not made."),
			whole("preserveLastTurns", "Newest turns kept verbatim", "turns", "1", ""),
			whole("preserveTokens", "Newest tokens kept verbatim", "tokens", "1000", "Counts where it keeps more than the turns do."),
			sw("preserveSystem", "System prompt and tool definitions stay verbatim", "No level touches them yet: off changes nothing so far."),
			one("deepestLevel", "Deepest level", "How far old turns may fade.",
				components.Option{Value: "0", Label: "Off"}, components.Option{Value: "1", Label: "L1"}, components.Option{Value: "2", Label: "L2"}, components.Option{Value: "3", Label: "L3"}),
		)},
		{Module: "ipc", Title: "Summaries at L2 and L3", Docs: "compaction#summaries-by-a-model", Sub: "a model writes them, in the background and with your provider key", Settings: with(
			"ipc",
			sw("llmCompression", "Summaries by a model", "Off: first sentences and one line a block, no model is asked. Off forgets what is set below."),
			setting{Name: "llmCompression.model", Kind: word, Label: "Model", Hint: "A model of the conversation’s provider, or same for the conversation’s own."},
			setting{Name: "llmCompression.prompt", Kind: paragraph, Label: "Own prompt", Hint: "What is asked for in place of our words; empty: ours. At most 20,000 bytes."},
			optional(whole("llmCompression.maxTokens", "Answer of at most", "tokens", "100", "Empty: as many as a summary may have.")),
			setting{Name: "llmCompression.timeout", Kind: word, Label: "Patience", Hint: "For the whole of it, such as 30s, up to 10m. Empty: 30s."},
			optional(whole("llmCompression.reserveTokens", "Write ahead with", "tokens left", "1000", "A summary is written as soon as a prompt leaves fewer tokens. Empty: after each compaction only.")),
			optional(whole("llmCompression.keepRecentTokens", "And leave out the newest", "tokens", "1000", "Empty: as many as preserveTokens.")),
		)},
		{Module: "ipc", Title: "Details", Docs: "compaction#where-the-levels-are-not-enough", Settings: with(
			"ipc",
			share("idleUtilization", "Plan ahead above", "Share of the window. The compaction is made when the provider’s cache has gone cold."),
			setting{Name: "keepLastLadder", Kind: numbers, Label: "Shrink the preserved turns to", Hint: "Falling numbers from 100 to 1, tried one after the other where a compaction frees too little."},
			whole("blockTokens", "All L3 text of a thread", "tokens", "100", ""),
			explained("compaction#said-before", one("repeats", "Results said before", "Point: of a new tool result, lines that an earlier one in the prompt has word for word become a pointer to it. Results of reading and editing files stay whole.",
				components.Option{Value: pipeline.RepeatsKeep, Label: "Keep"}, components.Option{Value: pipeline.RepeatsPoint, Label: "Point"})),
			sw("observationMasking", "Placeholder for tool results at L1", "Off: the first 200 characters stay."),
			sw("archiveToBlob", "Keep the originals", "Off: no new compression either, unless the deepest level is off."),
			setting{Name: "contextWindow", Kind: window, Label: "Context window", Unit: "tokens", Hint: "auto, or 1,000 to 100,000,000 where clients assume another window than the model’s."},
			whole("maxBytes", "Prompt of at most", "bytes", "1000000", "Above it media become placeholders, the oldest first. 0: no limit; else 100,000 or more."),
			whole("warnAfterEpochs", "Warn of a thread after", "compactions", "1", "0: never."),
		)},
	}
}

// explained returns a setting that another section than that of its card explains.
func explained(docs string, s setting) setting {
	s.Docs = docs
	return s
}

func optional(s setting) setting {
	s.MayMiss = true
	return s
}

// placement is where a module puts what it adds.
func placement() setting {
	return one("placement", "Where it goes", "At the newest turn: a changed system prompt costs the provider’s whole cache.",
		components.Option{Value: "turn", Label: "Newest turn"}, components.Option{Value: "system", Label: "System prompt"})
}

// scopes are who shares something.
func scopes() []components.Option {
	return []components.Option{{Value: "session", Label: "Session"}, {Value: "key", Label: "API key"}, {Value: "workspace", Label: "Workspace"}}
}

// bridgeDocs explains what the bridge puts back.
const bridgeDocs = "memory#after-the-client-compacted-itself-compaction-bridge"

func memoryCards() []card {
	return []card{
		{Module: "compaction-bridge", Title: "What comes back", Docs: bridgeDocs, Sub: "after a client compacted itself", Settings: with(
			"compaction-bridge",
			whole("preserveLastTurns", "Last turns before it", "turns", "1", "Those that the client dropped."),
			sw("preserveActiveFiles", "Files at work", "With their content."),
			sw("preserveDirectives", "Standing orders", "“Always …”, “never …”, where the client’s summary lost them."),
			whole("maxTokens", "At most", "tokens", "500", ""),
			placement(),
		)},
		{Module: "compaction-bridge", Title: "When a client asks for its own summary", Docs: "compaction#answering-the-clients-own-compaction", Sub: "/compact, or at the client's limit", Settings: with(
			"compaction-bridge",
			one("clientCompaction", "Its request", "Answer: where a compaction of the same history is ready, the client gets its summary from it at once, without a model and without cost. Everything else, such as /compact with instructions, goes to the provider.",
				components.Option{Value: pipeline.ClientCompactionPass, Label: "Pass to the provider"}, components.Option{Value: pipeline.ClientCompactionAnswer, Label: "Answer where ready"}),
		)},
		{Module: "compaction-bridge", Title: "Details", Docs: bridgeDocs, Settings: with(
			"compaction-bridge",
			share("detectionThreshold", "Detection threshold", "Score from which a client that is not known is taken to have compacted itself."),
			setting{Name: "blobPrefix", Kind: word, Label: "Prefix of archive objects", Hint: "In a directory or bucket. Up to 200 bytes, no leading slash."},
		)},
		{Module: "rehydrator", Title: "What comes back", Docs: "memory#what-comes-back-when-someone-refers-to-it-rehydrator", Sub: "when someone refers to earlier turns", Settings: with(
			"rehydrator",
			setting{Name: "triggerPhrases", Kind: lines, Label: "Trigger phrases", Hint: "Beside those that are built in, one a line, up to 100."},
			whole("maxRehydrated", "At most", "turns", "1", ""),
			whole("maxTokens", "And at most", "tokens", "500", ""),
			one("scope", "Whose archives are searched", "", scopes()...),
			whole("searchDepthDays", "How far back", "days", "1", ""),
			share("similarityThreshold", "Similarity threshold", "Less similar turns stay out."),
			placement(),
			setting{Name: "embeddingModel", Kind: word, Label: "Embedding model", Hint: "Of your own provider: the archive is searched by meaning beside the text. Empty: text only."},
		)},
		{Module: "patterns", Title: "What goes in", Docs: "memory#patterns", Sub: "rules that your team has learnt", Settings: with(
			"patterns",
			whole("maxInjected", "Rules a thread gets at most", "rules", "1", ""),
			share("minSuccessRate", "Success rate of at least", "A rule that helped in fewer threads is disabled once it was used in a few."),
			one("review", "Review", "Auto: what was met in several sessions is used without anyone’s approval.",
				components.Option{Value: "required", Label: "Required"}, components.Option{Value: "auto", Label: "Auto"}),
			placement(),
		)},
	}
}

func cacheCards() []card {
	return []card{{Module: "semantic-cache", Title: "When an answer is given again", Docs: "answer-cache#which-requests", Sub: "looked up with what goes out in the end, wherever the module stands", Settings: with(
		"semantic-cache",
		share("similarity", "Similarity of at least", "Of two questions in other words."),
		whole("ttlSeconds", "Not older than", "seconds", "60", ""),
		one("scope", "Who shares answers", "", scopes()...),
		setting{Name: "embeddingModel", Kind: word, Label: "Embedding model", Hint: "Of your own provider. Empty: only the very same request is answered."},
	)}}
}
