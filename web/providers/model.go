package providers

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// model is the page.
type model struct {
	Keys      []tenants.ProviderKey
	Uses      map[uuid.UUID]tenants.ProviderKeyUse
	Presets   []tenants.Preset
	MayChange bool
	Who       tenants.Principal
	Now       time.Time
	Done      string // what was just done; empty if none
	Added     bool   // it was a key that was stored

	Add     *formModel    // the form to add a key; nil: closed
	Edit    *formModel    // the form to edit one; nil: closed
	Replace *replaceModel // the form to replace one's secret; nil: closed
	Remove  *removeModel  // the key to remove; nil if none
	Result  *result       // of a test; nil if none
}

// named returns the name of the key with an id.
func (m *model) named(id string) string {
	for _, key := range m.Keys {
		if key.ID.String() == id {
			return key.Name
		}
	}
	return ""
}

// title names the provider of a key.
func title(key tenants.ProviderKey) string {
	if preset, known := tenants.PresetOf(key.Preset); known {
		return preset.Title
	}
	return key.Provider.Title()
}

// takes says which models go to a key.
func takes(key tenants.ProviderKey) string {
	text := strings.Join(key.Models, ", ")
	if len(key.Models) == 0 {
		text = "every model that no other key names"
	}
	if key.Default && len(key.Models) > 0 {
		text += ", and what no key names"
	}
	return text
}

// lastError says what the provider last refused; empty if none.
func lastError(use tenants.ProviderKeyUse) string {
	if use.LastErrorAt.IsZero() {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", use.LastStatus, use.LastError))
}

// result is the outcome of a test.
type result struct {
	ID   uuid.UUID // of the key
	OK   bool
	Text string
	Said string // by the provider; empty if none
}

// newResult returns what a test tells.
func newResult(id uuid.UUID, outcome tenants.ProviderKeyTest) *result {
	if !outcome.OK {
		return &result{ID: id, Text: outcome.Problem, Said: outcome.Said}
	}
	return &result{ID: id, OK: true, Text: fmt.Sprintf("The key works: the provider lists %s. It took %s ms.",
		components.Plural(int64(outcome.Models), "model"), components.Millis(outcome.Took))}
}
