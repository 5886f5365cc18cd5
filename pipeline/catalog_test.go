package pipeline_test

import (
	"slices"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
)

// counted are the settings of a module that is not one of the product.
type counted struct {
	Every int  `yaml:"every"`
	Loud  bool `yaml:"loud"`
}

// ModuleName implements pipeline.Settings.
func (counted) ModuleName() string { return "counted" }

func every() pipeline.Setting {
	return pipeline.CountField(func(c *counted) *int { return &c.Every }, 1, 9, pipeline.Setting{Name: "every"})
}

func loud() pipeline.Setting {
	return pipeline.ToggleField(func(c *counted) *bool { return &c.Loud }, pipeline.Setting{Name: "loud"})
}

func TestCatalogTakesOnlyModulesThatDescribeExactlyTheirSettings(t *testing.T) {
	t.Parallel()

	panics := func(settings ...pipeline.Setting) (does bool) {
		defer func() { does = recover() != nil }()
		pipeline.NewCatalog(pipeline.Description{
			Name: "counted", Defaults: func() pipeline.Settings { return &counted{Every: 3} }, Cards: []pipeline.Card{{Settings: settings}},
		})
		return false
	}
	made := loud()
	made.Name = "made"
	if panics(loud(), every()) || !panics(every()) || !panics(every(), loud(), made) {
		t.Error("a module may describe settings that it does not have, or leave some out")
	}
}

func TestAnyModuleOfTheCatalogIsReadAndWritten(t *testing.T) {
	t.Parallel()

	catalog := pipeline.NewCatalog(pipeline.Description{
		Name: "counted", IsStandard: true, Defaults: func() pipeline.Settings { return &counted{Every: 3} },
		Cards: []pipeline.Card{{Settings: []pipeline.Setting{loud(), every()}}},
	})
	config, sources, err := catalog.Resolve(pipeline.Layer{Source: pipeline.FromHeader, YAML: "counted: {every: 7}"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "modules: [counted]\ncounted:\n  every: 7\n  loud: false\n"; config.YAML() != want || sources.Of("counted.every") != pipeline.FromHeader {
		t.Errorf("got\n%s from %s", config.YAML(), sources.Of("counted.every"))
	}
	if _, err := catalog.Parse([]byte("counted: {every: 10}")); err == nil || err.Error() != "counted.every: 10 is out of range; allowed is 1 to 9" {
		t.Errorf("got %v", err)
	}
	if got := catalog.Headers(pipeline.Report{Compression: pipeline.None, Injected: map[string]int{"gone": 1, "counted": 2}}, false); !slices.Contains(got, pipeline.Header{Name: "Injected", Value: "counted=2,gone=1"}) {
		t.Errorf("got %v", got)
	}
}

func TestChangingConfigLeavesItsCopiesAsTheyAre(t *testing.T) {
	t.Parallel()

	before := modules.Catalog().Default()
	after := before
	pipeline.Change[ipc.Config](&after).MinClear = 0.4
	pipeline.Change[ipc.Config](&after).CompressTo = 0.3
	if before.YAML() != modules.Catalog().Default().YAML() {
		t.Errorf("the copy became\n%s", before.YAML())
	}
	if now := pipeline.SettingsOf[ipc.Config](after); now.MinClear != 0.4 || now.CompressTo != 0.3 {
		t.Errorf("got %+v", now)
	}
}
