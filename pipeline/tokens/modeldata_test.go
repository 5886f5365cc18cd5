package tokens_test

import (
	"encoding/json"
	"os"
	"testing"

	"palimpsest/pipeline/sharedtest"
)

// B7: the table agrees with what is listed elsewhere, but for what is known to be
// wrong there.
func TestTableAgreesWithListedModels(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(sharedtest.Path(t, "requirements", "models.json"))
	if err != nil {
		t.Fatal(err)
	}
	var listed map[string]map[string]struct {
		Window  int `json:"contextWindow"`
		Input   int `json:"maxInputTokens"`
		Pricing struct {
			Input      float64 `json:"input"`
			Output     float64 `json:"output"`
			CacheRead  float64 `json:"cacheRead"`
			CacheWrite float64 `json:"cacheWrite"`
		} `json:"pricing"`
	}
	if err := json.Unmarshal(content, &listed); err != nil {
		t.Fatal(err)
	}
	wrong := map[string]bool{"claude-sonnet-4-5": true, "claude-sonnet-4-5-20250929": true} // the provider says 200,000
	table, compared := models(t), 0
	for _, family := range []string{"anthropic", "openai-native"} {
		for name, want := range listed[family] {
			if want.Window == 0 || wrong[name] { // no window: it draws
				continue
			}
			compared++
			model := table.Lookup(name)
			if !model.Known || model.Window != want.Window || model.InputLimit(0) != want.Input {
				t.Errorf("%s: window %d and %d of input, listed are %d and %d", name, model.Window, model.InputLimit(0), want.Window, want.Input)
			}
			got := model.Price
			if got.Input != want.Pricing.Input || got.Output != want.Pricing.Output ||
				want.Pricing.CacheRead > 0 && got.CacheRead != want.Pricing.CacheRead || want.Pricing.CacheWrite > 0 && got.CacheWrite != want.Pricing.CacheWrite {
				t.Errorf("%s: price %+v, listed is %+v", name, got, want.Pricing)
			}
			if model.Cache.Min == 0 {
				t.Errorf("%s: nobody knows how short a prefix is cached", name)
			}
		}
	}
	if compared < 30 {
		t.Errorf("%d models were compared", compared)
	}
}
