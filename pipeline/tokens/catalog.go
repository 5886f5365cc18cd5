package tokens

import (
	"bytes"
	_ "embed" // catalog.json
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// embedded is the catalog of this build. Each row names its source and the day of its last check. Unconfirmed
// values are left out. A model has no price if its price is not published, or varies by seller.
//
//go:embed catalog.json
var embedded []byte

// CatalogVersion is the version of the catalog's format that this build reads.
const CatalogVersion = 1

// The limits for plausible catalogs.
const (
	MaxCatalog = 8 << 20 // bytes

	minWindow, maxWindow = 1_000, 100_000_000 // tokens
	maxPrice             = 10_000             // US dollars per million tokens
	maxFactor            = 100
	maxLife              = 30 * 24 * time.Hour
)

// catalogFile is the file format of a catalog.
type catalogFile struct {
	Version  int               `json:"version"`
	Date     day               `json:"date"`     // of its newest row, or later
	Sources  map[string]string `json:"sources"`  // sources of rows, by the name in the rows
	Prefixes []string          `json:"prefixes"` // prefixes of routers and clouds before a name, "openrouter/…"
	Tools    []catalogTool     `json:"tools"`
	Models   []catalogModel    `json:"models"`
}

// provenance is the source of a row.
type provenance struct {
	Source string `json:"source"`
	Date   day    `json:"date"`
}

// catalogTool is the price of a tool run by a provider.
type catalogTool struct {
	Provider string `json:"provider"` // that is asked
	Tool     string `json:"tool"`
	Models   string `json:"models,omitempty"` // beginning of the names of its models; "" means all that no other row names
	ToolPrice

	provenance
}

// ToolPrice is the price of a tool run by a provider.
type ToolPrice struct {
	Use  float64 `json:"use"`            // US dollars per use
	Once bool    `json:"once,omitempty"` // for all uses of one answer together
}

// Of returns the price of uses for one answer, in US dollars.
func (p ToolPrice) Of(uses int) float64 {
	if p.Once {
		uses = min(uses, 1)
	}
	return p.Use * float64(uses)
}

// catalogModel is a row of the catalog.
type catalogModel struct {
	Model

	Aliases   []string `json:"aliases,omitempty"`   // other names of the same model
	Ends      day      `json:"ends,omitzero"`       // last day, as announced by its maker
	Successor string   `json:"successor,omitempty"` // recommended by its maker

	provenance
}

// day is a date without a time, as "2026-11-28".
type day struct{ at time.Time }

// UnmarshalText reads a date.
func (d *day) UnmarshalText(text []byte) (err error) {
	d.at, err = time.Parse(time.DateOnly, string(text))
	return err
}

// IsZero reports whether there is no date.
func (d day) IsZero() bool { return d.at.IsZero() }

// MarshalText writes a date.
func (d day) MarshalText() ([]byte, error) { return []byte(d.at.Format(time.DateOnly)), nil }

// Ending is the announced end of a model.
type Ending struct {
	Model     string
	On        time.Time // the day, in UTC
	Successor string    // recommended by the model's maker; "" if absent
}

// table is a catalog prepared for lookups.
type table struct {
	date     time.Time
	byName   map[string]Model // under all their names
	ends     map[string]Ending
	prefixes map[string]bool
	tools    []catalogTool
	endings  []ending
}

// readTable reads a catalog. The error names the invalid row.
func readTable(content []byte) (*table, error) {
	if len(content) > MaxCatalog {
		return nil, fmt.Errorf("has more than %d bytes", MaxCatalog)
	}
	var file catalogFile
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("not a catalog: %w", err)
	}
	if file.Version != CatalogVersion {
		return nil, fmt.Errorf("has version %d, and this build reads version %d", file.Version, CatalogVersion)
	}
	if len(file.Models) == 0 || file.Date.IsZero() {
		return nil, errors.New("has no models or no date")
	}
	read := &table{
		date: file.Date.at, byName: make(map[string]Model, 2*len(file.Models)), ends: map[string]Ending{},
		prefixes: make(map[string]bool, len(file.Prefixes)), tools: file.Tools, endings: endings(),
	}
	for _, prefix := range file.Prefixes {
		read.prefixes[prefix] = true
	}
	for _, tool := range file.Tools {
		if err := errors.Join(tool.validate(&file), inRange("use", tool.Use, 0, maxPrice)); err != nil {
			return nil, fmt.Errorf("tool %q of %q: %w", tool.Tool, tool.Provider, err)
		}
	}
	for i := range file.Models {
		if err := read.add(&file, &file.Models[i]); err != nil {
			return nil, fmt.Errorf("model %d, %q: %w", i+1, file.Models[i].Name, err)
		}
	}
	for name, ending := range read.ends {
		if _, known := read.byName[ending.Successor]; !known && ending.Successor != "" {
			return nil, fmt.Errorf("model %q: its successor %q is not listed", name, ending.Successor)
		}
	}
	return read, nil
}

// add adds a row under all of its names.
func (t *table) add(file *catalogFile, row *catalogModel) error {
	if err := errors.Join(row.Model.validate(), row.provenance.validate(file)); err != nil {
		return err
	}
	for _, name := range append([]string{row.Name}, row.Aliases...) {
		if name == "" || name != strings.ToLower(strings.TrimSpace(name)) {
			return fmt.Errorf("the name %q is empty or not in small letters", name)
		}
		if _, taken := t.byName[name]; taken {
			return fmt.Errorf("the name %q is there twice", name)
		}
		t.byName[name] = row.Model.complete()
	}
	if !row.Ends.IsZero() {
		t.ends[row.Name] = Ending{Model: row.Name, On: row.Ends.at, Successor: row.Successor}
	}
	return nil
}

// validate returns an error unless a row has a listed source and a plausible date.
func (p provenance) validate(file *catalogFile) error {
	if file.Sources[p.Source] == "" {
		return fmt.Errorf("its source %q is not listed", p.Source)
	}
	if p.Date.IsZero() || p.Date.at.After(file.Date.at) {
		return errors.New("its date is missing, or after the catalog's")
	}
	return nil
}

// validate returns an error if a model's figures are implausible.
func (m Model) validate() error {
	if m.Provider == "" {
		return errors.New("has no provider")
	}
	errs := []error{
		inRange("window", float64(m.Window), minWindow, maxWindow),
		inRange("longWindow", float64(m.LongWindow), 0, maxWindow),
		inRange("maxInput", float64(m.MaxInput), 0, float64(m.Window)),
		inRange("maxOutput", float64(m.MaxOutput), 0, float64(m.Window)),
		inRange("cache.min", float64(m.Cache.Min), 0, float64(m.Window)),
		m.Price.validate(),
	}
	for _, life := range m.Cache.Lives {
		errs = append(errs, inRange("cache.lives", life.Seconds(), 1, maxLife.Seconds()))
	}
	for tier, factor := range m.Tiers {
		errs = append(errs, inRange("tiers."+tier, factor, 0.01, maxFactor))
	}
	for region, factor := range m.Regions {
		errs = append(errs, inRange("regions."+region, factor, 0.01, maxFactor))
	}
	return errors.Join(errs...)
}

// validate returns an error if a price is implausible. A missing price is valid.
func (p Price) validate() error {
	if p == (Price{}) {
		return nil
	}
	errs := []error{inRange("longAbove", float64(p.LongAbove), 0, maxWindow)}
	if p.Input <= 0 || p.Output <= 0 {
		errs = append(errs, errors.New("price: needs input and output above 0"))
	}
	for i, price := range []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite, p.CacheWrite1h} {
		name := []string{"input", "output", "cacheRead", "cacheWrite", "cacheWrite1h"}[i]
		errs = append(errs, inRange("price."+name, price, 0, maxPrice))
	}
	if p.CacheRead > p.Input {
		errs = append(errs, errors.New("price: reading from the cache costs more than input"))
	}
	if isLong := p.LongAbove > 0; isLong != (p.LongInput > 0) || isLong != (p.LongOutput > 0) {
		errs = append(errs, errors.New("price: needs all of longAbove, longInput and longOutput, or none"))
	}
	return errors.Join(append(errs, inRange("longInput", p.LongInput, 0, maxFactor), inRange("longOutput", p.LongOutput, 0, maxFactor))...)
}

func inRange(name string, value, least, most float64) error {
	if !(value >= least && value <= most) {
		return fmt.Errorf("%s is %v, and must be from %v to %v", name, value, least, most)
	}
	return nil
}
