package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"
)

const odd = `{ "model":"claude-x",  "x_unknown": 1.00e2, "x_unknown": {"a" : [ ]},
  "messages" : [ {"role":"user","content":"h\u00e9llo","cache_control":{"ttl":"1h"}} ,
	{"role":"assistant","content":[{"type":"future_block","n":12345678901234567890, "n":1e400}]}, {"role":"user","content":"x"} ],
  "stream":true , "é":"<&>", "last" : 1.0 }
`

func open(t *testing.T, body, list string) *wire.Envelope {
	t.Helper()
	envelope, err := wire.Open([]byte(body), list)
	if err != nil {
		t.Fatalf("open %s: %v", body, err)
	}
	return envelope
}

func TestOpenCutsAtMembersAndElements(t *testing.T) {
	t.Parallel()

	envelope := open(t, odd, "messages")
	want := []string{
		`{"role":"user","content":"h\u00e9llo","cache_control":{"ttl":"1h"}}`,
		`{"role":"assistant","content":[{"type":"future_block","n":12345678901234567890, "n":1e400}]}`,
		`{"role":"user","content":"x"}`,
	}
	if envelope.Len() != len(want) {
		t.Fatalf("%d elements, want %d", envelope.Len(), len(want))
	}
	for i, element := range want {
		if got := string(envelope.Element(i)); got != element {
			t.Errorf("element %d: %s, want %s", i, got, element)
		}
	}
	for name, value := range map[string]string{
		"model": `"claude-x"`, "x_unknown": `{"a" : [ ]}`, "stream": "true", "é": `"<&>"`, "last": "1.0",
	} {
		if got, ok := envelope.Member(name); !ok || string(got) != value {
			t.Errorf("%s: %s, want %s", name, got, value)
		}
	}
	if got, ok := envelope.Member("messag"); ok {
		t.Errorf("found %s under a name that is not there", got)
	}
	if string(envelope.Body()) != odd {
		t.Error("the body is another one")
	}
}

func TestTheLastOfTwoListsCounts(t *testing.T) {
	t.Parallel()

	for body, want := range map[string]string{
		`{"input":[1,2,3],"input":[4]}`:   "4",
		`{"input":"text","input":[5]}`:    "5",
		`{"input":[1],"input":"text"}`:    `"text"`,
		`{"inp\u0075t":[{}], "other":[]}`: "{}",
	} {
		envelope := open(t, body, "input")
		if envelope.Len() != 1 || string(envelope.Element(0)) != want {
			t.Errorf("%s: %d elements, the first is %s", body, envelope.Len(), envelope.Element(0))
		}
	}
}

func TestMalformedBodiesAreRefusedWithThePlaceOfTheFault(t *testing.T) {
	t.Parallel()

	for body, want := range map[string]string{
		"":                                 "must be a JSON object",
		"null":                             "must be a JSON object",
		"[]":                               "must be a JSON object",
		"\xef\xbb\xbf{}":                   "byte 0",
		`{}`:                               "messages: missing",
		`{"message":[]}`:                   "messages: missing",
		`{"messages":null}`:                "messages: expected an array",
		`{"messages":[],"messages":7}`:     "messages: expected an array",
		`{"messages":[]`:                   "too early, after 14 bytes",
		`{"messages":[`:                    "too early",
		`{"messages":[{"a":"b`:             "too early",
		`{"messages":[{"a":[1,2}]}`:        "byte 22",
		`{"messages":[1 2]}`:               "byte 15",
		`{"messages":[1,]}`:                "byte 15",
		`{"messages":[,1]}`:                "byte 13",
		`{"messages":[]}x`:                 "byte 15",
		`{"messages":[]}{}`:                "byte 15",
		`{"messages":[],}`:                 "byte 15",
		`{"messages" []}`:                  "byte 12",
		`{messages:[]}`:                    "byte 1",
		`{"messages":[],"a":tru}`:          "byte 19",
		`{"messages":[],"a":01}`:           "byte 19",
		`{"messages":[],"a":1.}`:           "byte 19",
		`{"messages":[],"a":}`:             "byte 19",
		`{"messages":[],"a"}`:              "byte 18",
		`{"messages":[]]`:                  "byte 14",
		`{"messages":["\"]}`:               "too early",
		strings.Repeat(`{"messages":`, 99): "too early",
	} {
		envelope, err := wire.Open([]byte(body), "messages")
		var invalid *wire.Invalid
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", body, envelope, err, want)
		}
	}
}

func TestEveryTruncatedBodyIsRefused(t *testing.T) {
	t.Parallel()

	whole := strings.TrimSpace(odd)
	for i := range whole {
		if _, err := wire.Open([]byte(whole[:i]), "messages"); err == nil {
			t.Fatalf("cut after %d bytes, but not refused: %s", i, whole[:i])
		}
	}
}

func TestBodiesDeeperThanTheScannerTracksAreCut(t *testing.T) {
	t.Parallel()

	deep := strings.Repeat(`[{"a":`, 200) + "1" + strings.Repeat("}]", 200)
	envelope := open(t, `{"messages":[`+deep+`,2]}`, "messages")
	if envelope.Len() != 2 || string(envelope.Element(0)) != deep {
		t.Errorf("%d elements", envelope.Len())
	}
}

func TestUnchangedBodyIsReturnedAsItIs(t *testing.T) {
	t.Parallel()

	envelope := open(t, odd, "messages")
	for _, pieces := range [][]wire.Piece{
		{{From: 0, To: 3}},
		{{From: 0, To: 1}, {From: 1, To: 3}},
		{{From: 0, To: 2}, {From: 2, To: 2, Raw: json.RawMessage{}}, {From: 2, To: 3}, {From: 3, To: 3}},
	} {
		sealed := envelope.Seal(pieces, wire.Member{Name: "stream", Raw: json.RawMessage("true")}, wire.Member{Name: "none"})
		if &sealed[0] != &envelope.Body()[0] {
			t.Errorf("%v: written again: %s", pieces, sealed)
		}
	}
}

// A11, W13.
func TestOnlyWhatChangedDiffers(t *testing.T) {
	t.Parallel()

	const body = `{ "model" : "m", "input":[ 0 ,1,  2	,3 ], "z":1.0 } `
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	keep := []wire.Piece{{From: 0, To: 4}}
	for _, test := range []struct {
		name    string
		pieces  []wire.Piece
		members []wire.Member
		want    string
	}{
		{"first replaced", []wire.Piece{{From: 0, To: 1, Raw: raw("7")}, {From: 1, To: 4}}, nil, `{ "model" : "m", "input":[ 7 ,1,  2	,3 ], "z":1.0 } `},
		{"middle replaced", []wire.Piece{{From: 0, To: 2}, {From: 2, To: 3, Raw: raw("7")}, {From: 3, To: 4}}, nil, `{ "model" : "m", "input":[ 0 ,1,  7	,3 ], "z":1.0 } `},
		{"several by one", []wire.Piece{{From: 0, To: 3, Raw: raw("7")}, {From: 3, To: 4}}, nil, `{ "model" : "m", "input":[ 7	,3 ], "z":1.0 } `},
		{"one by several", []wire.Piece{{From: 0, To: 1}, {From: 1, To: 2, Raw: raw("7,8")}, {From: 2, To: 4}}, nil, `{ "model" : "m", "input":[ 0 ,7,8,  2	,3 ], "z":1.0 } `},
		{"inserted", []wire.Piece{{From: 0, To: 4}, {From: 4, To: 4, Raw: raw("7")}}, nil, `{ "model" : "m", "input":[ 0 ,1,  2	,3,7 ], "z":1.0 } `},
		{"first left out", []wire.Piece{{From: 0, To: 2, Raw: raw("")}, {From: 2, To: 4}}, nil, `{ "model" : "m", "input":[ 2	,3 ], "z":1.0 } `},
		{"middle left out", []wire.Piece{{From: 0, To: 1}, {From: 1, To: 3, Raw: raw("")}, {From: 3, To: 4}}, nil, `{ "model" : "m", "input":[ 0,3 ], "z":1.0 } `},
		{"middle without a piece", []wire.Piece{{From: 0, To: 1}, {From: 2, To: 4}}, nil, `{ "model" : "m", "input":[ 0,2	,3 ], "z":1.0 } `},
		{"last left out", []wire.Piece{{From: 0, To: 3}, {From: 3, To: 4, Raw: raw("")}}, nil, `{ "model" : "m", "input":[ 0 ,1,  2 ], "z":1.0 } `},
		{"all left out", nil, nil, `{ "model" : "m", "input":[  ], "z":1.0 } `},
		{"moved", []wire.Piece{{From: 2, To: 4}, {From: 0, To: 1}}, nil, `{ "model" : "m", "input":[ 2	,3,0 ], "z":1.0 } `},
		{"members", keep, []wire.Member{{Name: "z", Raw: raw("2")}, {Name: "a\"", Raw: raw("{}")}, {Name: "model", Raw: raw(`"n"`)}}, `{ "model" : "n", "input":[ 0 ,1,  2	,3 ], "z":2,"a\"":{} } `},
		{"both", []wire.Piece{{From: 0, To: 1}}, []wire.Member{{Name: "model", Raw: raw("null")}}, `{ "model" : null, "input":[ 0 ], "z":1.0 } `},
	} {
		if got := string(open(t, body, "input").Seal(test.pieces, test.members...)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestAnEmptyListTakesNewElements(t *testing.T) {
	t.Parallel()

	sealed := open(t, `{"input":[ ]}`, "input").Seal([]wire.Piece{{Raw: json.RawMessage("1")}, {Raw: json.RawMessage("2")}})
	if string(sealed) != `{"input":[ 1,2]}` {
		t.Errorf("got %s", sealed)
	}
}

func TestAListThatIsAStringBecomesAnArrayWhenItChanges(t *testing.T) {
	t.Parallel()

	envelope := open(t, `{"input": "h\u00e9" }`, "input")
	if envelope.Len() != 1 || string(envelope.Element(0)) != `"h\u00e9"` {
		t.Fatalf("%d elements", envelope.Len())
	}
	if got := string(envelope.Seal([]wire.Piece{{From: 0, To: 1}})); got != `{"input": "h\u00e9" }` {
		t.Errorf("unchanged: %s", got)
	}
	for _, test := range []struct {
		pieces []wire.Piece
		want   string
	}{
		{[]wire.Piece{{Raw: json.RawMessage(`{"a":1}`)}, {From: 0, To: 1}}, `{"input": [{"a":1},{"role":"user","content":"h\u00e9"}] }`},
		{[]wire.Piece{{From: 0, To: 1, Raw: json.RawMessage(`{"a":1}`)}}, `{"input": [{"a":1}] }`},
		{[]wire.Piece{{From: 0, To: 1, Raw: json.RawMessage{}}}, `{"input": [] }`},
	} {
		if got := string(envelope.Seal(test.pieces)); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// S37: what was read before is cheap and does not count; what is new is bounded.
func TestMessagesThatWereNotReadBeforeAreBounded(t *testing.T) {
	t.Parallel()
	list := func(n int) []byte {
		return []byte(`{"messages":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}`)
	}
	known := func(n int) wire.Known {
		return func([]byte) []wire.Range {
			stretches := make([]wire.Range, n)
			for i := range stretches {
				stretches[i] = wire.Range{Start: int32(1 + 3*i), End: int32(3 + 3*i)}
			}
			return stretches
		}
	}
	for name, test := range map[string]struct {
		known, all int
		is         bool
	}{"all new": {0, wire.MaxNew, true}, "one too many": {0, wire.MaxNew + 1, false}, "behind known ones": {20, wire.MaxNew + 20, true}, "one too many behind": {20, wire.MaxNew + 21, false}} {
		envelope, err := wire.OpenKnown(list(test.all), "messages", known(test.known))
		invalid, _ := errors.AsType[*wire.Invalid](err)
		if test.is != (err == nil && envelope.Len() == test.all) || !test.is && (invalid == nil || !invalid.IsLarge || !strings.Contains(invalid.Message, "fewer")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if envelope, err := wire.Open(list(wire.MaxNew+1), "messages"); err != nil || envelope.Len() != wire.MaxNew+1 {
		t.Errorf("a list outside a request: %v", err)
	}
}

// S34: a member that is asked for must be there once, in letters of either case; others pass.
func TestMembersThatAreReadStandOnce(t *testing.T) {
	t.Parallel()
	for body, fault := range map[string]string{
		`{"model":"a","x":1,"x":2,"messages":[]}`:      "",
		`{"model":"a","model":"b","messages":[]}`:      "model",
		`{"Model":"a","model":"b","messages":[]}`:      "model",
		`{"mode\u006c":"a","model":"b","messages":[]}`: "model",
	} {
		envelope, err := wire.Open([]byte(body), "messages")
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		fields := wire.NewFields(envelope)
		_, _ = fields.String("model"), fields.Array("messages")
		invalid, _ := errors.AsType[*wire.Invalid](fields.Err())
		if (invalid != nil) != (fault != "") || invalid != nil && invalid.Member != fault {
			t.Errorf("%s: %v", body, fields.Err())
		}
	}
}
