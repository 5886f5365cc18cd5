package wire

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Billing is what a request asks for, beside its prompt and one answer, that a provider
// charges for. The formats and servers share the members' names.
type Billing struct {
	Answers int      // written to the same prompt; 0: one
	Served           // on what terms the request asks for it
	Uses    int      // most uses of tools that the provider runs itself
	Fee     int64    // of the dearest of them each time, in millionths of a US dollar, if none is listed
	Models  []string // that may answer in place of the request's own
	Beyond  bool     // the provider has more of the prompt than the body
}

const (
	// maxAnswers bounds the answers that are believed: no provider writes as many.
	maxAnswers = 1 << 20

	// DefaultUses is how many uses of a provider's own tool are counted on where a request
	// does not bound them.
	DefaultUses = 10
)

// Served is on what terms a request asks to be answered, or an answer says that it was: they decide
// what its tokens cost. The formats share the members' names. Empty where nothing is said.
type Served struct {
	Tier   string // of service: "priority", "flex"
	Speed  string // "fast"
	Region string // where it is processed
	Model  string // that answered, if it's another than the one that was asked for; only of an answer that was priced
}

// Over returns the terms, and those of asked where nothing is said.
func (s Served) Over(asked Served) Served {
	return Served{Tier: cmp.Or(s.Tier, asked.Tier), Speed: cmp.Or(s.Speed, asked.Speed), Region: cmp.Or(s.Region, asked.Region)}
}

// ServedOf reads the terms that an object names.
func ServedOf(object json.RawMessage) Served {
	return Served{Tier: Text(object, "service_tier"), Speed: Text(object, "speed"), Region: Text(object, "inference_geo")}
}

// Billing reads what a body asks for that is charged for.
func (f *Fields) Billing() Billing {
	billing := Billing{Answers: min(maxAnswers, max(0, f.Int("n"), f.Int("best_of")))}
	billing.Tier, _ = String(f.Raw("service_tier"))
	billing.Speed, _ = String(f.Raw("speed"))
	billing.Region, _ = String(f.Raw("inference_geo"))
	billing.Uses, billing.Fee = f.uses()
	billing.Beyond = f.Raw("previous_response_id") != nil || f.Raw("conversation") != nil
	for _, member := range []string{"models", "fallbacks"} {
		billing.Models = appendModels(billing.Models, f.Raw(member))
	}
	return billing
}

// uses returns how often the tools that the provider runs itself may be used, and what
// the dearest of them costs each time.
func (f *Fields) uses() (uses int, fee int64) {
	for _, tool := range Elements(f.Raw("tools")) {
		kind := Text(tool, "type")
		if Get(tool, "input_schema") != nil || isRunByClient(kind) {
			continue
		}
		most, bounded := Int(Get(tool, "max_uses"))
		if !bounded {
			most = DefaultUses
		}
		uses, fee = uses+min(maxAnswers, max(0, most)), max(fee, ToolFee(kind))
	}
	if f.Raw("web_search_options") != nil {
		uses, fee = uses+DefaultUses, max(fee, usualFee)
	}
	if most, bounded := Int(f.Raw("max_tool_calls")); bounded {
		uses = min(uses, max(0, most))
	}
	return min(uses, maxAnswers), fee
}

// IsBilledTool reports whether a provider may charge for each use of a tool of a kind: it runs the tool itself, and
// not an MCP server or its search among the request's own tools.
func IsBilledTool(kind string) bool {
	return !isRunByClient(kind) && !strings.HasPrefix(kind, "mcp") && !strings.HasPrefix(kind, "tool_search")
}

// isRunByClient reports whether tools of a kind are run by the client: functions, and
// those that providers have taught their models.
func isRunByClient(kind string) bool {
	for _, ours := range []string{"function", "custom", "namespace", "bash", "text_editor", "computer", "memory", "local_shell", "shell", "apply_patch"} {
		if strings.HasPrefix(kind, ours) {
			return true
		}
	}
	return kind == ""
}

// What a use of a provider's own tool costs at most where its price isn't listed, in millionths of a US dollar: a
// picture, and anything else (a web search costs 0.01 to 0.025, a container 0.03).
const (
	pictureFee = 250_000
	usualFee   = 30_000
)

// ToolFee returns what a use of a provider's own tool counts as whose price isn't listed, in millionths of a US dollar.
func ToolFee(kind string) int64 {
	if strings.HasPrefix(kind, "image_generation") {
		return pictureFee
	}
	return usualFee
}

// appendModels appends the models that a list names: by their names, in objects with
// a model, or in lists by the model that they stand in for.
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
