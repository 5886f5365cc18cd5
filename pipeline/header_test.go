package pipeline_test

import (
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
)

func TestReportIsToldInHeaders(t *testing.T) {
	t.Parallel()
	full := pipeline.Report{
		Compression: pipeline.Epoch, Before: 81_000, After: 39_000, Limit: 100_000, Levels: [4]int{1, 2, 3, 4}, Archived: 5,
		Modules:  []pipeline.ModuleReport{{Name: "ipc", Outcome: pipeline.Applied}, {Name: "patterns", Outcome: pipeline.Noop}},
		Injected: map[string]int{"patterns": 3, "compaction-bridge": 1, "rehydrator": 2, "other": 9},
		Warnings: []string{"epochs=4", "net-loss"}, Cache: pipeline.CacheMiss,
	}
	for name, test := range map[string]struct {
		report pipeline.Report
		named  bool
		want   map[string]string
	}{
		"everything": {full, true, map[string]string{
			"Modules": "ipc;applied, patterns;noop", "Compression": "epoch", "Tokens-Before": "81000", "Tokens-After": "39000", "Tokens-Saved": "42000",
			"Levels": "L0=1,L1=2,L2=3,L3=4", "Archived": "5", "Injected": "bridge=1,rehydrated=2,patterns=3,other=9", "Cache": "miss",
			"Warning": "epochs=4; net-loss", "Context-Window": "100000", "Utilization": "0.81;after=0.39",
		}},
		"an unknown window": {pipeline.Report{Compression: pipeline.None}, true, map[string]string{
			"Modules": "", "Compression": "none", "Tokens-Before": "0", "Tokens-After": "0", "Tokens-Saved": "0", "Levels": "L0=0,L1=0,L2=0,L3=0",
			"Archived": "0", "Cache": "off", "Context-Window": "unknown",
		}},
		"nothing was looked at": {pipeline.Report{}, true, nil},
	} {
		headers := modules.Catalog().Headers(test.report, test.named)
		for _, header := range headers {
			if want, is := test.want[header.Name]; !is || header.Value != want {
				t.Errorf("%s: %s is %q, want %q", name, header.Name, header.Value, want)
			}
		}
		if len(headers) != len(test.want) {
			t.Errorf("%s: %v", name, headers)
		}
	}
}
