package openaichat_test

import "palimpsest/pipeline/wire/wiretest"

// appends are messages with texts behind them.
func appends() []wiretest.AppendSample {
	return []wiretest.AppendSample{
		{
			Name: "a string", Raw: `{"content" : "h\u00e9" , "name":"ann","role":"user"}`,
			Want: `{"content" : [{"type":"text","text":"h\u00e9"},{"type":"text","text":"one"},{"type":"text","text":"two"}] , "name":"ann","role":"user"}`,
		},
		{
			Name: "parts", Raw: `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x"}} , {"text":"a","type":"text"} ]}`,
			Want: `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x"}} , {"text":"a","type":"text"},{"type":"text","text":"one"},{"type":"text","text":"two"} ]}`,
		},
		{Name: "no content", Raw: `{"role":"user","content":null}`},
	}
}

// instructs are bodies with texts behind their system prompt.
func instructs() []wiretest.InstructSample {
	return []wiretest.InstructSample{
		{
			Name: "none", Body: `{"messages":[{"role":"user","content":"a"}]}`,
			Want: `{"messages":[{"role":"system","content":"one"},{"role":"system","content":"two"},{"role":"user","content":"a"}]}`,
		},
		{
			Name: "two of them", Body: `{"messages":[ {"role":"system","content":"s"} , {"content":"d","role":"developer"} , {"role":"user","content":"a"} ]}`,
			Want: `{"messages":[ {"role":"system","content":"s"} , {"content":"d","role":"developer"},{"role":"developer","content":"one"},{"role":"developer","content":"two"} , {"role":"user","content":"a"} ]}`,
		},
		{
			Name: "nothing else", Body: `{"messages":[{"role":"system","content":"s"}]}`,
			Want: `{"messages":[{"role":"system","content":"s"},{"role":"system","content":"one"},{"role":"system","content":"two"}]}`,
		},
	}
}
