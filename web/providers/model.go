package providers

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// model is the page's data.
type model struct {
	Keys      []tenants.ProviderKey
	Uses      map[uuid.UUID]tenants.ProviderKeyUse
	Presets   []tenants.Preset
	MayChange bool
	Who       tenants.Principal
	Now       time.Time
	Done      string // the last action; "" if none
	Added     bool   // the action stored a key

	Add     *formModel    // the form to add a key, or nil
	Edit    *formModel    // the form to edit one, or nil
	Replace *replaceModel // the form to replace one's secret, or nil
	Remove  *removeModel  // the key to remove, or nil
	Result  *result       // of a test, or nil
}

// named returns a key's name by its id.
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

// takes describes the models that a key accepts.
func takes(key tenants.ProviderKey) string {
	text := strings.Join(key.Models, ", ")
	if len(key.Models) == 0 {
		text = "every model that no other key lists"
	}
	if key.Default && len(key.Models) > 0 {
		text += ", and models that no key lists"
	}
	return text
}

// lastError returns the provider's last error; "" if absent.
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
	Said string // by the provider; "" if absent
}

// newResult returns a test's result.
func newResult(id uuid.UUID, outcome tenants.ProviderKeyTest) *result {
	if !outcome.OK {
		return &result{ID: id, Text: outcome.Problem, Said: outcome.Said}
	}
	if outcome.Models == 0 {
		return &result{ID: id, OK: true, Text: fmt.Sprintf("The key works. The test took %s ms.", components.Millis(outcome.Took))}
	}
	return &result{ID: id, OK: true, Text: fmt.Sprintf("The key works: the provider lists %s. It took %s ms.",
		components.Plural(int64(outcome.Models), "model"), components.Millis(outcome.Took))}
}
