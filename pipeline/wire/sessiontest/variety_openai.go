package sessiontest

import (
	"fmt"
	"strings"
)

// named gives a user message of Chat the name of its author.
func (v *variety) named(message string) string {
	if !v.chance(20) {
		return message
	}
	return strings.TrimSuffix(message, "}") + `,"name":"ann"}`
}

// chatCall is a call of a function, or of a custom tool.
func (v *variety) chatCall(id string, call toolCall) string {
	if v.chance(15) {
		return fmt.Sprintf(`{"id":%s,"type":"custom","custom":{"name":%s,"input":%s}}`, quote(id), quote(call.name), quote("*** Begin Patch\n"+call.input))
	}
	return fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, quote(id), quote(call.name), quote(call.input))
}

// chatResult is a result as a string, or as parts.
func (v *variety) chatResult(text string) string {
	if !v.chance(20) {
		return quote(text)
	}
	return fmt.Sprintf(`[{"type":"text","text":%s},{"type":"text","text":"done"}]`, quote(text))
}

// chatSaid is an answer without calls: said, spoken or refused.
func (v *variety) chatSaid(turn int, content string) string {
	shape := 9
	if v != nil {
		shape = v.random.IntN(10)
	}
	switch shape {
	case 0, 1:
		return fmt.Sprintf(`{"role":"assistant","content":null,"audio":{"id":"audio_%d"}}`, turn)
	case 2:
		return fmt.Sprintf(`{"role":"assistant","content":null,"refusal":%s}`, content)
	case 3:
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}],"annotations":[]}`, content)
	default:
		return fmt.Sprintf(`{"role":"assistant","content":%s}`, content)
	}
}

// configured are items that may change the model's abilities from here on.
func (v *variety) configured() []string {
	var items []string
	if v.chance(5) {
		items = append(items, `{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"later","parameters":{"type":"object","properties":{}}}]}`)
	}
	if v.chance(5) {
		items = append(items, `{"type":"configuration_update","reasoning":{"effort":"high"}}`)
	}
	if v.chance(8) {
		items = append(items, fmt.Sprintf(`{"role":"developer","content":%s}`, quote("The mode has changed: "+v.sentence())))
	}
	return items
}

// servedItems are calls that the provider answered within the answer.
func (v *variety) servedItems(turn int) []string {
	var items []string
	for _, item := range []func() string{
		func() string {
			return fmt.Sprintf(`{"type":"web_search_call","id":"ws_%d","status":"completed","action":{"type":"search","query":%s}}`, turn, quote(v.sentence()))
		},
		func() string {
			return fmt.Sprintf(`{"type":"file_search_call","id":"fs_%d","status":"completed","queries":[%s],"results":null}`, turn, quote(v.noun()))
		},
		func() string {
			return fmt.Sprintf(`{"type":"code_interpreter_call","id":"ci_%d","container_id":"cntr_1","code":"1+1","outputs":[{"type":"logs","logs":%s}],"status":"completed"}`, turn, quote(v.prose(200)))
		},
		func() string {
			return fmt.Sprintf(`{"type":"image_generation_call","id":"ig_%d","result":%s,"status":"completed"}`, turn, quote(v.picture()))
		},
		func() string {
			return fmt.Sprintf(`{"type":"mcp_list_tools","id":"mcpl_%d","server_label":"local","tools":[]}`, turn)
		},
		func() string {
			return fmt.Sprintf(`{"type":"mcp_call","id":"mcp_%d","server_label":"local","name":"echo","arguments":"{}","output":%s}`, turn, quote(v.prose(200)))
		},
	} {
		if v.chance(5) {
			items = append(items, item())
		}
	}
	if v.chance(3) {
		items = append(items,
			fmt.Sprintf(`{"type":"tool_search_call","id":"ts_%d","call_id":null,"execution":"server","arguments":{"paths":["later"]},"status":"completed"}`, turn),
			fmt.Sprintf(`{"type":"tool_search_output","id":"tso_%d","call_id":null,"execution":"server","status":"completed","tools":[{"type":"function","name":"later","parameters":{}}]}`, turn))
	}
	return items
}

// itemCall is a call of Responses and its output, in one of the API's forms.
func (v *variety) itemCall(id, callID string, call toolCall, caller string) (item, output string) {
	if v != nil && call.picture == "" && caller == "" {
		text := quote(plainResult(call))
		switch v.random.IntN(12) {
		case 0:
			return fmt.Sprintf(`{"type":"custom_tool_call","call_id":%s,"name":"patch","input":%s}`, quote(callID), quote("*** Begin Patch\n"+call.input)),
				fmt.Sprintf(`{"type":"custom_tool_call_output","call_id":%s,"output":%s}`, quote(callID), text)
		case 1:
			return fmt.Sprintf(`{"type":"local_shell_call","id":%s,"call_id":%s,"action":{"type":"exec","command":["ls","-l"],"env":{}},"status":"completed"}`, quote("lsh_"+callID), quote(callID)),
				fmt.Sprintf(`{"type":"local_shell_call_output","id":%s,"output":%s}`, quote(callID), text)
		case 2:
			return fmt.Sprintf(`{"type":"shell_call","call_id":%s,"action":{"commands":["make"],"timeout_ms":1000.0},"status":"completed"}`, quote(callID)),
				fmt.Sprintf(`{"type":"shell_call_output","call_id":%s,"output":[{"stdout":%s,"stderr":"","outcome":{"type":"exit","exit_code":0}}],"max_output_length":4096}`, quote(callID), text)
		case 3:
			return fmt.Sprintf(`{"type":"apply_patch_call","call_id":%s,"operation":{"type":"update_file","path":"a.go","diff":%s},"status":"completed"}`, quote(callID), quote(v.code("a", 200))),
				fmt.Sprintf(`{"type":"apply_patch_call_output","call_id":%s,"status":"completed","output":%s}`, quote(callID), text)
		case 4:
			return fmt.Sprintf(`{"type":"computer_call","id":%s,"call_id":%s,"action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"}`, quote("cu_"+callID), quote(callID)),
				fmt.Sprintf(`{"type":"computer_call_output","call_id":%s,"output":{"type":"computer_screenshot","image_url":%s}}`, quote(callID), quote("data:image/png;base64,"+v.picture()))
		case 5:
			return functionCall(id, callID, call, ""),
				fmt.Sprintf(`{"type":"function_call_output","call_id":%s,"output":[%s,%s]}`, quote(callID), inputText(plainResult(call)+"."), inputImage(v.picture()))
		}
	}
	return functionCall(id, callID, call, caller), fmt.Sprintf(`{"type":"function_call_output","call_id":%s,"output":%s%s}`, quote(callID), responsesOutput(call), caller)
}

func functionCall(id, callID string, call toolCall, caller string) string {
	return fmt.Sprintf(`{"type":"function_call","id":%s,"call_id":%s,"name":%s,"arguments":%s,"status":"completed"%s}`, quote(id), quote(callID), quote(call.name), quote(call.input), caller)
}
