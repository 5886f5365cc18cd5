package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/migrations/dbtest"
)

// Of a program that is killed while it serves several clients, every exchange whose client had
// all of the answer is recorded once it has been started again: once, and counted once.
func TestKilledProgramLosesNoAnsweredExchange(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	double := providertest.NewServer(t, providerdouble.Config{Key: providerKey, Window: 200_000, Count: counter(t).Count, KeepBodies: 1})
	c := &child{t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: database.OwnerURL}
	c.start()
	w := &tenant{instance: &instance{t: t, double: double}}
	c.adopt(w)
	w.join("killed")
	random := rand.New(rand.NewPCG(3, 4))
	var whole answeredRequests
	for round := range 8 {
		var clients sync.WaitGroup
		for client := range 6 {
			clients.Go(func() { whole.ask(t, w, round, client) })
		}
		whole.wait(10 + random.IntN(60))
		_ = c.command.Process.Signal(syscall.SIGKILL)
		_ = c.command.Wait()
		clients.Wait()
		c.start()
		c.adopt(w)
	}
	w.until(func() bool {
		var waiting int
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM unnest($1::uuid[]) AS t (id) WHERE NOT EXISTS (SELECT FROM exchanges e WHERE e.id = t.id)", whole.ids).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting == 0
	})
	c.stop() // has recorded everything
	var exchanges, counted int
	err := database.Owner(t).QueryRow(t.Context(), `SELECT (SELECT count(*) FROM exchanges WHERE session_id IS NOT NULL AND status = 200), (SELECT sum(exchanges) FROM sessions)`).Scan(&exchanges, &counted)
	if err != nil || exchanges < len(whole.ids) || counted != exchanges {
		t.Errorf("%d requests were answered, %d exchanges are recorded, and sessions count %d of them, %v", len(whole.ids), exchanges, counted, err)
	}
	var unanswered int
	err = database.Owner(t).QueryRow(t.Context(), `SELECT count(*) FROM exchanges WHERE id = ANY($1::uuid[])
		AND (answer IS NULL OR NOT EXISTS (SELECT FROM archive_objects o WHERE o.workspace_id = exchanges.workspace_id AND o.hash = exchanges.answer)
			OR NOT EXISTS (SELECT FROM archive_entries a WHERE a.workspace_id = exchanges.workspace_id AND a.lane_id = exchanges.lane_id AND a.index = 0))`, whole.ids).Scan(&unanswered)
	if err != nil || unanswered != 0 {
		t.Errorf("of %d answered requests what was asked or answered is not in the archive, %v", unanswered, err)
	}
}

// answeredRequests are the ids of requests whose clients had all of their answers.
type answeredRequests struct {
	mu   sync.Mutex
	ids  []string
	more sync.Cond
}

// ask sends new conversations, every other one streamed, until the program is killed.
func (a *answeredRequests) ask(t *testing.T, w *tenant, round, client int) {
	t.Helper()
	for step := 0; ; step++ {
		body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":64,"stream":%t,"messages":[{"role":"user","content":"Round %d, client %d, step %d"}]}`,
			step%2 == 0, round, client, step)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url("/v1/messages"), strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+w.key)
		request.Header.Set("Anthropic-Version", "2023-06-01")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return // killed
		}
		isWhole := readsWhole(response)
		_ = response.Body.Close()
		if !isWhole {
			return
		}
		a.add(response.Header.Get("X-Palimpsest-Request-Id"))
	}
}

// readsWhole reads an answer up to the event or the byte behind which clients wait for nothing
// more, and reports whether that came.
func readsWhole(response *http.Response) bool {
	if response.ContentLength >= 0 {
		n, err := io.Copy(io.Discard, response.Body)
		return err == nil && n == response.ContentLength && response.StatusCode == http.StatusOK
	}
	var said []byte
	for buffer := make([]byte, 4096); ; {
		n, err := response.Body.Read(buffer)
		said = append(said, buffer[:n]...)
		if strings.Contains(string(said), `"message_stop"}`) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

func (a *answeredRequests) add(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids = append(a.ids, id)
	a.more.Broadcast()
}

// wait returns once so many more requests have been answered.
func (a *answeredRequests) wait(more int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.more.L = &a.mu
	for until := len(a.ids) + more; len(a.ids) < until; {
		a.more.Wait()
	}
}
