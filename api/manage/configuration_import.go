package manage

import (
	"context"
	"encoding/json"
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
	err = s.audit.Together(ctx, workspace, func(tenant tenants.Tenant) error {
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
	return i.audit.Note(ctx, i.tenant, tenants.Change{Action: tenants.ConfigImported, After: tenants.Fields{
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
		if err := i.data.SetDataSettings(ctx, i.tenant, wanted); err != nil {
			return i.refused(part.place, err)
		}
	}
	days := func(of tenants.Retention) tenants.Fields {
		return tenants.Fields{"retention_days": strconv.Itoa(of.Days)}
	}
	if i.changed(part.place, days(i.now.retention), days(retention)) {
		return i.refused(part.place, i.data.SetRetention(ctx, i.tenant, retention))
	}
	return nil
}

func (i *configImport) takePipeline(ctx context.Context, part configMember) error {
	layer, unread := modules.Catalog().ReadNode(pipeline.FromWorkspace, part.node)
	if len(unread) > 0 {
		_ = i.refused(part.place, unread) // it adds a fault
	}
	saved := pipeline.WorkspaceLayer(i.now.saved.Modules, i.now.saved.YAML)
	if err := modules.Catalog().Check(layer, i.defaults, saved); err != nil {
		return i.refused(part.place, err)
	}
	base, _, err := modules.Catalog().Resolve(i.defaults)
	if err != nil {
		return err
	}
	wanted, _, err := modules.Catalog().Resolve(i.defaults, saved, layer)
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
	_, err = i.pipelines.SavePipeline(ctx, i.tenant, i.now.saved.Version, tenants.PipelineConfig{YAML: document, SavedBy: i.by})
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
		if _, err := i.modelWindows.SetModelWindow(ctx, i.tenant, member.name, tokens, i.by); err != nil {
			return err
		}
	}
	return nil
}

// configReader reads a configuration file and collects its faults.
type configReader struct {
	faults pipeline.Faults
	lines  map[string]int // by places
}

// configMember is a member of a mapping in a configuration file.
type configMember struct {
	name, place string
	node        *yaml.Node
}

func (r *configReader) wrong(place, message string) {
	r.faults = append(r.faults, pipeline.Invalid{Field: place, Message: message, Line: r.lineOf(place)})
}

// lineOf returns the line of a place, or of its nearest parent with a line.
func (r *configReader) lineOf(place string) int {
	for {
		if line, known := r.lines[place]; known {
			return line
		}
		end := strings.LastIndex(place, ".")
		if end < 0 {
			return 0
		}
		place = place[:end]
	}
}

// refused notes an error that a person can correct, at its place below another; it returns others.
func (r *configReader) refused(place string, err error) error {
	if faults, is := errors.AsType[pipeline.Faults](err); is {
		for _, fault := range faults {
			fault.Field = strings.TrimSuffix(place+"."+fault.Field, ".")
			r.faults = append(r.faults, fault)
		}
		return nil
	}
	if bad, is := errors.AsType[malformed](err); is {
		r.wrong(place, bad.message)
		return nil
	}
	if field, message, is := invalid(err); is {
		r.wrong(strings.TrimSuffix(place+"."+field, "."), message)
		return nil
	}
	return err
}

// secretNames are members that people may expect in a file.
func secretNames() []string { return []string{"secret", "key", "hash", "token", "password"} }

// members returns the known members of a mapping.
func (r *configReader) members(place string, node *yaml.Node, known []string) []configMember {
	if node.Kind != yaml.MappingNode {
		r.wrong(place, "is not a mapping of names to values")
		return nil
	}
	var found []configMember
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		member := configMember{name: name, place: strings.TrimPrefix(place+"."+name, "."), node: node.Content[i+1]}
		twice := seen[name]
		seen[name] = true
		if first := r.lines[member.place]; twice {
			r.lines[member.place] = node.Content[i].Line
			r.wrong(member.place, fmt.Sprintf("is set twice, first on line %d; keep one", first))
			continue
		}
		r.lines[member.place] = node.Content[i].Line
		switch {
		case known == nil || slices.Contains(known, name):
			found = append(found, member)
		case slices.Contains(secretNames(), name):
			r.wrong(member.place, "is a secret; an import takes none: take it out of the file")
		default:
			r.wrong(member.place, unknownMember(name, known))
		}
	}
	return found
}

func unknownMember(name string, known []string) string {
	said := "is unknown; known are " + strings.Join(known, ", ")
	if meant := pipeline.Nearest(name, known); meant != "" {
		said += ". Did you mean " + meant + "?"
	}
	return said
}

// items returns the elements of a list with their places, named as they are or counted.
func (r *configReader) items(member configMember) []configMember {
	if member.node.Kind != yaml.SequenceNode {
		r.wrong(member.place, "is not a list")
		return nil
	}
	var found []configMember
	for i, node := range member.node.Content {
		name := strconv.Itoa(i + 1)
		for j := 0; node.Kind == yaml.MappingNode && j+1 < len(node.Content); j += 2 {
			if node.Content[j].Value == "name" && node.Content[j+1].Value != "" {
				name = node.Content[j+1].Value
			}
		}
		place := member.place + "." + name
		if _, twice := r.lines[place]; twice {
			place += fmt.Sprintf(" (%d)", i+1)
		}
		r.lines[place] = node.Line
		found = append(found, configMember{name: name, place: place, node: node})
	}
	return found
}

// takeAll reads all members of a mapping with known names into a body of the API.
func takeAll[T any](r *configReader, item configMember, into *T, known ...string) bool {
	isRead := true
	for _, member := range r.members(item.place, item.node, known) {
		isRead = take(r, member, into) && isRead
	}
	return isRead
}

// take reads one member with a known name into a body of the API.
func take[T any](r *configReader, member configMember, into *T) bool {
	var value any
	err := member.node.Decode(&value)
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(map[string]any{member.name: value})
	}
	if err != nil {
		r.wrong(member.place, "is no value that JSON has")
		return false
	}
	err = json.Unmarshal(raw, into)
	if err == nil {
		return true
	}
	message := "cannot be read"
	if bad, is := errors.AsType[malformed](explain(err)); is {
		message = bad.message
	}
	if value, is := errors.AsType[tenants.Invalid](explain(err)); is {
		message = value.Message
	}
	r.wrong(member.place, message)
	return false
}
