package apiclients

import (
	"net/http"
	"slices"
	"testing"
)

func TestHabitsThatAreNotListedAreNew(t *testing.T) {
	t.Parallel()
	sent := func(body string) Habits {
		habits := Habits{}
		habits.Add(&Trial{Exchanges: []Exchange{{
			Method: "POST", Path: "/v1/messages?beta=true", Header: http.Header{"Anthropic-Beta": {"one-1, two-2"}}, Body: []byte(body),
		}}})
		return habits
	}
	folder := t.TempDir()
	if added, err := sent(`{}`).Compare(folder, "client"); err != nil || len(added) > 0 {
		t.Errorf("a client without a list is compared: %q, %v", added, err)
	}
	if err := (Habits{}).Learn(folder, "client"); err != nil {
		t.Fatal(err)
	}
	first := sent(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"tool_result","content":[{"type":"image"}]}]}]}`)

	added, err := first.Compare(folder, "client")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"path POST /v1/messages?beta=true", "beta one-1", "beta two-2", "member model", "in user content", "in user/text text", "in user/tool_result/image type"} {
		if !slices.Contains(added, want) {
			t.Errorf("%q is not among %q", want, added)
		}
	}
	if err := first.Learn(folder, "client"); err != nil {
		t.Fatal(err)
	}
	if added, err := first.Compare(folder, "client"); err != nil || len(added) > 0 {
		t.Errorf("what is known is new: %q, %v", added, err)
	}

	second := sent(`{"model":"m","messages":[{"role":"system","content":"<system-reminder>\n<total_tokens>12 tokens left</total_tokens>\n</system-reminder>"}]}`)

	added, err = second.Compare(folder, "client")
	want := []string{"in system content", "in system role", "reminder of system: <total_tokens> tokens"}
	if err != nil || !slices.Equal(added, want) {
		t.Errorf("new: %q, want %q (%v)", added, want, err)
	}
}
