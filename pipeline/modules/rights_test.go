package modules_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
)

// bounded are the settings by which a key could bring in more than its people may decide, with
// their values from the nearest to the furthest.
func bounded() map[string][]string {
	scopes := pipeline.Scopes()
	return map[string][]string{"compaction-bridge.scope": scopes, "rehydrator.scope": scopes, "semantic-cache.scope": scopes}
}

// furthest returns the place of the furthest value that rights allow a setting.
func furthest(rights pipeline.Rights) int {
	return max(0, slices.Index(pipeline.Scopes(), rights.Scope))
}

// everyRights returns all rights that people can have.
func everyRights() []pipeline.Rights {
	all := []pipeline.Rights{{}}
	for _, scope := range pipeline.Scopes() {
		all = append(all, pipeline.Rights{Scope: scope})
	}
	return all
}

// S46: a new setting that says whose text reaches whom must be bounded, and listed above.
func TestEverySettingOfReachIsBounded(t *testing.T) {
	t.Parallel()

	listed := bounded()
	for _, module := range modules.Catalog().Modules() {
		for _, card := range module.Cards {
			for _, setting := range card.Settings {
				path := module.Name + "." + setting.Name
				values := make([]string, len(setting.Options))
				for i, option := range setting.Options {
					values[i] = option.Value
				}
				_, is := listed[path]
				if is != (setting.IsBounded()) || is && !slices.Equal(values, listed[path]) {
					t.Errorf("%s is bounded: %t, its options are %q", path, setting.IsBounded(), values)
				}
				delete(listed, path)
			}
		}
	}
	if len(listed) > 0 {
		t.Errorf("no such setting: %v", listed)
	}
}

// S46: what a key sets beyond the rights of its people is taken back, but for what the workspace's
// own pipeline has as wide.
func TestKeyReachesNoFurtherThanItsPeopleOrTheWorkspace(t *testing.T) {
	t.Parallel()

	catalog, cells := modules.Catalog(), 0
	for path, values := range bounded() {
		module, name, _ := strings.Cut(path, ".")
		for _, rights := range everyRights() {
			for own, ofWorkspace := range values {
				for asked, ofKey := range values {
					for _, runs := range []bool{false, true} {
						cells++
						workspace := pipeline.WorkspaceLayer(map[bool]string{true: module, false: "none"}[runs], fmt.Sprintf("%s: {%s: %s}", module, name, ofWorkspace))
						base, _, err := catalog.Resolve(workspace)
						if err != nil {
							t.Fatal(err)
						}
						key := pipeline.Layer{Source: pipeline.FromAPIKey, Modules: module, YAML: fmt.Sprintf("%s: {%s: &a %s}", module, name, ofKey)}
						config, _, err := rights.Resolve(catalog, base, workspace, key)
						if err != nil {
							t.Fatal(err)
						}
						most := furthest(rights)
						if runs {
							most = max(most, own)
						}
						if got := catalog.Written(config, path); got != values[min(asked, most)] {
							t.Errorf("%s: %q of the key, %q of the workspace (runs: %t), %+v: %q", path, ofKey, ofWorkspace, runs, rights, got)
						}
						if was := catalog.Written(base, path); was != ofWorkspace {
							t.Fatalf("%s: the workspace's own is %q now", path, was)
						}
						refused := rights.Check(catalog, key)
						invalid, is := errors.AsType[pipeline.Invalid](refused)
						if is != (asked > furthest(rights)) || is && (invalid.Field != path || !strings.HasSuffix(invalid.Message, values[furthest(rights)])) {
							t.Errorf("%s: %q with %+v: %v", path, ofKey, rights, refused)
						}
					}
				}
			}
		}
	}
	t.Logf("%d cells", cells)
}

// S46: a module that only the key or the request runs brings in no more than the people may decide,
// whatever its setting is by default or where it is off.
func TestModuleThatOnlyARequestRunsIsBounded(t *testing.T) {
	t.Parallel()

	catalog := modules.Catalog()
	workspace := pipeline.WorkspaceLayer("none", "semantic-cache: {scope: workspace}")
	base, _, err := catalog.Resolve(workspace)
	if err != nil {
		t.Fatal(err)
	}
	header := pipeline.Layer{Source: pipeline.FromHeader, Modules: "semantic-cache"}
	config, _, err := pipeline.Rights{Scope: pipeline.ScopePerson}.Resolve(catalog, base, workspace, header)
	if err != nil {
		t.Fatal(err)
	}
	if scope := catalog.Written(config, "semantic-cache.scope"); scope != pipeline.ScopePerson {
		t.Errorf("scope %s", scope)
	}
}
