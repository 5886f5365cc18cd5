package tokens

import (
	"bytes"
	_ "embed" // models.json
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// modelTable lists the models. Windows and prices are the providers' list prices
// as of November 28, 2026; a model without a price is one whose price is not
// published.
//
//go:embed models.json
var modelTable []byte

// Models knows models by their names. It is never changed and safe for concurrent use.
type Models struct{ byLength []Model } // longest name first

// NewModels returns the embedded table of models. Overrides are added to it, or
// replace those of the same name; fields that are zero follow from the rest or
// are not known. The error names an override without a name or a window.
func NewModels(overrides ...Model) (*Models, error) {
	var table []Model
	decoder := json.NewDecoder(bytes.NewReader(modelTable))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&table); err != nil {
		return nil, fmt.Errorf("models.json: %w", err)
	}
	byName := make(map[string]Model, len(table)+len(overrides))
	for i, model := range slices.Concat(table, overrides) {
		if model.Name == "" || model.Window <= 0 {
			return nil, fmt.Errorf("model %d, %q: needs a name and a window above 0", i+1, model.Name)
		}
		byName[model.Name] = model.complete()
	}
	models := &Models{byLength: make([]Model, 0, len(byName))}
	for _, model := range byName {
		models.byLength = append(models.byLength, model)
	}
	slices.SortFunc(models.byLength, func(a, b Model) int {
		if byLength := len(b.Name) - len(a.Name); byLength != 0 {
			return byLength
		}
		return strings.Compare(a.Name, b.Name)
	})
	return models, nil
}

// Lookup returns the model that a request names: the one with the longest name
// that the request's begins with, once the vendor ("anthropic/") is taken off and
// up to a date or another suffix ("-20250929", "-latest", ":free"). Another
// version is another model: "gpt-5.7" is no "gpt-5". The suffix "[1m]" asks for
// the long window. A name that is in no table gives a model that is not Known.
func (m *Models) Lookup(name string) Model {
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "ft:"), "anthropic/"), "openai/")
	bare, long := strings.CutSuffix(bare, "[1m]")
	if strings.HasPrefix(bare, "claude-") {
		bare = strings.ReplaceAll(bare, ".", "-") // "claude-sonnet-4.5", as routers write it
	}
	for _, model := range m.byLength {
		rest, is := strings.CutPrefix(bare, model.Name)
		if !is || isOtherVersion(rest) {
			continue
		}
		if long {
			return model.WithLongWindow()
		}
		return model
	}
	return unknown(bare)
}

// isOtherVersion reports whether what follows a model's name makes it another's:
// anything glued to it, or a number that is not a date.
func isOtherVersion(rest string) bool {
	if rest == "" {
		return false
	}
	if !strings.ContainsRune("-@:", rune(rest[0])) {
		return true
	}
	digits := 0
	for 1+digits < len(rest) && rest[1+digits]-'0' <= 9 {
		digits++
	}
	return digits == 1 || digits == 2
}

// unknown returns what is assumed of a model that is in no table. Claude's newer
// models think unasked and bind their thinking, and the older ones do not mind
// being told.
func unknown(name string) Model {
	model := Model{Name: name, Window: unknownWindow, TokensPerO200k: tokensPerO200kOther}
	if strings.HasPrefix(name, "claude-") {
		model.TokensPerO200k, model.BoundThinking, model.ThinksUnasked = tokensPerO200kClaude, true, true
	}
	return model
}
