package main

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/web/browsertest"
)

// The whole first visit in a real browser: sign up, store a provider key, create
// an API key, send a conversation past the window, read original and sent beside
// each other, move the slider, and see the next exchange use it.
func TestFirstVisitInTheBrowser(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	i := start(t, providerdouble.Config{KeepBodies: 1})
	b := browsertest.Start(t).Open(t, browsertest.View{URL: i.url("")})

	b.Go("/signup")
	b.Fill("email", "ada@example.com")
	b.Fill("password", "correct horse battery")
	b.Fill("workspace", "Northbeam")
	b.Press("Sign up")
	b.See("[data-testid=steps]")
	b.CheckLooks("overview, empty")

	b.Go("/providers/new")
	b.Fill("name", "Anthropic")
	b.Fill("key", providerKey)
	b.Fill("base_url", i.double.URL)
	b.Press("Add key")
	b.See("[data-testid=providers]")
	b.CheckLooks("providers")

	b.Go("/keys/new")
	b.Fill("name", "laptop")
	b.Press("Create key")
	b.See("[data-testid=secret]")
	b.CheckLooks("key created")
	w := &tenant{instance: i, key: b.Text("[data-testid=secret]")}
	b.Go("/keys")
	if strings.Contains(b.Text("body"), w.key) {
		t.Error("the secret is shown a second time")
	}

	b.Go("/overview")
	session := sessiontest.Generate(2, sessiontest.Options{Turns: 60, Parallel: true, TargetTokens: 190_000, CacheMarkers: true, Signer: i.double})
	header := map[string]string{"X-Session-Id": "visit", "User-Agent": "claude-cli/2.1.329 (external, cli)"}
	epochs := 0
	for step, body := range session.Bodies() {
		if step == session.Steps()-1 {
			break // kept for the changed setting
		}
		response, answer := w.post("/v1/messages", body, header)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("request %d: status %d: %s", step+1, response.StatusCode, answer)
		}
		if response.Header.Get("X-Palimpsest-Archived") != "0" {
			epochs++
		}
	}
	if epochs == 0 {
		t.Fatal("the conversation was never compressed")
	}
	b.See("#steps[data-done='3']") // the first request arrives on the open page
	b.Go("/overview")
	b.CheckLooks("overview")

	b.Go("/sessions")
	b.CheckLooks("sessions")
	b.Click("[data-testid=sessions] a.ttl")
	b.See("[data-testid=turns]")
	b.Run(`Array.from(document.querySelectorAll("[data-testid=turns] a.turn")).find(turn => turn.querySelector(".tk").textContent.includes("→")).click()`)
	b.See(".s-orig")
	b.See(".s-sent")
	b.CheckLooks("session")

	b.Go("/pipeline")
	b.See("[data-testid=preview][data-asked]:not(.stale)")
	b.CheckLooks("pipeline")
	b.Set("[data-slider]", "0.55")
	b.Press("Save change")
	b.See("[data-testid=saved]")
	var config struct {
		Pipeline struct {
			IPC struct {
				TargetUtilization float64 `json:"targetUtilization"`
			} `json:"ipc"`
		} `json:"pipeline"`
	}
	w.hears(func() bool { // of the saved value
		w.get("/v1/pipeline", &config)
		return config.Pipeline.IPC.TargetUtilization == 0.55
	})
	if response, answer := w.post("/v1/messages", session.Body(session.Steps()-1), header); response.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", response.StatusCode, answer)
	}
}
