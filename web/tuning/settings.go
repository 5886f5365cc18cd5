package tuning

import (
	"slices"
	"strings"
	"sync"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
)

// setting is a pipeline setting on the page.
type setting struct {
	pipeline.Setting // a member has its parent's name in front: "llmCompression.model"

	Module string
}

// path is the setting's name in the form and in errors: "ipc.targetUtilization".
func (s *setting) path() string { return s.Module + "." + s.Name }

// parent is the path of the setting that this one is a member of; "" if absent.
func (s *setting) parent() string {
	name, _, is := strings.Cut(s.Name, ".")
	if !is {
		return ""
	}
	return s.Module + "." + name
}

// card is a group of a module's settings.
type card struct {
	Module, Title, Sub string
	Settings           []setting
}

// cards are all settings of the pipeline in the page's order.
var cards = sync.OnceValue(func() []card { //nolint:gochecknoglobals // what the modules say of themselves, never changed
	var all []card
	for _, module := range modules.Catalog().Modules() {
		for _, box := range module.Cards {
			shown := card{Module: module.Name, Title: box.Title, Sub: box.Sub}
			for _, s := range box.Settings {
				if s.Reserved != "" {
					continue
				}
				shown.Settings = append(shown.Settings, setting{s, module.Name})
				for _, member := range s.Members {
					member.Name = s.Name + "." + member.Name
					shown.Settings = append(shown.Settings, setting{member, module.Name})
				}
			}
			all = append(all, shown)
		}
	}
	return all
})

// settings are all settings of the pipeline.
var settings = sync.OnceValue(func() []setting { //nolint:gochecknoglobals // as cards
	var all []setting
	for _, card := range cards() {
		all = append(all, card.Settings...)
	}
	return all
})

// settingOf returns the setting with a path.
func settingOf(path string) (setting, bool) {
	all := settings()
	at := slices.IndexFunc(all, func(s setting) bool { return s.path() == path })
	if at < 0 {
		return setting{}, false
	}
	return all[at], true
}

// cardsOf returns the cards of a module.
func cardsOf(name string) []card {
	var own []card
	for _, card := range cards() {
		if card.Module == name {
			own = append(own, card)
		}
	}
	return own
}

// shown are the card's visible settings.
func (c card) shown() []setting {
	return slices.DeleteFunc(slices.Clone(c.Settings), func(s setting) bool { return s.IsRare })
}

// shownCards returns a module's cards with at least one visible setting.
func shownCards(name string) []card {
	return slices.DeleteFunc(cardsOf(name), func(c card) bool { return len(c.shown()) == 0 })
}
