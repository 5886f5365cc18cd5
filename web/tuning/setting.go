package tuning

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
	"palimpsest/pipeline/expression"
)

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
