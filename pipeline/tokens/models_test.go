package tokens_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/tokens"
)

func models(t testing.TB, overrides ...tokens.Model) *tokens.Models {
	t.Helper()
	table, err := tokens.NewModels(overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// long returns a price of OpenAI's that rises above 272,000 tokens.
func long(price tokens.Price) tokens.Price {
	price.LongAbove, price.LongInput, price.LongOutput = 272_000, 2, 1.5
	return price
}

func TestModelsHaveTheirProvidersWindowsAndPrices(t *testing.T) {
	t.Parallel()
	table := models(t)

	for name, want := range map[string]struct {
		window, input int
		price         tokens.Price
	}{
		"claude-opus-5-5":   {1_000_000, 1_000_000, tokens.Price{Input: 4, Output: 20, CacheRead: 0.2, CacheWrite: 5, CacheWrite1h: 8}},
		"claude-fable-5-1":  {1_000_000, 1_000_000, tokens.Price{Input: 10, Output: 50, CacheRead: 0.25, CacheWrite: 12.5, CacheWrite1h: 20}},
		"claude-opus-5":     {1_000_000, 1_000_000, tokens.Price{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25, CacheWrite1h: 10}},
		"claude-opus-4-8":   {1_000_000, 1_000_000, tokens.Price{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25, CacheWrite1h: 10}},
		"claude-opus-4-7":   {1_000_000, 1_000_000, tokens.Price{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25, CacheWrite1h: 10}},
		"claude-opus-4-6":   {1_000_000, 1_000_000, tokens.Price{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25, CacheWrite1h: 10}},
		"claude-sonnet-5":   {1_000_000, 1_000_000, tokens.Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5, CacheWrite1h: 4}},
		"claude-sonnet-4-6": {1_000_000, 1_000_000, tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, CacheWrite1h: 6}},
		"claude-sonnet-4-5": {200_000, 200_000, tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, CacheWrite1h: 6}},
		"claude-haiku-4-5":  {200_000, 200_000, tokens.Price{Input: 1, Output: 5, CacheRead: 0.1, CacheWrite: 1.25, CacheWrite1h: 2}},
		"claude-3-5-sonnet": {200_000, 200_000, tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, CacheWrite1h: 6}},
		"claude-fable-5-2":  {1_000_000, 1_000_000, tokens.Price{Input: 8, Output: 40, CacheRead: 0.2, CacheWrite: 10, CacheWrite1h: 16}},
		"claude-sonnet-5-5": {1_000_000, 1_000_000, tokens.Price{Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5, CacheWrite1h: 4}},
		"claude-haiku-5-5":  {1_000_000, 1_000_000, tokens.Price{Input: 0.1, Output: 0.5, CacheRead: 0.01, CacheWrite: 0.125, CacheWrite1h: 0.2, LongAbove: 100_000, LongInput: 5, LongOutput: 5}},
		"gpt-6.2-astra":     {1_050_000, 922_000, long(tokens.Price{Input: 8, Output: 40, CacheRead: 0.4, CacheWrite: 10, CacheWrite1h: 10})},
		"gpt-6.2-sol":       {1_050_000, 922_000, long(tokens.Price{Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5, CacheWrite1h: 2.5})},
		"gpt-6.1-terra":     {1_050_000, 922_000, long(tokens.Price{Input: 1, Output: 5, CacheRead: 0.05, CacheWrite: 1.25, CacheWrite1h: 1.25})},
		"gpt-5.6-cyber":     {400_000, 272_000, tokens.Price{Input: 12.5, Output: 75, CacheRead: 1.25, CacheWrite: 15.625, CacheWrite1h: 15.625}},
		"gpt-6-sol":         {1_050_000, 922_000, long(tokens.Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5, CacheWrite1h: 2.5})},
		"gpt-6-luna":        {1_050_000, 922_000, long(tokens.Price{Input: 0.1, Output: 0.5, CacheRead: 0.01, CacheWrite: 0.125, CacheWrite1h: 0.125})},
		"gpt-6-astra":       {1_050_000, 922_000, long(tokens.Price{Input: 10, Output: 50, CacheRead: 1, CacheWrite: 12.5, CacheWrite1h: 12.5})},
		"gpt-5.6-sol":       {1_050_000, 922_000, long(tokens.Price{Input: 4, Output: 20, CacheRead: 0.4, CacheWrite: 5, CacheWrite1h: 5})},
		"gpt-5.5":           {1_050_000, 922_000, long(tokens.Price{Input: 5, Output: 30, CacheRead: 0.5, CacheWrite: 5, CacheWrite1h: 5})},
		"gpt-5.4-mini":      {400_000, 272_000, tokens.Price{Input: 0.75, Output: 4.5, CacheRead: 0.075, CacheWrite: 0.75, CacheWrite1h: 0.75}},
		"gpt-4o":            {128_000, 128_000, tokens.Price{Input: 2.5, Output: 10, CacheRead: 1.25, CacheWrite: 2.5, CacheWrite1h: 2.5}},
	} {
		model := table.Lookup(name)
		if model.Name != name || !model.Known || model.Family == "" || model.Window != want.window || model.InputLimit(0) != want.input {
			t.Errorf("%s: %+v, want a window of %d and %d tokens of input", name, model, want.window, want.input)
		}
		if model.Price != want.price {
			t.Errorf("%s: price %+v, want %+v", name, model.Price, want.price)
		}
	}
}

func TestModelsAreFoundUnderEveryNameTheyGoBy(t *testing.T) {
	t.Parallel()
	table := models(t)

	for name, want := range map[string]string{
		"claude-sonnet-4-5-20250929": "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5": "claude-sonnet-4-5", "anthropic/claude-opus-4.5": "claude-opus-4-5",
		"claude-sonnet-4-20250514": "claude-sonnet-4", "claude-opus-4-1-20250805": "claude-opus-4-1", "claude-3-5-sonnet-latest": "claude-3-5-sonnet",
		"claude-sonnet-4-5@20250929": "claude-sonnet-4-5", "claude-opus-5-5[1m]": "claude-opus-5-5", "claude-opus-5": "claude-opus-5", "claude-opus-5-20260724": "claude-opus-5",
		"openai/gpt-4o-2024-08-06": "gpt-4o", "gpt-4o-mini-2024-07-18": "gpt-4o-mini", "gpt-4o-mini": "gpt-4o-mini", "gpt-5-mini": "gpt-5-mini", "gpt-5": "gpt-5",
		"gpt-5.1-codex-mini": "gpt-5.1-codex-mini", "gpt-5.1-2025-11-13": "gpt-5.1", "ft:gpt-4o-2024-08-06:team::id": "gpt-4o", "o3": "o3", "o4-mini-2025-04-16": "o4-mini",
		"gpt-4.1-nano": "gpt-4.1-nano", "gpt-5.6-luna-pro": "gpt-5.6-luna", "gpt-5-chat-latest": "gpt-5-chat", "openai/gpt-oss-120b:free": "gpt-oss-120b",
	} {
		if model := table.Lookup(name); model.Name != want || !model.Known {
			t.Errorf("%s: found %q, want %q", name, model.Name, want)
		}
	}
}

func TestAnotherVersionIsAnotherModel(t *testing.T) {
	t.Parallel()
	table := models(t)

	for _, name := range []string{"gpt-5.7", "gpt-52", "gpt-4-32k", "gpt-4o2", "claude-opus-5-6", "claude-opus-4-9-20261101", "claude-opus-6", "o31", "", "claude", "gpt"} {
		if model := table.Lookup(name); model.Known {
			t.Errorf("%q is taken for %s", name, model.Name)
		}
	}
}

// B5.
func TestInputLimitIsTheProvidersOrWhatTheReserveLeaves(t *testing.T) {
	t.Parallel()
	table := models(t)

	for _, test := range []struct {
		model          string
		reserved, want int
	}{
		{"gpt-6-sol", 0, 922_000},
		{"gpt-6-sol", 128_000, 922_000},
		{"gpt-5.4-mini", 10_000, 272_000},
		{"claude-sonnet-4-5", 0, 200_000},
		{"claude-sonnet-4-5", 32_000, 168_000},
		{"claude-sonnet-4-5", 500_000, 136_000}, // no answer has more than 64,000
		{"claude-opus-5-5", 128_000, 872_000},
		{"gpt-4o", 16_384, 111_616},
		{"gpt-4", 8192, 4096}, // half the window, however much is reserved
		{"claude-haiku-4-5", -5, 200_000},
	} {
		if got := table.Lookup(test.model).InputLimit(test.reserved); got != test.want {
			t.Errorf("%s with %d reserved: limit %d, want %d", test.model, test.reserved, got, test.want)
		}
	}
}

// A limit on input only counts below the window. It is that of the listed window, and goes with it.
func TestAnotherWindowHasNoLimitOnInput(t *testing.T) {
	t.Parallel()
	if got := (tokens.Model{Known: true, Window: 100, MaxInput: 200}).InputLimit(10); got != 90 {
		t.Errorf("a limit above the window: %d, want 90", got)
	}
	if got := models(t).Lookup("gpt-5.4-mini").WithWindow(1_000_000).InputLimit(0); got != 1_000_000 {
		t.Errorf("a larger window: limit %d, want 1000000", got)
	}
}

// A named region counts before the factor of all others.
func TestNamedRegionHasItsOwnPrice(t *testing.T) {
	t.Parallel()
	model := tokens.Model{Price: tokens.Price{Input: 10}, Rates: tokens.Rates{Regions: map[string]float64{"*": 1.5, "us": 2}}}
	for region, want := range map[string]float64{"": 10, "us": 20, "eu": 15} {
		if got := model.On(tokens.Terms{Region: region}).Input; got != want {
			t.Errorf("region %q: %v, want %v", region, got, want)
		}
	}
}

// B7.
func TestUnknownModelHasNoLimit(t *testing.T) {
	t.Parallel()
	model := models(t).Lookup("someone/their-model-7b")

	if model.Known || model.InputLimit(4096) != 0 || model.Window != 128_000 || model.Price != (tokens.Price{}) {
		t.Errorf("%+v: want an unknown model without a limit or a price", model)
	}
	if got := model.WithWindow(50_000); !got.Known || got.InputLimit(10_000) != 40_000 {
		t.Errorf("%+v: want a limit once the window is set", got)
	}
}

// B7.
func TestLongWindowIsRecognized(t *testing.T) {
	t.Parallel()
	table := models(t)

	for name, want := range map[string]int{
		"claude-sonnet-4-5": 200_000, "claude-sonnet-4-5[1m]": 1_000_000, "anthropic/claude-sonnet-4-20250514[1m]": 1_000_000,
		"claude-opus-5-5[1m]": 1_000_000, "claude-haiku-4-5[1m]": 200_000, "gpt-4o[1m]": 128_000,
	} {
		if got := table.Lookup(name).Window; got != want {
			t.Errorf("%s: window %d, want %d", name, got, want)
		}
	}
	if got := table.Lookup("claude-sonnet-4-5").WithLongWindow().InputLimit(0); got != 1_000_000 {
		t.Errorf("asked for by a header: limit %d, want 1000000", got)
	}
}

func TestModelsThatBindTheirThinkingSaySo(t *testing.T) {
	t.Parallel()
	table := models(t)

	for name, want := range map[string]bool{
		"claude-fable-5-1": true, "claude-fable-5-2": true, "claude-mythos-5-1": true, "claude-mythos-5-2": true, "claude-opus-5-5": true, "claude-sonnet-5-5": true, "claude-haiku-5-5": true,
		"claude-opus-5": false, "claude-sonnet-5": false, "claude-fable-5": false, "claude-sonnet-4-5": false, "gpt-6-sol": false,
		"claude-opus-7": true, // one that is not in the catalog yet
	} {
		if got := table.Lookup(name).BoundThinking; got != want {
			t.Errorf("%s: bound thinking is %t, want %t", name, got, want)
		}
	}
}

func TestModelsKnowTheShortestPrefixThatIsCached(t *testing.T) {
	t.Parallel()
	table := models(t)

	for name, want := range map[string]int{
		"claude-opus-5": 512, "claude-fable-5": 512, "claude-mythos-5": 512, "claude-sonnet-5-5": 512, "claude-sonnet-5": 1024, "claude-sonnet-4-5": 1024, "claude-sonnet-4-6": 1024,
		"claude-opus-4-8": 1024, "claude-opus-4-1": 1024, "claude-opus-4-7": 2048, "claude-3-5-haiku": 2048, "claude-opus-4-5": 4096, "claude-opus-4-6": 4096, "claude-haiku-4-5": 4096,
	} {
		if got := table.Lookup(name).Cache.Min; got != want {
			t.Errorf("%s: %d tokens, want %d", name, got, want)
		}
	}
}

func TestOverridesAddAndReplaceModels(t *testing.T) {
	t.Parallel()
	table := models(t, tokens.Model{Name: "house-model", Window: 32_000, Price: tokens.Price{Input: 1, Output: 2}}, tokens.Model{Name: "gpt-4o", Window: 64_000, MaxInput: 60_000})

	added, replaced := table.Lookup("house-model-latest"), table.Lookup("gpt-4o-2024-11-20")
	if !added.Known || added.Window != 32_000 || added.Price.CacheRead != 1 || added.TokensPerO200k != 1 || added.Family != "house-model" {
		t.Errorf("added model is %+v", added)
	}
	if replaced.InputLimit(0) != 60_000 || table.Lookup("gpt-4o-mini").Window != 128_000 {
		t.Errorf("replaced model is %+v", replaced)
	}
	for _, wrong := range []tokens.Model{{Window: 1000}, {Name: "no-window"}, {Name: "negative", Window: -1}} {
		if _, err := tokens.NewModels(wrong); err == nil || !strings.Contains(err.Error(), wrong.Name) {
			t.Errorf("%+v: error %v, want one that names it", wrong, err)
		}
	}
}

func TestEveryKindOfTokenHasItsPrice(t *testing.T) {
	t.Parallel()
	price := tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, CacheWrite1h: 6}

	for _, test := range []struct {
		input, read, write, hour, output int
		want                             int64
	}{
		{1_000_000, 0, 0, 0, 0, 3_000_000}, {0, 1_000_000, 0, 0, 0, 300_000}, {0, 0, 1_000_000, 0, 0, 3_750_000}, {0, 0, 0, 1_000_000, 0, 6_000_000},
		{0, 0, 0, 0, 1_000_000, 15_000_000}, {10, 180_000, 2_000, 0, 700, 30 + 54_000 + 7_500 + 10_500}, {0, 5, 0, 0, 0, 2}, {0, 0, 0, 0, 0, 0},
	} {
		if got := price.MicroUSD(test.input, test.read, test.write, test.hour, test.output); got != test.want {
			t.Errorf("%+v: %d, want %d", test, got, test.want)
		}
	}
}

// A longer prompt raises the price of the whole request, its answer included.
func TestLongPromptsCostMore(t *testing.T) {
	t.Parallel()
	price := long(tokens.Price{Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5, CacheWrite1h: 4})
	for _, test := range []struct {
		input, read, write, hour, output int
		want                             int64
	}{
		{272_000, 0, 0, 0, 1000, 544_000 + 10_000},
		{272_001, 0, 0, 0, 1000, 1_088_004 + 15_000},
		{1000, 270_000, 1000, 1000, 1000, 2*(2_000+27_000+2_500+4_000) + 15_000},
		{0, 0, 0, 0, 400_000, 4_000_000},
	} {
		if got := price.MicroUSD(test.input, test.read, test.write, test.hour, test.output); got != test.want {
			t.Errorf("%+v: %d, want %d", test, got, test.want)
		}
	}
	if short, dear := price.Of(272_000), price.Of(272_001); short.Input != 2 || dear != (tokens.Price{Input: 4, Output: 15, CacheRead: 0.2, CacheWrite: 5, CacheWrite1h: 8}) {
		t.Errorf("%+v, %+v", short, dear)
	}
}

func TestOwnPriceHoldsInPlaceOfTheListPrice(t *testing.T) {
	t.Parallel()
	table := models(t)
	overrides := tokens.Overrides{
		Windows: map[string]int{"house-model": 9000},
		Prices: map[string]tokens.Price{
			"claude-sonnet-4-5": {Input: 1.5, Output: 9}, "house-model": {Input: 0.2, Output: 0.4}, "claude-opus-5": {},
			"gpt-5.4": {Input: 1, Output: 2, CacheRead: 0.9, CacheWrite: 0.8, CacheWrite1h: 0.7},
		},
	}
	of := func(name string) tokens.Model { return overrides.On(table.Lookup(name), name) }
	for name, want := range map[string]tokens.Price{
		"claude-sonnet-4-5":          {Input: 1.5, Output: 9, CacheRead: 0.15, CacheWrite: 1.875, CacheWrite1h: 3},
		"claude-sonnet-4-5-20250929": {Input: 1.5, Output: 9, CacheRead: 0.15, CacheWrite: 1.875, CacheWrite1h: 3},
		"house-model":                {Input: 0.2, Output: 0.4, CacheRead: 0.2, CacheWrite: 0.2, CacheWrite1h: 0.2},
		"claude-opus-5":              {Free: true},
		"gpt-5.4":                    long(tokens.Price{Input: 1, Output: 2, CacheRead: 0.9, CacheWrite: 0.8, CacheWrite1h: 0.7}),
		"claude-opus-5-5":            table.Lookup("claude-opus-5-5").Price,
	} {
		if got := of(name).Price; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if model := of("house-model"); model.Window != 9000 || !model.Known {
		t.Errorf("the window is %d", model.Window)
	}
	if fast := of("claude-opus-5").On(tokens.Terms{Tier: "fast"}); fast != (tokens.Price{Free: true}) {
		t.Errorf("what is free costs %+v in another tier", fast)
	}
}

func BenchmarkLookup(b *testing.B) {
	table := models(b)
	b.ReportAllocs()
	for b.Loop() {
		table.Lookup("claude-sonnet-4-5-20250929")
	}
}
