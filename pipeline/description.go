package pipeline

// Description describes a module: its section of a config, and its presentation. The dashboard, the config
// checks, the API description and the docs are generated from it.
type Description struct {
	Name  string // in configs, headers and events
	Title string // shown beside the name, in a few words
	Does  string // in one sentence
	Docs  string // section that explains it: "memory.md#rehydration-rehydrator"

	// Header names the module in the header X-Palimpsest-Injected. If it is "", the module's Name is used,
	// after the modules with a Header.
	Header string

	// Figure is the dashboard's label for the number of texts that the module has put into prompts; the zero
	// value for a module that adds no text.
	Figure Figure

	// IsStandard means that the module runs unless a config lists the modules.
	IsStandard bool

	// Defaults returns a pointer to the settings with their defaults.
	Defaults func() Settings

	// Cards are the boxes of settings in the dashboard. Each setting is on one of them.
	Cards []Card

	// Presets are named sets of settings to start from, in display order.
	Presets []Preset
}

// Card is a box of settings of a module in the dashboard.
type Card struct {
	Title, Sub string
	Settings   []Setting
}

// Figure is the text around a number of texts: "put into 3 prompts".
type Figure struct {
	Before string // before the number: "put into "
	Noun   string // "prompt"
}

// Preset is a named set of settings to start from.
type Preset struct {
	Name  string // the name that people choose: "default"
	Title string
	Does  string // in a sentence or two
	YAML  string // the differences from the defaults
}

// settings are the module's settings in the order of its cards.
func (d *Description) settings() []Setting {
	var all []Setting
	for _, card := range d.Cards {
		all = append(all, card.Settings...)
	}
	return all
}
