package anthropic_test

import "palimpsest/pipeline/wire/wiretest"

// appends are messages with texts behind them.
func appends() []wiretest.AppendSample {
	return []wiretest.AppendSample{
		{
			Name: "a string", Raw: `{"content" : "h\u00e9" , "x":1.0,"role":"user"}`,
			Want: `{"content" : [{"type":"text","text":"h\u00e9"},{"type":"text","text":"one"},{"type":"text","text":"two"}] , "x":1.0,"role":"user"}`,
		},
		{Name: "an empty string", Raw: `{"role":"user","content":" "}`, Want: `{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`},
		{
			Name: "tool results", Raw: `{"role":"user","content":[ {"type":"tool_result","tool_use_id":"t1","content":"1.0","cache_control":{"type":"ephemeral"}} ]}`,
			Want: `{"role":"user","content":[ {"type":"tool_result","tool_use_id":"t1","content":"1.0","cache_control":{"type":"ephemeral"}},{"type":"text","text":"one"},{"type":"text","text":"two"} ]}`,
		},
		{Name: "no content", Raw: `{"role":"user"}`},
		{Name: "other content", Raw: `{"role":"user","content":1}`},
	}
}

// instructs are bodies with texts behind their system prompt.
func instructs() []wiretest.InstructSample {
	const ours = `{"type":"text","text":"one"},{"type":"text","text":"two"}]`
	return []wiretest.InstructSample{
		{Name: "none", Body: `{"messages":[], "x":1.0}`, Want: `{"messages":[], "x":1.0,"system":[` + ours + `}`},
		{Name: "null", Body: `{"system":null,"messages":[]}`, Want: `{"system":[` + ours + `,"messages":[]}`},
		{Name: "a string", Body: `{"system": "Be \u00e9.","messages":[ ]}`, Want: `{"system": [{"type":"text","text":"Be \u00e9."},` + ours + `,"messages":[ ]}`},
		{
			Name: "an array", Body: `{"messages":[],"system":[{"text":"a","type":"text","cache_control":{"type":"ephemeral"}} ]}`,
			Want: `{"messages":[],"system":[{"text":"a","type":"text","cache_control":{"type":"ephemeral"}},{"type":"text","text":"one"},{"type":"text","text":"two"} ]}`,
		},
		{Name: "what is refused", Body: `{"system":7,"messages":[]}`, Want: `{"system":7,"messages":[]}`},
	}
}
