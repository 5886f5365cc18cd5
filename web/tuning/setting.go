package tuning

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"palimpsest/web/components"
)

// kind says how a setting is typed, and how what was typed is read.
type kind string

const (
	number    kind = "number"    // a share or a count; empty where it may be left out
	toggle    kind = "toggle"    // "true" or "false"
	choice    kind = "choice"    // one of a few texts or numbers
	window    kind = "window"    // "auto" or a number
	numbers   kind = "numbers"   // whole numbers, separated by commas
	word      kind = "word"      // a short text
	lines     kind = "lines"     // texts, one a line
	paragraph kind = "paragraph" // a long text
)

// setting is one value of the pipeline as the page shows it.
type setting struct {
	Module, Name string // as the config names them; a member of another setting has its name in front: "llmCompression.model"
	Kind         kind
	Label, Hint  string
	Docs         string // page and section that explain it; "" for those of its card
	Unit         string // of a number; empty if none
	Low, High    string // of a number, as the pipeline has them
	Step         string
	MayMiss      bool // an empty number leaves the setting out
	Options      []components.Option
}

// path is the setting's name in the form and in errors: "ipc.targetUtilization".
func (s *setting) path() string { return s.Module + "." + s.Name }

// parent is the path of the setting that this one is a member of; empty if none.
func (s *setting) parent() string {
	name, _, is := strings.Cut(s.Name, ".")
	if !is {
		return ""
	}
	return s.Module + "." + name
}

// plain matches what is read as a number; all else stays text, which the pipeline
// refuses with its own words.
var plain = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,15})?$`)

// node returns what was typed as it is written in YAML.
func (s *setting) node(typed string) *yaml.Node {
	typed = strings.TrimSpace(typed)
	switch s.Kind {
	case toggle:
		node := scalar(typed)
		if typed == "true" || typed == "false" {
			node.Tag = "!!bool"
		}
		return node
	case numbers:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for part := range strings.FieldsFuncSeq(typed, func(r rune) bool { return r == ',' || r == ' ' }) {
			list.Content = append(list.Content, scalar(part))
		}
		return list
	case lines:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for line := range strings.Lines(typed) {
			if line = strings.TrimSpace(line); line != "" {
				list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: line})
			}
		}
		return list
	case word, paragraph:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.ReplaceAll(typed, "\r\n", "\n")}
	default:
		return scalar(typed)
	}
}

// scalar returns a number that was typed as one, and all else as text.
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

// isSame reports whether two texts are the same value of the setting.
func (s *setting) isSame(a, b string) bool {
	return strings.TrimSpace(a) == strings.TrimSpace(b) || isSameNode(s.node(a), s.node(b))
}

func isSameNode(a, b *yaml.Node) bool {
	return a.Tag == b.Tag && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, isSameNode)
}

// text returns a value of a config, as encoding/json decodes it, as it is typed.
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
		if s.Kind == numbers {
			return strings.Join(texts, ", ")
		}
		return strings.Join(texts, "\n")
	default:
		return "true" // a setting with members, which are settings of their own
	}
}

// brief is how many characters of a value a sentence names, and ample how many a page
// about it.
const (
	brief = 60
	ample = 600
)

// said returns a value as it is named, with at most so many of its characters.
func (s *setting) said(text string, most int) string {
	switch {
	case s.Kind == toggle:
		return onOff(text == "true")
	case strings.TrimSpace(text) == "":
		return "empty"
	}
	for _, option := range s.Options {
		if option.Value == text {
			return option.Value
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
