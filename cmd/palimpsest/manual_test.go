package main

import (
	"bytes"
	"net/http"
	"net/url"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/sessiontest"
)

// E12: a session far below its target is compacted with its next request once
// someone asks for it; a pinned turn stays, and the session shows what waits.
func TestASessionIsCompactedWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("manual")
	session := sessiontest.Generate(5, sessiontest.Options{Turns: 40, Parallel: true, TargetTokens: 40_000})
	body := session.Body(session.Steps() - 1)
	compression := func(header map[string]string) string {
		response, answer := w.post("/v1/messages", body, header)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %s", response.StatusCode, answer)
		}
		return response.Header.Get("X-Palimpsest-Compression")
	}
	if got := compression(nil); got != "none" {
		t.Fatalf("compressed unasked: %s", got)
	}
	type listed struct{ Data []struct{ ID, Title string } }
	var sessions listed
	w.until(func() bool {
		w.call(http.MethodGet, "/api/v1/sessions", nil, http.StatusOK, &sessions)
		return len(sessions.Data) == 1
	})
	path := "/api/v1/sessions/" + sessions.Data[0].ID
	var found struct{ Data []struct{ Session string } } // what is archived is found soon
	w.until(func() bool {
		w.call(http.MethodGet, "/api/v1/search?q="+url.QueryEscape(sessions.Data[0].Title), nil, http.StatusOK, &found)
		return len(found.Data) > 0 && found.Data[0].Session == sessions.Data[0].ID
	})
	w.call(http.MethodPost, path+"/pins", map[string]int{"message": 4}, http.StatusOK, nil)
	w.call(http.MethodPost, path+"/compact", map[string]string{"instructions": "Keep the API."}, http.StatusAccepted, nil)

	// The replica hears of it; until then a request goes out as it came.
	var got string
	w.until(func() bool { got = compression(nil); return got != "none" })
	sent, _ := i.double.Last()
	if got != "epoch" || len(sent.Body) >= len(body)*3/4 {
		t.Errorf("%s, %d of %d bytes", got, len(sent.Body), len(body))
	}
	envelope, err := wire.Open(body, anthropic.New().List())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(sent.Body, envelope.Element(4)) || bytes.Contains(sent.Body, envelope.Element(8)) {
		t.Error("not the pinned message, and it alone of its neighbors, went out as it came")
	}
	if again := compression(nil); again != "frozen" {
		t.Errorf("the order is carried out twice: %s", again)
	}
	var detail struct {
		Lanes []struct {
			AskedAt *string `json:"asked_at"`
			Epochs  []struct{ Reason string }
		}
	}
	w.call(http.MethodGet, path, nil, http.StatusOK, &detail)
	if len(detail.Lanes) != 1 || detail.Lanes[0].AskedAt != nil || len(detail.Lanes[0].Epochs) != 1 || detail.Lanes[0].Epochs[0].Reason != "manual" {
		t.Errorf("the session shows %+v", detail.Lanes)
	}
}
