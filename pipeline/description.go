package pipeline

// Description is what a module says of itself: its part of a config, and how people see it.
// The dashboard, the checks of configs, the API's description and the docs are made from it.
type Description struct {
	Name  string // in configs, headers and events
	Title string // beside the name, in a few words
	Does  string // in one sentence
	Docs  string // of the section that explains it: "memory.md#rehydration-rehydrator"

	// Header names the module in the header X-Palimpsest-Injected; "" takes its name, behind
	// the modules that have one for the header.
	Header string

	// Figure says what the dashboard calls the texts that the module has put into prompts;
	// the zero value if it puts none.
	Figure Figure

	// IsStandard says that the module runs where no one has set which ones run.
	IsStandard bool

	// Defaults returns a pointer to the settings with their defaults.
	Defaults func() Settings

	// Cards are the settings as the dashboard has them. Each setting is on one of them.
	Cards []Card

	// Presets are named sets of settings to start from, in the order in which they are offered.
	Presets []Preset
}

// Card is a box with settings of a module.
type Card struct {
	Title, Sub string
	Settings   []Setting
}

// Figure names a number of texts: "put into 3 prompts".
type Figure struct {
	Before string // the number: "put into "
	Noun   string // "prompt"
}

// Preset is a named set of settings to start from.
type Preset struct {
	Name  string // as people choose it: "default"
	Title string
	Does  string // in a sentence or two
	YAML  string // what differs from the defaults
}

// settings are the module's settings in the order of its cards.
func (d *Description) settings() []Setting {
	var all []Setting
	for _, card := range d.Cards {
		all = append(all, card.Settings...)
	}
	return all
}
