package wire_test

import (
	"reflect"
	"testing"

	"palimpsest/pipeline/wire"
)

// S47: whatever a request asks for that is charged for is seen before it is sent.
func TestChargesAreReadFromTheBody(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]wire.Billing{
		`{"messages":[],"conversation":"c"}`:                                     {Beyond: true},
		`{"messages":[]}`:                                                        {},
		`{"messages":[],"n":128,"best_of":2}`:                                    {Answers: 128},
		`{"messages":[],"n":3,"best_of":20}`:                                     {Answers: 20},
		`{"messages":[],"n":1e300}`:                                              {},
		`{"messages":[],"n":9007199254740992}`:                                   {Answers: 1 << 20},
		`{"messages":[],"n":-5}`:                                                 {},
		`{"messages":[],"service_tier":"priority"}`:                              {Served: wire.Served{Tier: "priority"}},
		`{"messages":[],"service_tier":"flex"}`:                                  {Served: wire.Served{Tier: "flex"}},
		`{"messages":[],"speed":"fast"}`:                                         {Served: wire.Served{Speed: "fast"}},
		`{"messages":[],"inference_geo":"us"}`:                                   {Served: wire.Served{Region: "us"}},
		`{"messages":[],"service_tier":"turbo"}`:                                 {Served: wire.Served{Tier: "turbo"}},
		`{"messages":[],"models":["a","b"]}`:                                     {Models: []string{"a", "b"}},
		`{"messages":[],"fallbacks":[{"model":"a"}]}`:                            {Models: []string{"a"}},
		`{"messages":[],"fallbacks":[{"x":["a"]}]}`:                              {Models: []string{"a"}},
		`{"messages":[],"web_search_options":{}}`:                                {Uses: 10, Fee: 30_000, Search: true},
		`{"messages":[],"web_search_options":null}`:                              {},
		`{"messages":[],"model":"gpt-5-search-api"}`:                             {Uses: 10, Fee: 30_000, Search: true},
		`{"messages":[],"model":"openai/gpt-4o-mini-search-preview-2025-03-11"}`: {Uses: 10, Fee: 30_000, Search: true},
		`{"messages":[],"model":"openai/gpt-5:online"}`:                          {Uses: 10, Fee: 30_000, Search: true},
		`{"messages":[],"plugins":[{"id":"file-parser"},{"id":"web"}]}`:          {Uses: 10, Fee: 30_000, Search: true},
		`{"messages":[],"plugins":[{"id":"file-parser"}]}`:                       {},
		`{"messages":[],"tools":[{"type":"function","function":{"name":"x"}},{"name":"x","input_schema":{}},{"type":"bash_20250124","name":"bash"}]}`: {},
		`{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3}]}`:                                                   {Uses: 3, Fee: 30_000},
		`{"messages":[],"tools":[{"functionDeclarations":[{"name":"x"}]},{"computerUse":{}}]}`:                                                        {},
		`{"messages":[],"tools":[{"functionDeclarations":[]},{"google_search":{}},{"codeExecution":{},"urlContext":{}}]}`:                             {Uses: 30, Fee: 30_000},
		`{"messages":[],"tools":[{"type":"google_search"},{"type":"function","name":"x","parameters":{}}]}`:                                           {Uses: 10, Fee: 30_000},
		`{"messages":[],"tools":[{"type":"web_search"},{"type":"image_generation"}],"max_tool_calls":4}`:                                              {Uses: 4, Fee: 250_000},
	} {
		fields := wire.NewFields(open(t, body, "messages"))
		if got := fields.Billing(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
	fields := wire.NewFields(open(t, `{"messages":[],"n":1,"n":128}`, "messages"))
	if _ = fields.Billing(); fields.Err() == nil {
		t.Error("two counts of answers are let pass")
	}
}
