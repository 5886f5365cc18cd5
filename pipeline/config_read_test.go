package pipeline_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/modules/semanticcache"
)

// faultsOf returns what is wrong with a document.
func faultsOf(t *testing.T, document string) pipeline.Faults {
	t.Helper()
	err := modules.Catalog().Check(pipeline.Layer{Source: pipeline.FromWorkspace, YAML: document})
	faults, is := errors.AsType[pipeline.Faults](err)
	if err != nil && !is {
		t.Fatalf("%q: %v", document, err)
	}
	return faults
}

func TestEveryFaultOfADocumentIsToldAtItsLine(t *testing.T) {
	t.Parallel()
	document := strings.Join([]string{
		"# ours",                      // 1
		"ipc:",                        // 2
		"  targetUtilisation: 0.6",    // 3: unknown
		"  compressTo: 0.3",           // 4
		"  preserveLastTurns: 0",      // 5: out of range
		"  compressTo: 0.2",           // 6: twice
		"  preserveSystem: sometimes", // 7: of another kind
		"  minClear:",                 // 8: no value
		"patterns:",                   // 9
		"  review: never",             // 10: no choice
		"maxInjected: 3",              // 11: elsewhere
		"patterns: {maxInjected: 3}",  // 12: twice
		"modules: [ipc, pattern]",     // 13
		"rehydrator: 5",               // 14: no mapping
	}, "\n")

	var got []string
	for _, fault := range faultsOf(t, document) {
		got = append(got, fmt.Sprintf("%d %s", fault.Line, fault.Error()))
	}
	want := []string{
		"3 ipc.targetUtilisation: is unknown; known are", "5 ipc.preserveLastTurns: 0 is out of range; allowed is 1 to 100",
		"6 ipc.compressTo: is set twice, first on line 4", `7 ipc.preserveSystem: "sometimes" must be true or false`,
		"8 ipc.minClear: has no value", `10 patterns.review: "never" is not allowed`, "11 maxInjected: is unknown; known are",
		"12 patterns: is set twice, first on line 9", `13 modules: "pattern" is no module`, "14 rehydrator: is not a mapping",
	}
	if len(got) != len(want) {
		t.Fatalf("got\n%s", strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	for i, meant := range map[int]string{0: "Did you mean targetUtilization?", 6: "Did you mean maxInjected inside patterns?"} {
		if !strings.HasSuffix(got[i], meant) {
			t.Errorf("%s does not ask %q", got[i], meant)
		}
	}
}

func TestADocumentThatIsNoYAMLIsToldAtTheLineThatBreaksIt(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		document string
		line     int
		says     string
	}{
		{"ipc: [", 1, "close the bracket"},
		{"ipc:\n  minClear: 0.1\n compressTo: 0.3\npatterns:\n  maxInjected: 3\n", 3, "indent the line"},
		{"ipc:\n  minClear: 0.1\n   compressTo: 0.3\n", 3, "indent the line"},
		{"ipc:\n\tminClear: 0.1\n", 2, "not tabs"},
		{"# one\nipc:\n  minClear: a: b\n", 3, "second colon"},
		{"modules: [ipc]\nipc: {minClear: \"x\npatterns: 2\n", 2, "close the quotes"},
		{"modules: [ipc]\nipc: [1,\n 2\npatterns: 3\n", 2, "close the bracket"},
		{"modules: [ipc]\nipc\npatterns:\n", 2, "a name, a colon"},
		{"modules: @x\n", 1, "quotes around"},
		{"modules: [ipc]\n---\nmodules: []\n", 2, "a second document"},
		{strings.Repeat("# "+strings.Repeat("x", 60)+"\n", 900) + "ipc: [", 0, "close the bracket"}, // too long to look for the line
	} {
		faults := faultsOf(t, c.document)
		if len(faults) != 1 || !strings.Contains(faults[0].Message, c.says) {
			t.Errorf("%.60q: got %v", c.document, faults)
			continue
		}
		if faults[0].Line != c.line && c.line > 0 {
			t.Errorf("%.60q: line %d, want %d", c.document, faults[0].Line, c.line)
		}
	}
}

func TestTheFirstFaultIsFoundAmongAll(t *testing.T) {
	t.Parallel()

	err := modules.Catalog().Check(pipeline.Layer{YAML: "ipc:\n  minClear: 7\n  deepestLevel: 9\n"})
	first, is := errors.AsType[pipeline.Invalid](err)
	if !is || first.Field != "ipc.minClear" || first.Line != 2 {
		t.Errorf("got %+v", first)
	}
	if said := err.Error(); !strings.Contains(said, "line 2: ipc.minClear: 7") || !strings.Contains(said, "; line 3: ipc.deepestLevel: 9") {
		t.Error(said)
	}
	if faults := faultsOf(t, "ipc: {targetUtilization: 0.5}\n# and no more\n"); faults != nil {
		t.Errorf("a good document has %v", faults)
	}
}

// What lies below is another's: its faults are not those of the document.
func TestACheckStandsOnTheLayersBelow(t *testing.T) {
	t.Parallel()

	below := pipeline.Layer{Source: pipeline.FromDefault, YAML: "ipc: {targetUtilization: 0.35, compressTo: 0.2}"}
	err := modules.Catalog().Check(pipeline.Layer{YAML: "# ours\nipc: {compressTo: 0.36}"}, below)
	faults, is := errors.AsType[pipeline.Faults](err)
	if !is || len(faults) != 1 || faults[0].Line != 2 || !strings.Contains(faults[0].Message, "not below targetUtilization, which is 0.35") {
		t.Errorf("got %v", err)
	}
	err = modules.Catalog().Check(pipeline.Layer{}, pipeline.Layer{YAML: "ipc: {minClear: 7}"})
	if _, is := errors.AsType[pipeline.Faults](err); is || err == nil {
		t.Errorf("the layer below is at fault: %v", err)
	}
}

func TestAPartOfALargerDocumentKeepsItsLines(t *testing.T) {
	t.Parallel()
	var document struct {
		Pipeline yaml.Node `yaml:"pipeline"`
	}
	if err := yaml.Unmarshal([]byte("name: x\npipeline:\n  ipc:\n    minClear: 7\n    speed: 1\n    blockTokens: 900\n"), &document); err != nil {
		t.Fatal(err)
	}

	layer, unread := modules.Catalog().ReadNode(pipeline.FromWorkspace, &document.Pipeline)
	if len(unread) != 1 || unread[0].Field != "ipc.speed" || unread[0].Line != 5 {
		t.Errorf("unread %v", unread)
	}
	faults, _ := errors.AsType[pipeline.Faults](modules.Catalog().Check(layer))
	if len(faults) != 1 || faults[0].Field != "ipc.minClear" || faults[0].Line != 4 {
		t.Errorf("wrong %v", faults)
	}
}

func TestANameIsTakenForTheNearestKnownOne(t *testing.T) {
	t.Parallel()
	known := []string{"targetUtilization", "compressTo", "minClear", "maxTokens", "scope"}

	for name, want := range map[string]string{
		"targetUtilisation": "targetUtilization", "target_utilization": "targetUtilization", "TargetUtilization": "targetUtilization",
		"compresTo": "compressTo", "comperssTo": "compressTo", "min-clear": "minClear", "maxToken": "maxTokens", "socpe": "scope",
		"speed": "", "x": "", "": "", strings.Repeat("scope", 100): "",
	} {
		if got := pipeline.Nearest(name, known); got != want {
			t.Errorf("%.40q: got %q, want %q", name, got, want)
		}
	}
}

func TestDifferencesNameEverySettingThatDiffers(t *testing.T) {
	t.Parallel()
	before := modules.Catalog().Default()
	after := before
	after.Modules = []string{"ipc"}
	pipeline.Change[ipc.Config](&after).TargetUtilization = 0.6
	pipeline.Change[ipc.Config](&after).ContextWindow = 64_000
	pipeline.Change[ipc.Config](&after).KeepLastLadder = []int{8, 4}
	pipeline.Change[ipc.Config](&after).LLMCompression = ipc.LLMCompression{Model: "small"}
	pipeline.Change[rehydrator.Config](&after).EmbeddingModel = "text-embedding-3-small"

	want := []pipeline.Difference{
		{"modules", "[ipc, compaction-bridge, rehydrator, patterns]", "[ipc]"}, {"ipc.targetUtilization", "0.8", "0.6"},
		{"ipc.llmCompression", "false", "{model: small}"}, {"ipc.contextWindow", "auto", "64000"},
		{"ipc.keepLastLadder", "[16, 12, 8, 6, 3, 1]", "[8, 4]"}, {"rehydrator.embeddingModel", `""`, "text-embedding-3-small"},
	}
	if got := modules.Catalog().Differences(before, after); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := modules.Catalog().Differences(after, after); got != nil {
		t.Errorf("the same differs in %+v", got)
	}
}

func TestADocumentIsEditedWithoutLosingItsComments(t *testing.T) {
	t.Parallel()
	layer := pipeline.Layer{Modules: "patterns,ipc", YAML: "# why\nipc:\n  # measured\n  targetUtilization: 0.6 # in May\n  minClear: 0.2\npatterns:\n  maxInjected: 9\n"}
	document, err := modules.Catalog().Document(layer)
	if err != nil {
		t.Fatal(err)
	}
	if faults := faultsOf(t, document); faults != nil || !strings.Contains(document, "modules: [patterns, ipc]") || !strings.Contains(document, "# in May") {
		t.Errorf("%v:\n%s", faults, document)
	}

	base := modules.Catalog().Default()
	wanted := base
	pipeline.Change[ipc.Config](&wanted).TargetUtilization = 0.5
	pipeline.Change[ipc.Config](&wanted).BlockTokens = 900
	pipeline.Change[semanticcache.Config](&wanted).Scope = "key"
	edited, err := modules.Catalog().Edit(layer, wanted, base, []string{"ipc.targetUtilization", "ipc.blockTokens", "patterns.maxInjected", "semantic-cache.scope", "modules"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "# why\nipc:\n  # measured\n  targetUtilization: 0.5 # in May\n  minClear: 0.2\n  blockTokens: 900\nsemantic-cache:\n  scope: key\n"
	if edited != want {
		t.Errorf("got\n%s", edited)
	}
	cleared, err := modules.Catalog().Edit(pipeline.Layer{YAML: `{"ipc":{"minClear":0.2}}`}, base, base, []string{"ipc.minClear"})
	if err != nil || cleared != "" {
		t.Errorf("nothing is left, but %q, %v", cleared, err)
	}
	if _, err := modules.Catalog().Edit(pipeline.Layer{YAML: "ipc: ["}, base, base, nil); err == nil {
		t.Error("a broken document was edited")
	}
}

func FuzzCheckNeverFailsOtherwiseThanWithFaults(f *testing.F) {
	for _, document := range []string{"", "ipc: {minClear: 7}", "ipc: [", "a: &a 1\nb: *a", "---\n---", "? [x]\n: 1", "\x00", "ipc:\n\t- x"} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		lines := strings.Count(document, "\n") + 1
		for _, fault := range faultsOf(t, document) {
			if fault.Line < 0 || fault.Line > lines+strings.Count(document, "\r")+strings.Count(document, "\u0085")+strings.Count(document, "\u2028")+strings.Count(document, "\u2029") || fault.Message == "" {
				t.Errorf("%q: %+v", document, fault)
			}
		}
	})
}
