package tenants

import (
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

// MaxModelLimits bounds the limits of models that a workspace has set.
const MaxModelLimits = 200

// ModelLimit bounds the prompts and answers of a model, in place of the catalog's limits. ModelWindow is the
// context window for all provider keys.
type ModelLimit struct {
	Model       string    `json:"model"`
	ProviderKey uuid.UUID `json:"provider_key_id,omitzero"` // uuid.Nil: whichever key is used

	Window int `json:"window_tokens,omitempty"` // of prompt and answer together, at one provider key; 0: not set
	Output int `json:"output_tokens,omitempty"` // of the longest answer; 0: not set
}

// Validate returns an Invalid that names the wrong field and its allowed values.
func (l ModelLimit) Validate() error {
	switch {
	case !IsModelName(l.Model):
		return Invalid{Field: "model", Message: fmt.Sprintf("must be a model's name of at most %d bytes", MaxModelName)}
	case l.Window == 0 && l.Output == 0:
		return Invalid{Field: "window_tokens", Message: "is missing: set the context window, the longest answer, or both"}
	case l.Window != 0 && (l.Window < MinModelWindow || l.Window > MaxModelWindow):
		return Invalid{Field: "window_tokens", Message: fmt.Sprintf("must be a whole number from %d to %d", MinModelWindow, MaxModelWindow)}
	case l.Output < 0 || l.Output > MaxModelWindow:
		return Invalid{Field: "output_tokens", Message: fmt.Sprintf("must be a whole number from 1 to %d", MaxModelWindow)}
	case l.Window != 0 && l.Output > l.Window:
		return Invalid{Field: "output_tokens", Message: "must be at most the context window"}
	case l.Window != 0 && l.ProviderKey == uuid.Nil:
		return Invalid{Field: "provider_key_id", Message: "must name the key that the context window is for; the one for every key is set under Compression, or with PUT /models/windows/{model}"}
	}
	return nil
}

// at returns the unique key of a limit in a list.
func (l ModelLimit) at() ModelAtKey { return ModelAtKey{l.Model, l.ProviderKey} }

// CheckModelLimits returns limits in order. The error is an Invalid with the position of the wrong one.
func CheckModelLimits(limits []ModelLimit) ([]ModelLimit, error) {
	return checkModels("limits", MaxModelLimits, limits)
}

// ModelLimitFields returns the limits' fields for the audit log.
func ModelLimitFields(limits []ModelLimit) Fields {
	fields := Fields{}
	for _, limit := range limits {
		name := limit.at().String()
		if limit.Window > 0 {
			fields[name+" window_tokens"] = strconv.Itoa(limit.Window)
		}
		if limit.Output > 0 {
			fields[name+" output_tokens"] = strconv.Itoa(limit.Output)
		}
	}
	return fields
}
