package pipeline_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
)

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()

	config := modules.Catalog().Default()

	if err := modules.Catalog().Validate(config); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(config.Modules, ","); got != "ipc,compaction-bridge,rehydrator,patterns" {
		t.Errorf("modules are %s", got)
	}
	ipc := pipeline.SettingsOf[ipc.Config](config)
	if ipc.TargetUtilization != 0.80 || ipc.CompressTo != 0.15 || ipc.MinClear != 0.10 || ipc.PreserveLastTurns != 5 || ipc.PreserveTokens != 22000 || ipc.BlockTokens != 8000 {
		t.Errorf("ipc is %+v", ipc)
	}
	if !slices.Equal(ipc.KeepLastLadder, []int{16, 12, 8, 6, 3, 1}) || ipc.ContextWindow.Tokens() != 0 {
		t.Errorf("ladder %v, window %v", ipc.KeepLastLadder, ipc.ContextWindow)
	}
	if ipc.MaxBytes != 20<<20 { // A14
		t.Errorf("a prompt may have %d bytes", ipc.MaxBytes)
	}
}

// contract is the section of the contract, word for word but for targetUtilization, compressTo, and
// preserveTokens: docs/decisions.md says why.
const contract = `
ipc:
  targetUtilization: 0.80   # act when the prompt exceeds this share of the context window
  compressTo: 0.15          # an epoch compresses down to this share
  minClear: 0.10            # and only if it frees at least this share of the window
  preserveLastTurns: 5      # never compress the N most recent turns
  preserveTokens: 22000     # nor the newest N tokens, whichever is more
  preserveSystem: true      # never compress the system message
  archiveToBlob: true       # off: no new compression either, unless deepestLevel is 0
  deepestLevel: 3
  blockTokens: 8000         # cap on all L3 text of a lane
  observationMasking: false # L1 leaves a placeholder instead of 200 characters
  llmCompression: false     # or {model, prompt, maxTokens, timeout}
  idleUtilization: 0.50     # plan ahead above this
  contextWindow: auto       # or a number
  keepLastLadder: [16, 12, 8, 6, 3, 1]
  warnAfterEpochs: 3
compaction-bridge:
  preserveLastTurns: 5
  preserveActiveFiles: true
  preserveDirectives: true
  detectionThreshold: 0.6
  blobPrefix: evictions
  maxTokens: 6000
rehydrator: {triggerPhrases: [as we said], maxRehydrated: 5, searchDepthDays: 90, similarityThreshold: 0.7, maxTokens: 4000, scope: session}
patterns: {maxInjected: 5, minSuccessRate: 0.6, review: required}
semantic-cache: {similarity: 0.92, ttlSeconds: 3600, embeddingModel: text-embedding-3-small, scope: person}
`

func TestTheContractsConfigIsAccepted(t *testing.T) {
	t.Parallel()

	config, err := modules.Catalog().Parse([]byte(contract))
	if err != nil {
		t.Fatal(err)
	}
	want := modules.Catalog().Default()
	pipeline.Change[rehydrator.Config](&want).TriggerPhrases = []string{"as we said"}
	pipeline.Change[rehydrator.Config](&want).MaxTokens = 4_000 // as the contract has it; the default is less
	if got, want := config.YAML(), want.YAML(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAConfigIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()

	config := modules.Catalog().Default()
	config.Modules = []string{"ipc"}
	pipeline.Change[ipc.Config](&config).ContextWindow = 64_000
	pipeline.Change[ipc.Config](&config).LLMCompression = ipc.LLMCompression{
		Model: "small", Prompt: "Tell what was asked.", MaxTokens: 2000, Timeout: 30 * time.Second, ReserveTokens: 40_000, KeepRecentTokens: 8_000,
	}

	fromYAML, err := modules.Catalog().Parse([]byte(config.YAML()))
	if err != nil {
		t.Fatal(err)
	}
	if fromYAML.YAML() != config.YAML() {
		t.Errorf("YAML came back as\n%s", fromYAML.YAML())
	}

	written, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := modules.Catalog().Parse(written)
	if err != nil {
		t.Fatal(err)
	}
	if fromJSON.YAML() != config.YAML() {
		t.Errorf("JSON came back as\n%s", fromJSON.YAML())
	}
	decoded, err := modules.Catalog().Decode(written)
	if err != nil {
		t.Fatal(err)
	}
	if decoded.YAML() != config.YAML() {
		t.Errorf("decoded JSON came back as\n%s", decoded.YAML())
	}
}

func TestAWrongValueIsRefusedWithItsPathAndRange(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ document, field, says string }{
		{"ipc: {targetUtilization: 1.5}", "ipc.targetUtilization", "1.5 is out of range; allowed is 0.30 to 0.95"},
		{"ipc: {targetUtilization: .nan}", "ipc.targetUtilization", "allowed is 0.30 to 0.95"},
		{"ipc: {targetUtilization: high}", "ipc.targetUtilization", `"high" must be a number`},
		{"ipc: {compressTo: 0.8}", "ipc.compressTo", "not below targetUtilization"},
		{"ipc: {preserveLastTurns: 0}", "ipc.preserveLastTurns", "allowed is 1 to 100"},
		{"ipc: {preserveLastTurns: 2.5}", "ipc.preserveLastTurns", `"2.5" must be a whole number`},
		{"ipc: {deepestLevel: 4}", "ipc.deepestLevel", "allowed is 0 to 3"},
		{"ipc: {preserveSystem: 7}", "ipc.preserveSystem", `"7" must be true or false`},
		{"ipc: {maxBytes: 99999}", "ipc.maxBytes", "99999 is out of range; allowed is 0 for no limit, or 100000 to 1000000000"},
		{"ipc: {maxBytes: 20MiB}", "ipc.maxBytes", "whole number"},
		{"ipc: {keepLastLadder: [3, 6]}", "ipc.keepLastLadder", "6 at place 2"},
		{"ipc: {keepLastLadder: 3}", "ipc.keepLastLadder", "must be a list of whole numbers"},
		{"ipc: {contextWindow: 12}", "ipc.contextWindow", "allowed is auto or 1000"},
		{"ipc: {contextWindow: big}", "ipc.contextWindow", `"big" must be a whole number`},
		{"ipc: {llmCompression: true}", "ipc.llmCompression", "neither false nor"},
		{"ipc: {llmCompression: {prompt: x}}", "ipc.llmCompression", "names no model"},
		{"ipc: {llmCompression: {model: x, speed: 1}}", "ipc.llmCompression", `"speed" is unknown`},
		{"ipc: {llmCompression: {model: x, timeout: soon}}", "ipc.llmCompression", "no duration"},
		{"ipc: {llmCompression: {model: x, reserveTokens: -1}}", "ipc.llmCompression", "reserveTokens -1 is out of range; allowed is 0 to 1000000"},
		{"ipc: {llmCompression: {model: x, keepRecentTokens: 2000000}}", "ipc.llmCompression", "keepRecentTokens 2000000 is out of range"},
		{"ipc: {llmCompression: {model: x, keepRecentTokens: 1.5}}", "ipc.llmCompression", `keepRecentTokens "1.5" must be a whole number`},
		{"ipc: {target: 0.5}", "ipc.target", "is unknown; known are targetUtilization"},
		{"icp: {targetUtilization: 0.5}", "icp", "is unknown; known are modules, ipc"},
		{"ipc: {targetUtilization: 0.5, targetUtilization: 0.6}", "ipc.targetUtilization", "is set twice"},
		{"ipc: {targetUtilization: }", "ipc.targetUtilization", "has no value"},
		{"ipc: 3", "ipc", "is not a mapping"},
		{"a: &a 0.5\nipc: {targetUtilization: *a}", "a", "is unknown"},
		{"ipc: {compressTo: &a 0.3, minClear: *a}", "ipc", "uses an alias"},
		{"compaction-bridge: {placement: below}", "compaction-bridge.placement", "choose one of turn, system"},
		{"compaction-bridge: {blobPrefix: ../x}", "compaction-bridge.blobPrefix", "is no prefix"},
		{"rehydrator: {scope: world}", "rehydrator.scope", "choose one of session, key, person, project, workspace"},
		{"rehydrator: {triggerPhrases: ['']}", "rehydrator.triggerPhrases", "phrase 1 is empty"},
		{"patterns: {review: none}", "patterns.review", "choose one of required, auto"},
		{"patterns: {minSuccessRate: 2}", "patterns.minSuccessRate", "allowed is 0.00 to 1.00"},
		{"modules: [ipc, cache]", "modules", `"cache" is no module; known are ipc, compaction-bridge`},
		{"modules: ipc,ipc", "modules", "named twice"},
		{"ipc: [", "", "no YAML"},
		{strings.Repeat("#", 70_000), "", "allowed are 65536"},
	} {
		_, err := modules.Catalog().Parse([]byte(c.document))
		var invalid pipeline.Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%.60s: got %v", c.document, err)
			continue
		}
		if invalid.Field != c.field || !strings.Contains(invalid.Message, c.says) {
			t.Errorf("%.60s: got %q %q", c.document, invalid.Field, invalid.Message)
		}
	}
}

func TestLayersWinFromTheTopAndSayWhereValuesComeFrom(t *testing.T) {
	t.Parallel()

	config, sources, err := modules.Catalog().Resolve(
		pipeline.Layer{Source: pipeline.FromDefault, Modules: "ipc,patterns"},
		pipeline.Layer{Source: pipeline.FromWorkspace, YAML: "ipc: {targetUtilization: 0.6, preserveLastTurns: 8}\npatterns:\n"},
		pipeline.Layer{Source: pipeline.FromAPIKey, YAML: "ipc: {targetUtilization: 0.7}"},
		pipeline.Layer{Source: pipeline.FromHeader, Modules: "none"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.7 || pipeline.SettingsOf[ipc.Config](config).PreserveLastTurns != 8 || len(config.Modules) != 0 {
		t.Errorf("got %+v", config)
	}
	for path, want := range map[string]pipeline.Source{
		"modules": pipeline.FromHeader, "ipc.targetUtilization": pipeline.FromAPIKey,
		"ipc.preserveLastTurns": pipeline.FromWorkspace, "ipc.minClear": pipeline.FromDefault,
	} {
		if sources.Of(path) != want {
			t.Errorf("%s comes from %s, want %s", path, sources.Of(path), want)
		}
	}
	written, err := json.Marshal(sources)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]pipeline.Source
	if err := json.Unmarshal(written, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 || all["ipc.minClear"] != pipeline.FromDefault || all["ipc.targetUtilization"] != pipeline.FromAPIKey {
		t.Errorf("as JSON: %s", written)
	}
}

func TestALayerOnTopMayLowerTheTargetBelowTheGoal(t *testing.T) {
	t.Parallel()

	config, _, err := modules.Catalog().Resolve(pipeline.Layer{Source: pipeline.FromHeader, YAML: "ipc: {targetUtilization: 0.3}"})
	if err != nil {
		t.Fatal(err)
	}
	if goal := pipeline.SettingsOf[ipc.Config](config).Goal(1, 0, 0); goal >= 0.3-pipeline.SettingsOf[ipc.Config](config).MinClear {
		t.Errorf("the goal %v leaves less room than an epoch must free", goal)
	}
}

func TestTheGoalLeavesRoom(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ target, to, clear, goal float64 }{
		{0.75, 0.40, 0.10, 0.40}, {0.50, 0.40, 0.10, 0.30}, {0.30, 0.40, 0.10, 0.15}, {0.90, 0.40, 0.10, 0.40}, {0.75, 0.40, 0.50, 0.375},
	} {
		goal := ipc.Config{TargetUtilization: c.target, CompressTo: c.to, MinClear: c.clear}.Goal(1, 0, 0)
		if math.Abs(goal-c.goal) > 1e-9 {
			t.Errorf("%+v: goal is %v", c, goal)
		}
	}
}

func TestALayerIsReadOnce(t *testing.T) {
	t.Parallel()

	layer, err := modules.Catalog().Read(pipeline.Layer{Source: pipeline.FromWorkspace, YAML: "ipc: {targetUtilization: 0.6}"})
	if err != nil {
		t.Fatal(err)
	}
	layer.YAML = "ipc: {" // is not looked at again
	config, _, err := modules.Catalog().Resolve(layer)
	if err != nil {
		t.Fatal(err)
	}
	if pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.6 {
		t.Errorf("got %v", pipeline.SettingsOf[ipc.Config](config).TargetUtilization)
	}
}

func TestModulesAreListedInOrder(t *testing.T) {
	t.Parallel()

	names, err := modules.Catalog().ParseModules(" patterns , ipc")
	if err != nil || !slices.Equal(names, []string{"patterns", "ipc"}) {
		t.Errorf("got %v, %v", names, err)
	}
	if names, err := modules.Catalog().ParseModules("none"); err != nil || len(names) != 0 {
		t.Errorf("none: got %v, %v", names, err)
	}
	for _, list := range []string{"", "icp", "ipc,", "none,ipc"} {
		if _, err := modules.Catalog().ParseModules(list); err == nil || !strings.Contains(err.Error(), "known are ipc") {
			t.Errorf("%q: got %v", list, err)
		}
	}
}

func TestEveryPresetIsValid(t *testing.T) {
	t.Parallel()

	targets := map[string]float64{"default": ipc.DefaultConfig().TargetUtilization, "aggressive": 0.5, "quality-first": 0.9}
	turns := map[string]int{"default": 5, "aggressive": 3, "quality-first": 10}
	for _, preset := range modules.Catalog().Presets() {
		config, err := modules.Catalog().Parse([]byte(preset.YAML))
		if err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
		if pipeline.SettingsOf[ipc.Config](config).TargetUtilization != targets[preset.Name] || pipeline.SettingsOf[ipc.Config](config).PreserveLastTurns != turns[preset.Name] {
			t.Errorf("%s: %+v", preset.Name, pipeline.SettingsOf[ipc.Config](config))
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	layer, err := modules.Catalog().Read(pipeline.Layer{Source: pipeline.FromWorkspace, YAML: "ipc: {targetUtilization: 0.6, preserveLastTurns: 8}"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := modules.Catalog().Resolve(pipeline.Layer{Source: pipeline.FromDefault, Modules: "ipc"}, layer); err != nil {
			b.Fatal(err)
		}
	}
}

// What is shown of a pipeline holds every setting under the name by which it is set,
// and says of each where its value comes from.
func TestAShownPipelineHoldsEverySettingOfEveryModule(t *testing.T) {
	t.Parallel()
	config, sources, err := modules.Catalog().Resolve()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	told, err := json.Marshal(sources)
	if err != nil {
		t.Fatal(err)
	}
	var sections map[string]json.RawMessage
	var paths map[string]string
	if json.Unmarshal(shown, &sections) != nil || json.Unmarshal(told, &paths) != nil {
		t.Fatalf("%s\n%s", shown, told)
	}
	settings := 1 // modules
	for _, module := range modules.Catalog().Names() {
		var values map[string]json.RawMessage
		if err := json.Unmarshal(sections[module], &values); err != nil || len(values) == 0 {
			t.Fatalf("%s shows %s: %v", module, sections[module], err)
		}
		for name := range values {
			settings++
			if paths[module+"."+name] != "default" {
				t.Errorf("%s.%s comes from %q", module, name, paths[module+"."+name])
			}
		}
	}
	if settings != len(paths) {
		t.Errorf("%d settings are shown, %d have a source", settings, len(paths))
	}
}
