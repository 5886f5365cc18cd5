package manage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
)

// errUndone rolls back the transaction of a dry run or of a faulty file.
var errUndone = errors.New("nothing is to be kept")

// configImport is a running import. It does everything in one transaction, even in a dry run or with a faulty
// file, and rolls it back in those cases.
type configImport struct {
	*Configurations
	configReader

	tenant tenants.Tenant // in the import's transaction
	by     uuid.UUID
	now    configured
	came   tenants.ConfigImport
}

// Import reads a configuration file, YAML or JSON, into a workspace in one transaction, on behalf of by, who
// needs the permission for each part of it. Settings that the file leaves out stay as they are; secrets are
// neither read nor made. A dry run changes nothing. The errors are pipeline.Faults for errors in the file, by
// its lines; tenants.ErrDenied; tenants.ErrConflict.
func (s *Configurations) Import(ctx context.Context, workspace tenants.WorkspaceID, document string, by uuid.UUID, may func(tenants.Permission) bool, dry bool) (tenants.ConfigImport, error) {
	root, fault := pipeline.ParseYAML(document, maxBody)
	if fault != nil {
		return tenants.ConfigImport{}, pipeline.Faults{*fault}
	}
	if root == nil {
		return tenants.ConfigImport{}, pipeline.Faults{{Message: "the file is empty; download the configuration to see what one holds"}}
	}
	now, err := s.read(ctx, workspace)
	if err != nil {
		return tenants.ConfigImport{}, err
	}
	i := configImport{Configurations: s, configReader: configReader{lines: map[string]int{}}, by: by, now: now}
	err = s.Audit.Together(ctx, workspace, func(tenant tenants.Tenant) error {
		i.tenant = tenant
		if err := i.run(ctx, root, may); err != nil {
			return err
		}
		if dry || len(i.faults) > 0 {
			return errUndone
		}
		return i.note(ctx)
	})
	switch {
	case err != nil && !errors.Is(err, errUndone):
		return tenants.ConfigImport{}, err
	case len(i.faults) > 0:
		slices.SortStableFunc(i.faults, func(a, b pipeline.Invalid) int { return a.Line - b.Line })
		return tenants.ConfigImport{}, i.faults
	default:
		return i.came, nil
	}
}

// run reads and applies each part of the file.
func (i *configImport) run(ctx context.Context, root *yaml.Node, may func(tenants.Permission) bool) error {
	if hasAlias(root) {
		i.faults = append(i.faults, pipeline.Invalid{Message: "the file uses an alias (*name); write the value itself"})
		return nil
	}
	parts := map[string]struct {
		needs tenants.Permission
		take  func(context.Context, configMember) error
	}{
		"settings": {tenants.ManageSettings, i.takeSettings}, "pipeline": {tenants.ManagePipeline, i.takePipeline},
		"model_windows": {tenants.ManagePipeline, i.takeWindows}, "model_prices": {tenants.ManageSettings, i.takePrices}, "model_limits": {tenants.ManageSettings, i.takeLimits}, "budgets": {tenants.ManageSettings, i.takeBudgets}, "api_keys": {tenants.ManageKeys, i.takeKeys},
		"provider_keys": {tenants.ManageProviders, i.takeProviders},
	}
	isNamed := false
	for _, member := range i.members("", root, append([]string{"palimpsest"}, slices.Sorted(maps.Keys(parts))...)) {
		if member.name == "palimpsest" {
			isNamed = true
			if member.node.Value != strconv.Itoa(configFormat) {
				i.wrong(member.place, fmt.Sprintf("is format %q; this product reads format %d", member.node.Value, configFormat))
			}
			continue
		}
		if !may(parts[member.name].needs) {
			return tenants.ErrDenied
		}
		if err := parts[member.name].take(ctx, member); err != nil {
			return err
		}
	}
	if !isNamed && root.Kind == yaml.MappingNode {
		i.faults = append(i.faults, pipeline.Invalid{Field: "palimpsest", Message: fmt.Sprintf("is missing: a configuration file says palimpsest: %d", configFormat), Line: root.Line})
	}
	return nil
}

func hasAlias(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || slices.ContainsFunc(node.Content, hasAlias)
}

// note writes the import to the audit log, beside the notes of each of its parts.
func (i *configImport) note(ctx context.Context) error {
	if len(i.came.Changes) == 0 {
		return nil
	}
	const most = 50
	var places []string
	for _, change := range i.came.Changes[:min(most, len(i.came.Changes))] {
		places = append(places, change.Place)
	}
	return i.Audit.Note(ctx, i.tenant, tenants.Change{Action: tenants.ConfigImported, After: tenants.Fields{
		"changes": strconv.Itoa(len(i.came.Changes)), "places": strings.Join(places, ", "),
	}})
}

// changed notes the changed fields, and reports whether there are any.
func (i *configImport) changed(place string, before, after tenants.Fields) bool {
	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if _, is := before[name]; !is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	isOther := false
	for _, name := range names {
		if before[name] != after[name] {
			i.came.Changes = append(i.came.Changes, tenants.ConfigChange{Place: place + "." + name, Before: before[name], After: after[name]})
			isOther = true
		}
	}
	return isOther
}

func (i *configImport) byHandf(format string, of ...any) {
	i.came.ByHand = append(i.came.ByHand, fmt.Sprintf(format, of...))
}

func (i *configImport) takeSettings(ctx context.Context, part configMember) error {
	wanted, retention := i.now.settings, i.now.retention
	known := []string{"time_zone", "managers_read", "members_read", "viewers_read", "no_store", "redact", "redact_names", "end_users", "browser_origins", "failover", "own_credentials", "retention_days"}
	for _, member := range i.members(part.place, part.node, known) {
		if member.name == "retention_days" {
			var asked struct {
				Days *int `json:"retention_days"`
			}
			if take(&i.configReader, member, &asked) && asked.Days != nil {
				retention.Days = *asked.Days
			}
			if err := retention.Validate(); err != nil {
				i.wrong(member.place, "must be a whole number from 0 (keep for ever) to 36500")
				retention = i.now.retention
			}
			continue
		}
		var asked newSettings
		if !take(&i.configReader, member, &asked) {
			continue
		}
		next := asked.apply(wanted)
		if err := next.Validate(); err != nil {
			if err := i.refused(part.place, err); err != nil {
				return err
			}
			continue
		}
		wanted = next.Normal()
	}
	if i.changed(part.place, i.now.settings.Fields(), wanted.Fields()) {
		if err := i.Data.SetDataSettings(ctx, i.tenant, wanted); err != nil {
			return i.refused(part.place, err)
		}
	}
	days := func(of tenants.Retention) tenants.Fields {
		return tenants.Fields{"retention_days": strconv.Itoa(of.Days)}
	}
	if i.changed(part.place, days(i.now.retention), days(retention)) {
		return i.refused(part.place, i.Data.SetRetention(ctx, i.tenant, retention))
	}
	return nil
}

func (i *configImport) takePipeline(ctx context.Context, part configMember) error {
	layer, unread := modules.Catalog().ReadNode(pipeline.FromWorkspace, part.node)
	if len(unread) > 0 {
		_ = i.refused(part.place, unread) // it adds a fault
	}
	saved := pipeline.WorkspaceLayer(i.now.saved.Modules, i.now.saved.YAML)
	if err := modules.Catalog().Check(layer, i.Defaults, saved); err != nil {
		return i.refused(part.place, err)
	}
	base, _, err := modules.Catalog().Resolve(i.Defaults)
	if err != nil {
		return err
	}
	wanted, _, err := modules.Catalog().Resolve(i.Defaults, saved, layer)
	if err != nil {
		return err
	}
	var paths []string
	for _, difference := range modules.Catalog().Differences(i.now.pipeline, wanted) {
		paths = append(paths, difference.Path)
		i.came.Changes = append(i.came.Changes, tenants.ConfigChange{Place: part.place + "." + difference.Path, Before: difference.Before, After: difference.After})
	}
	if len(paths) == 0 {
		return nil
	}
	document, err := modules.Catalog().Edit(saved, wanted, base, paths)
	if err != nil {
		return i.refused(part.place, err)
	}
	_, err = i.Pipelines.SavePipeline(ctx, i.tenant, i.now.saved.Version, tenants.PipelineConfig{YAML: document, SavedBy: i.by})
	return err
}

func (i *configImport) takeWindows(ctx context.Context, part configMember) error {
	set := map[string]tenants.ModelWindow{}
	for _, window := range i.now.windows {
		set[window.Model] = window
	}
	for _, member := range i.members(part.place, part.node, nil) {
		tokens, err := strconv.Atoi(member.node.Value)
		switch {
		case member.node.ShortTag() != "!!int" || err != nil || tokens < tenants.MinModelWindow || tokens > tenants.MaxModelWindow:
			i.wrong(member.place, fmt.Sprintf("must be a whole number from %d to %d", tenants.MinModelWindow, tenants.MaxModelWindow))
			continue
		case !tenants.IsModelName(member.name):
			i.wrong(member.place, fmt.Sprintf("must be a model's name of at most %d bytes", tenants.MaxModelName))
			continue
		}
		before, is := set[member.name]
		if is && before.Tokens == tokens && before.Source == tenants.WindowOverride {
			continue
		}
		change := tenants.ConfigChange{Place: member.place, After: member.node.Value}
		if is {
			change.Before = fmt.Sprintf("%d, %s", before.Tokens, before.Source)
		}
		i.came.Changes = append(i.came.Changes, change)
		if _, err := i.ModelWindows.SetModelWindow(ctx, i.tenant, member.name, tokens, i.by); err != nil {
			return err
		}
	}
	return nil
}
