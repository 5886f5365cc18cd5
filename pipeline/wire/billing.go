package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Billing holds the options of a request that cost extra, apart from its prompt and one answer. The formats
// and servers share the members' names.
type Billing struct {
	Answers int      // to the same prompt; 0 means one
	Served           // requested terms
	Uses    int      // most uses of tools run by the provider
	Fee     int64    // of the most expensive of these per use, in millionths of a US dollar, if its price isn't listed
	Models  []string // that may answer instead of the request's own
	Beyond  bool     // the provider has more of the prompt than the body holds
	Search  bool     // the provider searches the web for the answer and may not report it
}

const (
	// maxAnswers limits the accepted number of answers. No provider writes as many.
	maxAnswers = 1 << 20

	// DefaultUses is the assumed number of uses of a provider's tools if a request sets no limit.
	DefaultUses = 10
)

// Served holds the terms of a request or an answer, which determine the price of its tokens. The formats
// share the members' names. Unset terms are empty.
type Served struct {
	Tier   string // of service: "priority", "flex"
	Speed  string // "fast"
	Region string // processing region
	Model  string // that answered, if different from the requested one; only in an answer that was priced
}

// Over returns the terms, completed by those of asked.
func (s Served) Over(asked Served) Served {
	return Served{Tier: cmp.Or(s.Tier, asked.Tier), Speed: cmp.Or(s.Speed, asked.Speed), Region: cmp.Or(s.Region, asked.Region)}
}

// ServedOf reads the terms in an object.
func ServedOf(object json.RawMessage) Served {
	return Served{Tier: Text(object, "service_tier"), Speed: Text(object, "speed"), Region: Text(object, "inference_geo")}
}

// Billing reads the options of a body that cost extra.
func (f *Fields) Billing() Billing {
	billing := Billing{Answers: min(maxAnswers, max(0, f.Int("n"), f.Int("best_of")))}
	billing.Tier, _ = String(f.Raw("service_tier"))
	billing.Speed, _ = String(f.Raw("speed"))
	billing.Region, _ = String(f.Raw("inference_geo"))
	billing.Uses, billing.Fee = f.uses()
	billing.Search = f.searches()
	for _, member := range []string{previousResponse, "conversation", previousInteraction} {
		billing.Beyond = billing.Beyond || f.Raw(member) != nil
	}
	for _, member := range []string{"models", "fallbacks"} {
		billing.Models = appendModels(billing.Models, f.Raw(member))
	}
	return billing
}

// uses returns the maximum number of uses of the tools that the provider runs, and the fee of the most
// expensive one per use.
func (f *Fields) uses() (uses int, fee int64) {
	for _, tool := range Elements(f.Raw("tools")) {
		if Get(tool, "input_schema") != nil {
			continue
		}
		most, bounded := Int(Get(tool, "max_uses"))
		if !bounded {
			most = DefaultUses
		}
		for _, kind := range kindsOf(tool) {
			if !isRunByClient(kind) {
				uses, fee = uses+min(maxAnswers, max(0, most)), max(fee, ToolFee(kind))
			}
		}
	}
	if f.searches() {
		uses, fee = uses+DefaultUses, max(fee, usualFee)
	}
	if most, bounded := Int(f.Raw("max_tool_calls")); bounded {
		uses = min(uses, max(0, most))
	}
	return min(uses, maxAnswers), fee
}

// kindsOf returns the kinds of tools in an element of a request's list: its type, or, as in Gemini's API, the
// names of the objects in it. Declarations of functions are a list there.
func kindsOf(tool json.RawMessage) []string {
	if kind := Text(tool, "type"); kind != "" {
		return []string{kind}
	}
	var kinds []string
	for name, value := range Members(tool) {
		if len(value) > 0 && value[0] == '{' {
			kinds = append(kinds, string(name))
		}
	}
	return kinds
}

// searches reports whether the provider searches the web without a tool in the request: as an option of Chat,
// with OpenAI's search models, and with OpenRouter's plugin and suffix.
func (f *Fields) searches() bool {
	model, _ := String(f.Raw("model"))
	if f.Raw("web_search_options") != nil || strings.HasSuffix(model, ":online") || strings.Contains(model, "-search-api") || strings.Contains(model, "-search-preview") {
		return true
	}
	return slices.Contains(TextsOf(f.Raw("plugins"), "id"), "web")
}

// IsBilledTool reports whether a provider may charge for each use of a tool of a kind. It charges for tools
// that it runs, except MCP servers and its search among the request's own tools.
func IsBilledTool(kind string) bool {
	return !isRunByClient(kind) && !strings.HasPrefix(kind, "mcp") && !strings.HasPrefix(kind, "tool_search")
}

// isRunByClient reports whether clients run tools of a kind: functions, and tools that providers trained
// their models on.
func isRunByClient(kind string) bool {
	for _, ours := range []string{"function", "custom", "namespace", "bash", "text_editor", "computer", "memory", "local_shell", "shell", "apply_patch"} {
		if strings.HasPrefix(kind, ours) {
			return true
		}
	}
	return kind == ""
}

// The highest price of one use of a provider's tool whose price isn't listed, in millionths of a US dollar:
// of a picture, and of anything else (a web search costs 0.01 to 0.025, a container 0.03).
const (
	pictureFee = 250_000
	usualFee   = 30_000
)

// ToolFee returns the assumed price of one use of a provider's tool without a listed price, in millionths of
// a US dollar.
func ToolFee(kind string) int64 {
	if strings.HasPrefix(kind, "image_generation") {
		return pictureFee
	}
	return usualFee
}

// appendModels appends the models in a list. Each element is a name, an object with a model, or a list of
// replacements by model.
func appendModels(models []string, list json.RawMessage) []string {
	for _, element := range Elements(list) {
		if name, is := String(element); is {
			models = append(models, name)
			continue
		}
		if name := Text(element, "model"); name != "" {
			models = append(models, name)
			continue
		}
		for _, more := range Members(element) {
			models = appendModels(models, more)
		}
	}
	return models
}
