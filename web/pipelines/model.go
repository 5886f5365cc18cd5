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
	Before     int // the page's cursor; 0: the newest page
	Next       int // cursor of the older page; 0 if none
	MayRestore bool
	Restored   int // the version that was just saved; 0 if none
}

func (m historyModel) older() string {
	return paths.With(paths.PipelineHistory, "before", strconv.Itoa(m.Next))
}

// row is a version as it is listed.
type row struct {
	Version int
	InForce bool
	At      time.Time
	Author  string
	Changes []change // against the version before
	Unknown bool     // what changed cannot be told
	Problem string   // why it is not accepted any more; empty if it is
}

// change is a setting with two values, in the words of the page on which it is set.
type change struct{ Name, Before, After string }

// worded returns differences with modules that are on or off in place of their list.
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

// listed returns the names in a list of YAML.
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
	Newest           tenants.PipelineConfig // the one in effect
	Against          []change               // what differs: this one's value, then that in effect
	YAML, NewestYAML string

	Asks       bool // whether it is to be restored
	IsConflict bool // someone saved in the meantime
}

func (m versionModel) mayRestore() bool { return m.MayChange && !m.InForce && m.Problem == "" }

func (m versionModel) title() string { return "Version " + strconv.Itoa(m.Version) }

// lines returns what of the YAML differs from that in effect.
func (m versionModel) lines() []render.Line {
	if m.YAML == m.NewestYAML {
		return nil
	}
	return render.Difference(ended(m.YAML), ended(m.NewestYAML))
}

// ended returns text that ends with a line feed, as lines are compared.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// yamlModel is the page of the pipeline as YAML.
type yamlModel struct {
	Version int // 0 if nothing saved yet
	Whole   bool
	Text    string // what is shown
	Problem string // why the newest version is not accepted any more; empty if it is
}

// show is what the address says of what is shown.
func (m yamlModel) show() string {
	if m.Whole {
		return "all"
	}
	return ""
}
