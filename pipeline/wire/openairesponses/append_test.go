package openairesponses_test

import "palimpsest/pipeline/wire/wiretest"

// appends are items with texts behind them.
func appends() []wiretest.AppendSample {
	return []wiretest.AppendSample{
		{
			Name: "an input that is a string", Raw: `"h\u00e9"`,
			Want: `{"role":"user","content":[{"type":"input_text","text":"h\u00e9"},{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}]}`,
		},
		{
			Name: "a string", Raw: `{"content" : "a" , "role":"user"}`,
			Want: `{"content" : [{"type":"input_text","text":"a"},{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}] , "role":"user"}`,
		},
		{
			Name: "parts", Raw: `{"type":"message","role":"user","content":[ {"type":"input_image","image_url":"https://x"}]}`,
			Want: `{"type":"message","role":"user","content":[ {"type":"input_image","image_url":"https://x"},{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}]}`,
		},
		{Name: "no content", Raw: `{"type":"message","role":"user"}`},
	}
}

// instructs are bodies with texts behind their instructions.
func instructs() []wiretest.InstructSample {
	return []wiretest.InstructSample{
		{Name: "instructions", Body: `{"instructions":"Be \u00e9.\n","input":[ ]}`, Want: `{"instructions":"Be é.\n\n\none\n\ntwo","input":[ ]}`},
		{Name: "blank ones", Body: `{"instructions":" ","input":[]}`, Want: `{"instructions":"one\n\ntwo","input":[]}`},
		{
			Name: "none", Body: `{"input":[{"role":"user","content":"a"}]}`,
			Want: `{"input":[{"role":"developer","content":"one"},{"role":"developer","content":"two"},{"role":"user","content":"a"}]}`,
		},
		{
			Name: "an input that is a string", Body: `{"input":"a"}`,
			Want: `{"input":[{"role":"developer","content":"one"},{"role":"developer","content":"two"},{"role":"user","content":"a"}]}`,
		},
		{
			Name: "a system item", Body: `{"input":[{"type":"message","role":"system","content":"s"},{"role":"user","content":"a"}]}`,
			Want: `{"input":[{"type":"message","role":"system","content":"s"},{"role":"system","content":"one"},{"role":"system","content":"two"},{"role":"user","content":"a"}]}`,
		},
	}
}
