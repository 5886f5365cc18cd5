package tuning

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/expression"
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

// plain matches numbers. All other input stays text, which the pipeline refuses with its own message.
var plain = expression.New(`^-?[0-9]{1,15}(\.[0-9]{1,15})?$`)

// node returns the input as a YAML node.
func (s *setting) node(typed string) *yaml.Node {
	typed = strings.TrimSpace(typed)
	switch s.Kind {
	case pipeline.Toggle:
		node := scalar(typed)
		if typed == "true" || typed == "false" {
			node.Tag = "!!bool"
		}
		return node
	case pipeline.Numbers:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for part := range strings.FieldsFuncSeq(typed, func(r rune) bool { return r == ',' || r == ' ' }) {
			list.Content = append(list.Content, scalar(part))
		}
		return list
	case pipeline.Lines:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for line := range strings.Lines(typed) {
			if line = strings.TrimSpace(line); line != "" {
				list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: line})
			}
		}
		return list
	case pipeline.Word, pipeline.Paragraph:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.ReplaceAll(typed, "\r\n", "\n")}
	default:
		return scalar(typed)
	}
}

// scalar returns a number as a number and all other input as text.
func scalar(typed string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: typed}
	if !plain.MatchString(typed) {
		return node
	}
	value, err := strconv.ParseFloat(typed, 64)
	if err != nil {
		return node
	}
	node.Tag, node.Value = "!!float", strconv.FormatFloat(value, 'f', -1, 64)
	if !strings.Contains(node.Value, ".") {
		node.Tag = "!!int"
	}
	return node
}

// isSame reports whether two texts are the same value for the setting.
func (s *setting) isSame(a, b string) bool {
	return strings.TrimSpace(a) == strings.TrimSpace(b) || isSameNode(s.node(a), s.node(b))
}

func isSameNode(a, b *yaml.Node) bool {
	return a.Tag == b.Tag && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, isSameNode)
}

// text returns a decoded JSON value of a config as its field shows it.
func (s *setting) text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	case float64:
		text := strconv.FormatFloat(value, 'f', -1, 64)
		if whole, fraction, _ := strings.Cut(text, "."); strings.Contains(s.Step, ".") && len(fraction) < 2 {
			text = whole + "." + fraction + strings.Repeat("0", 2-len(fraction))
		}
		return text
	case []any:
		texts := make([]string, len(value))
		for i := range value {
			texts[i] = s.text(value[i])
		}
		if s.Kind == pipeline.Numbers {
			return strings.Join(texts, ", ")
		}
		return strings.Join(texts, "\n")
	default:
		return "true" // a setting whose members are settings of their own
	}
}

// brief limits the characters of a value in a sentence.
const brief = 60

// said returns a value for a sentence, cut to a number of characters.
func (s *setting) said(text string, most int) string {
	switch {
	case s.Kind == pipeline.Toggle:
		return onOff(text == "true")
	case strings.TrimSpace(text) == "":
		return "empty"
	}
	for _, option := range s.Options {
		if option.Value == text {
			return option.Value
		}
	}
	return excerpts.Start(strings.Join(strings.Fields(text), " "), most)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
