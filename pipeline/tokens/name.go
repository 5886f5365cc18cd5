package tokens

import (
	"maps"
	"strconv"
	"strings"
	"time"
)

// find finds a model by a lowercase name. It removes parts that say where or how a model runs, and only parts
// that can't change which model it is:
//
//   - the seller and its API: "openrouter/anthropic/…", "models/…", "bedrock/us-east-1/…",
//     "bedrock/converse/…", "us.anthropic.…-v1:0", "projects/…/publishers/google/models/…",
//     "accounts/fireworks/models/…", "databricks-…"
//   - a day: "-20250929", "@20250929", and "-2024-08-06" of the makers who write it that way
//   - "-latest", OpenRouter's ":beta" and its like, Claude's "-thinking" and "-fast"
//   - a local server's packing: "-awq", "-q4_k_m"
//
// All other names of a model are aliases in the catalog.
func (t *table) find(name string) (Model, bool) {
	name, isTuned := strings.CutPrefix(name, "ft:")
	if isTuned {
		name, _, _ = strings.Cut(name, ":") // "ft:gpt-4o-mini-2024-07-18:team::id"
	}
	name = undotted(t.unsold(name))
	if strings.HasPrefix(name, "claude-") {
		name = strings.ReplaceAll(name, ".", "-") // "claude-sonnet-4.5", as routers write it
	}
	model, known := t.bare(name)
	if !known && strings.HasPrefix(name, "claude-") {
		model, known = t.bare(versionLast(name))
	}
	if isTuned {
		model = model.inTier("fine-tuned")
	}
	return model, known
}

// unsold removes the seller of a model.
func (t *table) unsold(name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name[strings.LastIndexByte(name, '/')+1:]
	}
	for {
		first, rest, found := strings.Cut(strings.TrimPrefix(name, "~"), "/")
		switch _, model, isBelow := strings.Cut(rest, "/models/"); {
		case isBelow && first == "accounts":
			return withPoint(model)
		case isBelow && (first == "projects" || first == "publishers"):
			return model
		case !found || !t.prefixes[first] && !isRegion(first):
			return strings.TrimPrefix(strings.TrimPrefix(name, "~"), "databricks-")
		}
		name = rest
	}
}

// withPoint replaces the "p" in a version of Fireworks by a point: "deepseek-v3p2".
func withPoint(name string) string {
	for at := 1; at < len(name)-1; at++ {
		if name[at] == 'p' && isNumber(name[at-1:at]) && isNumber(name[at+1:at+2]) {
			return name[:at] + "." + name[at+1:]
		}
	}
	return name
}

// undotted removes Amazon Bedrock's additions to a name: "us.anthropic.…-v1:0".
func undotted(name string) string {
	rest := name
	if first, after, found := strings.Cut(rest, "."); found && isRegion(first) {
		rest = after
	}
	first, rest, found := strings.Cut(rest, ".")
	switch first {
	case "anthropic", "meta", "amazon", "mistral", "deepseek", "openai", "qwen", "cohere", "moonshot", "moonshotai", "minimax", "google", "zai", "nvidia":
	default:
		found = false
	}
	if !found {
		return name
	}
	if size := strings.LastIndexByte(rest, ':'); size > 0 && strings.HasSuffix(rest, "k") { // "…-v1:0:200k"
		rest = rest[:size]
	}
	version, number, isNumbered := strings.Cut(rest, ":")
	if isNumbered = isNumbered && isNumber(number); isNumbered {
		rest = version
	}
	if dash := strings.LastIndexByte(rest, '-'); dash > 0 && len(rest)-dash <= 3 {
		number, hasV := strings.CutPrefix(rest[dash+1:], "v")
		if isNumber(number) && (hasV || isNumbered) {
			rest = rest[:dash]
		}
	}
	return rest
}

// isRegion reports whether a part of a name is a region.
func isRegion(part string) bool {
	zone, rest, isLong := strings.Cut(part, "-")
	switch zone {
	case "us", "eu", "ap", "apac", "ca", "sa", "me", "af", "jp", "au", "global":
	default:
		return false
	}
	return !isLong || part == "us-gov" || isNumber(rest[len(rest)-min(1, len(rest)):]) // "us-east-1"
}

// versionLast returns "claude-sonnet-4-5" for "claude-4-5-sonnet".
func versionLast(name string) string {
	parts := strings.Split(name, "-")
	numbers := 1
	for numbers < len(parts) && len(parts[numbers]) <= 2 && isNumber(parts[numbers]) {
		numbers++
	}
	if numbers == 1 || numbers == len(parts) || numbers+1 < len(parts) && len(parts[numbers+1]) <= 2 {
		return name
	}
	sorted := append([]string{parts[0], parts[numbers]}, parts[1:numbers]...)
	return strings.Join(append(sorted, parts[numbers+1:]...), "-")
}

// bare finds a model by its own name, or by that name with an ending that does not change the model.
func (t *table) bare(name string) (Model, bool) {
	if model, known := t.byName[name]; known {
		return model, true
	}
	for _, end := range t.endings {
		rest, is := end.cut(name)
		if !is || rest == "" {
			continue
		}
		if model, known := t.bare(rest); known && (end.of == "" || strings.Contains(end.of, model.Provider)) {
			return end.as(model), true
		}
	}
	return Model{}, false
}

// ending is an optional ending of a model's name.
type ending struct {
	cut func(name string) (rest string, is bool)
	of  string // providers whose models may have it; "" for all
	as  func(Model) Model
}

// endings returns the optional endings of names.
func endings() []ending {
	return []ending{
		{cut: cutWord("-latest", "@latest", "@default", ":latest", ":beta", ":online", ":thinking", ":extended", ":nitro", ":floor", ":exacto", ":cloud", "-cloud"), as: same},
		{cut: cutWord(":free"), as: func(m Model) Model { m.Price = Price{Free: true}; return m }},
		{cut: cutWord("-thinking"), of: providerAnthropic, as: same},
		{cut: cutWord("-fast"), of: providerAnthropic, as: func(m Model) Model { return m.inTier("fast") }},
		{cut: cutWord("-none", "-minimal", "-low", "-medium", "-high", "-xhigh"), of: providerOpenAI, as: same},
		{cut: cutWord("-001", "-002", "@001", "@002"), of: "google", as: same},
		{cut: cutWord("-maas"), as: same},
		{cut: cutDay("-", "20060102"), as: same},
		{cut: cutDay("@", "20060102"), as: same},
		{cut: cutDay("-", time.DateOnly), of: providerAnthropic + providerOpenAI, as: same},
		{cut: cutPacking, as: unpriced},
	}
}

func same(m Model) Model { return m }

// unpriced returns a model without a price, since someone runs it at an unlisted one.
func unpriced(m Model) Model { m.Price = Price{}; return m }

func cutWord(words ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, word := range words {
			if rest, is := strings.CutSuffix(name, word); is {
				return rest, true
			}
		}
		return name, false
	}
}

// cutDay cuts a valid day.
func cutDay(before, layout string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		at := len(name) - len(layout) - len(before)
		if at <= 0 || name[at:at+len(before)] != before {
			return name, false
		}
		day, err := time.Parse(layout, name[at+len(before):])
		return name[:at], err == nil && day.Year() >= 2022 && day.Year() < 2100
	}
}

// cutPacking cuts the packing of a model's weights: "-fp8", ":32b-instruct-q4_k_m".
func cutPacking(name string) (string, bool) {
	at := strings.LastIndexAny(name, "-:")
	if at <= 0 {
		return name, false
	}
	if !isPacking(name[at+1:]) {
		return name, false
	}
	return name[:at], true
}

func isPacking(word string) bool {
	switch word {
	case "fp4", "fp8", "fp16", "bf16", "int4", "int8", "w4a16", "w8a8", "awq", "gptq", "gguf", "ggml", "mlx", "mxfp4", "nvfp4", "4bit", "6bit", "8bit", "dynamic", "bnb":
		return true
	}
	if kind := strings.TrimPrefix(word, "i"); len(kind) > 1 && kind[0] == 'q' { // "q4_k_m", "iq2_xs"
		bits, _, _ := strings.Cut(kind[1:], "_")
		return isNumber(bits)
	}
	return false
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)
	return err == nil
}

// inTier returns a model with the price of a tier, or without a price if the tier is unlisted.
func (m Model) inTier(tier string) Model {
	factor, known := m.Tiers[tier]
	if !known {
		return unpriced(m)
	}
	m.Price = m.Price.times(factor)
	m.Tiers = maps.Clone(m.Tiers)
	m.Tiers[tier] = 1 // already included in the price
	return m
}
