package main

import (
	"net/http"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

// A session is in the list with its title, client, and model while its first answer is still
// being written.
func TestSessionIsListedBeforeItsFirstAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	i := start(t, providerdouble.Config{Script: func(r providerdouble.Request) providerdouble.Reply {
		<-release
		return providerdouble.Echo(r)
	}})
	w := i.tenant("announced")
	answered := make(chan int, 1)
	go func() {
		response, _ := w.post("/v1/messages",
			[]byte(`{"model":"claude-sonnet-4-5","max_tokens":64,"messages":[{"role":"user","content":"Fix the parser"}]}`),
			map[string]string{"User-Agent": "claude-cli/2.1.330 (external, cli)"})
		answered <- response.StatusCode
	}()
	var list struct {
		Data []struct {
			Title, Client, Model string
			Requests             int
		}
	}
	w.until(func() bool {
		w.call(http.MethodGet, "/api/v1/sessions", nil, http.StatusOK, &list)
		return len(list.Data) == 1
	})
	if s := list.Data[0]; s.Title != "Fix the parser" || s.Client != "claude-code" || s.Model != "claude-sonnet-4-5" || s.Requests != 0 {
		t.Errorf("while the answer is written it is %+v", s)
	}
	close(release)
	if status := <-answered; status != http.StatusOK {
		t.Errorf("status %d", status)
	}
}
