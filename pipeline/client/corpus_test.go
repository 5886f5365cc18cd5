package client_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire/anthropic"
)

// W47, E8: real requests of which each is known to follow a compaction, to begin
// a conversation, or to carry one on.
func TestLabeledRequestsAreClassifiedAsLabeled(t *testing.T) {
	t.Parallel()
	file, err := os.Open(sharedtest.Path(t, "data", "bridge", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	type count struct{ requests, marked, first, side int }
	counts := map[string]*count{}
	var memory lanes
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) == 0 && err != nil {
			break
		}
		var row struct {
			ID    string          `json:"id"`
			Label string          `json:"label"`
			Real  bool            `json:"real"`
			Body  json.RawMessage `json:"body"`
		}
		if err = json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		label := row.Label
		if !row.Real {
			label += ", template"
		}
		if counts[label] == nil {
			counts[label] = &count{}
		}
		counted := counts[label]
		envelope := open(t, anthropic.Codec{}, row.Body) // both formats have their messages there
		class := client.Classify(http.Header{}, "", envelope)
		history := &memory
		if !row.Real {
			history = &lanes{} // all templates of a client begin alike
		}
		isFirst := class.First(history.known(envelope, class))
		counted.requests++
		if class.Marker.Found() {
			counted.marked++
		}
		if class.IsSide() {
			counted.side++
		}
		if isFirst {
			counted.first++
		}
		if isFirst != (row.Label == "continuation") {
			t.Errorf("%s (%s): first %v, %+v", row.ID, row.Label, isFirst, class)
		}
	}
	for label, got := range counts {
		t.Logf("%s: %d requests, %d with a marker, %d first after a compaction, %d beside the conversation",
			label, got.requests, got.marked, got.first, got.side)
	}
	for label, want := range map[string]count{
		"continuation":           {requests: 59, marked: 59, first: 59},
		"continuation, template": {requests: 24, marked: 24, first: 24},
		"fresh":                  {requests: 249},
		"normal":                 {requests: 210, marked: 59}, // the marker stays in later requests
	} {
		if got := counts[label]; got == nil || *got != want {
			t.Errorf("%s: %+v, want %+v", label, got, want)
		}
	}
}
