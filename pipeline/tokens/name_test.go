package tokens_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/pipeline/tokens"
)

// W52: the 45 names that gateways, clouds, routers and local servers gave well-known models in
// public reports, each with the model that it stands for.
func TestModelsAreKnownByTheNamesThatServersGiveThem(t *testing.T) {
	t.Parallel()
	table := models(t)
	for name, want := range map[string]string{
		"claude-sonnet-4-5": "claude-sonnet-4-5", "claude-sonnet-4-5-20250929": "claude-sonnet-4-5", "claude-3-7-sonnet-latest": "claude-3-7-sonnet",
		"anthropic/claude-sonnet-4.5": "claude-sonnet-4-5", "anthropic/claude-opus-4.1": "claude-opus-4-1", "~anthropic/claude-sonnet-latest": "claude-sonnet-latest",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": "claude-sonnet-4-5", "global.anthropic.claude-opus-4-5-20251101-v1:0": "claude-opus-4-5",
		"claude-sonnet-4-5@20250929": "claude-sonnet-4-5", "vertex_ai/claude-sonnet-4-5": "claude-sonnet-4-5", "bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0": "claude-3-5-sonnet",
		"claude-sonnet-4-5[1m]": "claude-sonnet-4-5", "claude-sonnet-4-5-thinking": "claude-sonnet-4-5", "claude-opus-4-6-fast": "claude-opus-4-6",
		"gpt-4o-2024-11-20": "gpt-4o", "openai/gpt-4o": "gpt-4o", "openai/gpt-5:online": "gpt-5", "gpt-5-codex": "gpt-5-codex", "azure/gpt-4o": "gpt-4o", "o3-mini": "o3-mini",
		"chatgpt-4o-latest": "chatgpt-4o-latest", "ft:gpt-4o-mini-2024-07-18:org::abc": "gpt-4o-mini", "gpt-oss-120b": "gpt-oss-120b", "openai/gpt-oss-120b:free": "gpt-oss-120b",
		"deepseek-chat": "deepseek-chat", "deepseek-reasoner": "deepseek-reasoner", "deepseek/deepseek-v3.2": "deepseek-v3.2", "deepseek-ai/DeepSeek-V3.2": "deepseek-v3.2",
		"kimi-k2-0905-preview": "kimi-k2-0905", "moonshotai/kimi-k2-thinking": "kimi-k2-thinking", "glm-4.6": "glm-4.6", "z-ai/glm-4.6": "glm-4.6",
		"qwen3-coder-plus": "qwen3-coder-plus", "Qwen/Qwen3-Coder-480B-A35B-Instruct": "qwen3-coder", "grok-4": "grok-4", "x-ai/grok-code-fast-1": "grok-code-fast-1",
		"gemini-2.5-pro": "gemini-2.5-pro", "google/gemini-2.5-flash": "gemini-2.5-flash", "models/gemini-2.5-pro": "gemini-2.5-pro",
		"mistral-large-latest": "mistral-large-latest", "codestral-latest": "codestral-latest", "llama-3.3-70b-versatile": "llama-3.3-70b-versatile",
		"meta-llama/llama-3.3-70b-instruct": "llama-3.3-70b-instruct", "qwen2.5-coder:32b": "qwen2.5-coder-32b-instruct", "minimax/minimax-m2": "minimax-m2",

		// Others of the same kinds.
		"openrouter/anthropic/claude-opus-5.5:beta": "claude-opus-5-5", "claude-4.5-sonnet": "claude-sonnet-4-5", "claude-4-sonnet-20250514": "claude-sonnet-4",
		"projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929": "claude-sonnet-4-5", "publishers/google/models/gemini-2.5-flash-001": "gemini-2.5-flash",
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5", "bedrock/us-west-2/anthropic.claude-opus-4-6-v1": "claude-opus-4-6",
		"anthropic.claude-3-haiku-20240307-v1:0:200k": "claude-3-haiku", "meta.llama3-3-70b-instruct-v1:0": "llama-3.3-70b-instruct", "amazon.nova-pro-v1:0": "nova-pro-v1",
		"openai.gpt-oss-120b-1:0": "gpt-oss-120b", "qwen.qwen3-coder-480b-a35b-v1:0": "qwen3-coder", "azure/eu/gpt-4o-mini": "gpt-4o-mini", "gpt-35-turbo": "gpt-3.5-turbo",
		"bedrock/converse/anthropic.claude-sonnet-4-5-20250929-v1:0": "claude-sonnet-4-5", "azure/responses/gpt-5": "gpt-5", "openai/responses/gpt-5": "gpt-5", "databricks-claude-sonnet-4-5": "claude-sonnet-4-5",
		"accounts/fireworks/models/deepseek-v3p2": "deepseek-v3.2", "fireworks_ai/accounts/fireworks/models/kimi-k2p5": "kimi-k2.5", "fireworks_ai/accounts/fireworks/models/kimi-k2-instruct": "kimi-k2",
		"qwen3-coder:480b-cloud": "qwen3-coder", "hf.co/unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF:Q4_K_M": "qwen3-coder-30b-a3b-instruct", "mlx-community/Qwen3-30B-A3B-4bit": "qwen3-30b-a3b",
		"accounts/fireworks/models/glm-4.6": "glm-4.6", "zai-org/GLM-4.6-FP8": "glm-4.6", "qwen3-coder:30b": "qwen3-coder-30b-a3b-instruct", "gpt-oss:20b": "gpt-oss-20b",
		"hosted_vllm/Qwen/Qwen3-32B-AWQ": "qwen3-32b", "qwen2.5-coder:32b-q4_K_M": "qwen2.5-coder-32b-instruct", "gpt-5.4-mini-high": "gpt-5.4-mini", "gpt-6.1-sol-2026-10-28": "gpt-6.1-sol",
		" GPT-4o ": "gpt-4o", //nolint:gocritic // as typed
	} {
		if model := table.Lookup(name); model.Name != want || !model.Known || model.InputLimit(0) <= 0 {
			t.Errorf("%s: found %q, known %t, want %q", name, model.Name, model.Known, want)
		}
	}
}

// W52: a model whose name only looks like another's has neither its price nor its window.
func TestNamesThatOnlyLookAlikeAreOtherModels(t *testing.T) {
	t.Parallel()
	table := models(t)
	for _, name := range []string{
		"gpt-4o-audio-preview", "gpt-4o-realtime-preview", "gpt-4o-mini-tts", "gpt-4o-search-preview", "gpt-4o-transcribe", "gpt-5-image", "gpt-image-2", "o1-mini", "o1-preview", "o3-deep-research",
		"gpt-4-32k", "gpt-4-vision-preview", "gpt-4.5-preview", "gpt-5-codex-max", "gpt-5.5-mini", "gpt-6", "gpt-6-terra", "gpt-6.1", "gpt-6.1-luna", "gpt-7", "gpt-oss-240b", "gpt-oss", "gpt-5o",
		"deepseek-r1-distill-qwen-32b", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek-r1:32b", "deepseek-v3", "deepseek-coder", "deepseek.r1-v1:0",
		"qwen3-coder-480b", "qwen3:4b", "qwen2.5-coder:7b", "qwen2.5-coder", "qwen3-max-2026-01-23", "qwen-max", "qwen-plus-2026-05-01",
		"llama-3.3-8b-instruct", "llama3.3", "llama-3.1-405b-instruct", "meta-llama/Llama-3.3-70B-Instruct-Turbo", "grok-4-fast", "grok-4.1-fast", "grok-4-fast-reasoning", "grok-code-fast-2",
		"kimi-k2-turbo-preview", "kimi-k2.5-thinking", "glm-4.6-air", "glm-4.6v-flash", "gemini-2.5-pro-tts", "gemini-2.5-flash-live", "gemini-2.5-flash-lite-preview-06-17", "gemini-2.5-flash-image-preview",
		"minimax-m2-her", "mistral-large-3", "mistral-small-latest", "codestral-mamba", "claude-sonnet-4-55", "claude-opus-5-5-5", "claude-4-opus-5", "claude-haiku-4", "claude-sonnet", "claude-latest", "claude-code",
		"someone/gpt-4o", "evil/anthropic/claude-sonnet-4-5", "gpt-4o/evil", "gpt-4o-99999999", "gpt-4o-20241399", "gpt-4o-latest-v2", "gpt-4o:mine", "gpt-4o@team", "ft:my-model:org", "-latest", ":free", "@20250929",
		"us.claude-sonnet-4-5.v1", "anthropic.", "us.", "ft:", "models/", "~", strings.Repeat("gpt-4o-latest", 100), strings.Repeat("openai/", 30) + "x", "GPT-4o-audio",
	} {
		if model := table.Lookup(name); model.Known || model.Price != (tokens.Price{}) {
			t.Errorf("%q is taken for %s at %+v", name, model.Name, model.Price)
		}
	}
}

// W52: what a name says of how a model runs is in its price, or it has none.
func TestNamesSayWhatAModelCosts(t *testing.T) {
	t.Parallel()
	table := models(t)
	opus := table.Lookup("claude-opus-5-5").Price
	for name, want := range map[string]tokens.Price{
		"openai/gpt-oss-120b:free":     {Free: true},
		"gpt-oss-120b-mxfp4":           {},
		"qwen2.5-coder:32b-q8_0":       {},
		"qwen/qwen3-32b-awq":           {},
		"ft:gpt-4o-2024-08-06:t::i":    {Input: 3.75, Output: 15, CacheRead: 1.875, CacheWrite: 3.75, CacheWrite1h: 3.75},
		"ft:gpt-5.1-2025-11-13:t::i":   {},
		"claude-opus-5-5-fast":         {Input: 8, Output: 40, CacheRead: 0.4, CacheWrite: 10, CacheWrite1h: 16},
		"claude-sonnet-4-5-fast":       {},
		"claude-opus-5-5-thinking":     opus,
		"us.anthropic.claude-opus-5-5": opus,
		"gpt-4o-2024-05-13":            {Input: 5, Output: 15, CacheRead: 5, CacheWrite: 5, CacheWrite1h: 5},
	} {
		if got := table.Lookup(name).Price; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	fast := table.Lookup("claude-opus-5-5-fast")
	if got := fast.On(tokens.Terms{Tier: "fast"}); got != fast.Price {
		t.Errorf("asked for fast in both ways it costs %+v", got)
	}
}

// No name of another shape gets a price: what is found by chance is a listed name with nothing
// before it and a known ending behind it. No ending or reseller begins with "zq", as xai does with "x".
func TestNoOtherEndingFindsAModel(t *testing.T) {
	t.Parallel()
	table := models(t)
	names := catalogNames(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		tail := rapid.StringMatching(`[a-z]{2,9}[0-9]?`).Draw(t, "tail")
		for _, other := range []string{name + "-zq" + tail, name + "zq" + tail, "zq" + tail + name, "zq" + tail + "/" + name, name + ":zq" + tail} {
			if model := table.Lookup(other); model.Known {
				t.Errorf("%q is taken for %s", other, model.Name)
			}
		}
		if !table.Lookup(strings.ToUpper(name)).Known {
			t.Errorf("%s is not known in capitals", name)
		}
	})
}

// catalogNames returns the names of all models of the catalog.
func catalogNames(t testing.TB) []string {
	t.Helper()
	content, err := os.ReadFile("catalog.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(file.Models))
	for _, model := range file.Models {
		names = append(names, model.Name)
	}
	return names
}
