package pipelines

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// historyModel is the list of versions.
type historyModel struct {
	Rows       []row
	Before     int // the page's cursor; 0 for the newest page
	Next       int // cursor of the older page, or 0
	MayRestore bool
	Restored   int // the version that was just saved, or 0
}

func (m historyModel) older() string {
	return paths.With(paths.PipelineHistory, "before", strconv.Itoa(m.Next))
}

// row is a version in the list.
type row struct {
	Version int
	InForce bool
	At      time.Time
	Author  string
	Changes []change // since the previous version
	Unknown bool     // the changes are unknown
	Problem string   // why it is no longer valid; "" if it is
}

// change is a setting with two values, in the words of the settings page.
type change struct{ Name, Before, After string }

// worded replaces the difference of the module list by modules turned on or off.
func worded(found []pipeline.Difference) []change {
	var changes []change
	for _, difference := range found {
		if difference.Path != "modules" {
			changes = append(changes, change{difference.Path, difference.Before, difference.After})
			continue
		}
		before, after := listed(difference.Before), listed(difference.After)
		switched := false
		for _, module := range modules.Catalog().Names() {
			was, is := slices.Contains(before, module), slices.Contains(after, module)
			if was != is {
				changes, switched = append(changes, change{module, onOff(was), onOff(is)}), true
			}
		}
		if !switched {
			changes = append(changes, change{"order", strings.Join(before, ", "), strings.Join(after, ", ")})
		}
	}
	return changes
}

// listed returns the names in a YAML list.
func listed(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune("[], ", r) })
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func authorOf(version tenants.PipelineConfig) string {
	switch {
	case version.Author != "":
		return version.Author
	case version.SavedBy == uuid.Nil:
		return "the command line"
	default:
		return "someone who left"
	}
}

// versionModel is the page of one version.
type versionModel struct {
	row

	MayChange        bool
	Newest           tenants.PipelineConfig // the current version
	Against          []change               // differences: this version's value, then the current one's
	YAML, NewestYAML string

	Asks       bool // the question whether to restore it
	IsConflict bool // someone saved in the meantime
}

func (m versionModel) mayRestore() bool { return m.MayChange && !m.InForce && m.Problem == "" }

func (m versionModel) title() string { return "Version " + strconv.Itoa(m.Version) }

// lines returns the differences between the version's YAML and the current one's.
func (m versionModel) lines() []render.Line {
	if m.YAML == m.NewestYAML {
		return nil
	}
	return render.Difference(ended(m.YAML), ended(m.NewestYAML))
}

// ended returns text with a final line feed, for comparing lines.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// yamlModel is the page of the pipeline as YAML.
type yamlModel struct {
	Version int // 0 before the first
	Whole   bool
	Text    string // the text shown
	Problem string // why the newest version is no longer valid; "" if it is
}

// show is the address's parameter for the current view.
func (m yamlModel) show() string {
	if m.Whole {
		return "all"
	}
	return ""
}
