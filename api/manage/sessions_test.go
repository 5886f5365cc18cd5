package manage_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// turnsPage is the part of an answer that the tests look at.
type turnsPage struct {
	Data []struct {
		Turn, From, To, Level, Tokens int
		Messages                      []struct {
			Index, Level, Tokens, Size int
			Role, SHA256               string
		}
	}
	NextCursor *string `json:"next_cursor"`
}

func (w *tenant) path(format string, values ...any) string {
	return "/sessions/" + w.session.String() + fmt.Sprintf(format, values...)
}

func TestSessionsAreListedPageByPage(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	for range 4 {
		w.messages = nil
		w.converse(t, "ada")
	}
	path, pages, seen := "/sessions?limit=2", 0, map[string]bool{}
	for path != "" {
		answer := w.send(t, http.MethodGet, path, "")
		answer.want(t, http.StatusOK)
		var list struct {
			Data []struct {
				ID, Title, Client, Model, Format string
				Requests, Epochs                 int
			}
			NextCursor *string `json:"next_cursor"`
		}
		answer.decode(t, &list)
		for _, one := range list.Data {
			seen[one.ID] = true
			if one.Title != "Session of ada" || one.Client != "claude-code" || one.Format != "anthropic" || one.Requests != 1 || one.Epochs != 1 {
				t.Errorf("listed is %+v", one)
			}
		}
		pages, path = pages+1, ""
		if list.NextCursor != nil {
			path = "/sessions?limit=2&cursor=" + *list.NextCursor
		}
	}
	if pages != 3 || len(seen) != 5 {
		t.Errorf("%d sessions on %d pages, want 5 on 3", len(seen), pages)
	}
	for query, want := range map[string]int{"q=ADA": 5, "q=nobody": 0, "client=codex": 0, "model=claude-sonnet-4-5": 5, "from=2999-01-01": 0, "to=2000-01-01": 0} {
		answer := w.send(t, http.MethodGet, "/sessions?"+query, "")
		answer.want(t, http.StatusOK)
		if got := bytes.Count(answer.body, []byte(`"source"`)); got != want || !bytes.Contains(answer.body, []byte(`"data":[`)) {
			t.Errorf("%s: %d sessions, want %d: %s", query, got, want, answer.body)
		}
	}
}

func TestASessionIsShownAndDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	answer := w.send(t, http.MethodGet, w.path(""), "")
	answer.want(t, http.StatusOK)
	var got struct {
		Lanes []struct {
			ID                 string
			Messages, Archived int
			Epochs             []struct{ Number, Covers int }
		}
	}
	answer.decode(t, &got)
	if len(got.Lanes) != 1 || got.Lanes[0].ID != w.lane.String() || got.Lanes[0].Messages != 8 || got.Lanes[0].Archived != 8 ||
		len(got.Lanes[0].Epochs) != 1 || got.Lanes[0].Epochs[0].Covers != 4 {
		t.Errorf("session is %s", answer.body)
	}
	w.send(t, http.MethodDelete, w.path(""), "").want(t, http.StatusNoContent)
	w.send(t, http.MethodGet, w.path(""), "").want(t, http.StatusNotFound)
	w.send(t, http.MethodGet, w.path("/archive/0"), "").want(t, http.StatusNotFound)
	w.send(t, http.MethodDelete, w.path(""), "").want(t, http.StatusNotFound)
}

func TestTurnsShowTheirLevels(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	answer := w.send(t, http.MethodGet, w.path("/turns"), "")
	answer.want(t, http.StatusOK)
	var got turnsPage
	answer.decode(t, &got)
	if len(got.Data) != 4 || got.NextCursor != nil {
		t.Fatalf("turns are %s", answer.body)
	}
	for i, level := range []int{2, 1, 0, 0} {
		turn := got.Data[i]
		if turn.Turn != i+1 || turn.From != 2*i || turn.To != 2*i+2 || turn.Level != level || turn.Tokens != 14 || len(turn.Messages) != 2 {
			t.Errorf("turn %d is %+v", i+1, turn)
		}
		for k, message := range turn.Messages {
			raw := w.messages[2*i+k]
			if message.Index != 2*i+k || message.Level != level || message.Size != len(raw) || message.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(raw))) {
				t.Errorf("message %d is %+v", 2*i+k, message)
			}
		}
	}
}

// What modules have put into the prompt stands with its message, without its words.
func TestTurnsShowTheirInserts(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	seen := session.Update{
		Scope:   session.Scope{Workspace: w.workspace, APIKey: uuid.New(), Format: conversation.Anthropic},
		Session: w.session, Lane: w.lane, At: time.Now(), Messages: session.Messages{Position: 8},
	}
	err := w.sessions.Inject(t.Context(), seen, []session.Insert{
		{Number: 1, Message: session.InSystem, Module: "patterns", Text: "secret words", Tokens: 3, Items: []string{"p1"}},
		{Number: 2, Message: 0, Module: "compaction-bridge", Text: "secret words", Tokens: 4},
		{Number: 3, Message: 6, Module: "rehydrator", Text: "secret words", Tokens: 5, Items: []string{"#1", "#2"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := w.send(t, http.MethodGet, w.path("/turns"), "")
	answer.want(t, http.StatusOK)
	for _, want := range []string{
		`"system_inserts":[{"module":"patterns","tokens":3,"items":["p1"],"in_prompt":true}]`,
		`"inserts":[{"module":"compaction-bridge","tokens":4,"items":[],"in_prompt":false}]`,
		`"inserts":[{"module":"rehydrator","tokens":5,"items":["#1","#2"],"in_prompt":true}]`,
	} {
		if bytes.Count(answer.body, []byte(want)) != 1 {
			t.Errorf("not once: %s in %s", want, answer.body)
		}
	}
	if bytes.Contains(answer.body, []byte("secret")) {
		t.Errorf("the words are told: %s", answer.body)
	}
}

func TestPagesOfTurnsMeet(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	want := w.longLane(t)
	for _, limit := range []int{1, 3, 7, 200} {
		var got [][2]int
		cursor, number := "", 0
		for {
			answer := w.send(t, http.MethodGet, w.path("/turns?lane=%s&limit=%d&cursor=%s", w.lane, limit, cursor), "")
			answer.want(t, http.StatusOK)
			var page turnsPage
			answer.decode(t, &page)
			if len(page.Data) > limit {
				t.Fatalf("a page of %d turns, asked for %d", len(page.Data), limit)
			}
			for _, turn := range page.Data {
				if turn.Turn != number {
					t.Errorf("limit %d: turn %d follows turn %d", limit, turn.Turn, number-1)
				}
				number++
				got = append(got, [2]int{turn.From, turn.To})
			}
			if page.NextCursor == nil {
				break
			}
			cursor = *page.NextCursor
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("limit %d: turns are\n%v, want\n%v", limit, got, want)
		}
	}
	for _, cursor := range []string{"x", "-1.0", "1", "1.2.3"} {
		w.send(t, http.MethodGet, w.path("/turns?cursor=%s", cursor), "").want(t, http.StatusUnprocessableEntity)
	}
}

// longLane records a lane with system messages at its head and turns of very
// different lengths, and returns where they lie.
func (w *tenant) longLane(t *testing.T) [][2]int {
	t.Helper()
	messages := []string{`{"role":"system","content":"one"}`, `{"role":"system","content":"two"}`}
	turns := [][2]int{{0, 2}}
	for _, calls := range []int{0, 1, 40, 2, 0, 9, 0, 0, 3, 0, 17, 0} {
		from := len(messages)
		messages = append(messages, `{"role":"user","content":"and now?"}`)
		for call := range calls {
			messages = append(messages,
				fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d_%d","name":"read","input":{}}]}`, from, call),
				fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d_%d","content":"read"}]}`, from, call))
			if call > 0 {
				turns = append(turns, [2]int{from, len(messages) - 2})
				from = len(messages) - 2
			}
		}
		if calls > 0 {
			turns = append(turns, [2]int{from, len(messages)})
			from = len(messages)
		}
		messages = append(messages, `{"role":"assistant","content":"done"}`)
		turns = append(turns, [2]int{from, len(messages)})
	}
	w.lane = uuid.New()
	seen := session.Update{
		Scope:   session.Scope{Workspace: w.workspace, APIKey: uuid.MustParse(w.keyID), Format: conversation.Anthropic},
		Session: w.session, Lane: w.lane, Naming: session.Naming{Source: "lineage"}, At: time.Now(),
		Messages: session.Messages{Position: len(messages), Head: sha256.Sum256([]byte(messages[2]))},
	}
	for i, raw := range messages {
		seen.Messages.Entries = append(seen.Messages.Entries, archive.Entry{Index: i, Hash: sha256.Sum256([]byte(raw)), Role: conversation.User, Tokens: 7, Raw: []byte(raw)})
	}
	if err := w.sessions.Record(t.Context(), w.workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	return turns
}

// E2
func TestTheArchiveAnswersTheOriginalBytes(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	for index, want := range w.messages {
		answer := w.send(t, http.MethodGet, w.path("/archive/%d", index), "")
		answer.want(t, http.StatusOK)
		etag := fmt.Sprintf(`"sha256:%x"`, sha256.Sum256([]byte(want)))
		if string(answer.body) != want || answer.header.Get("ETag") != etag || answer.header.Get("Content-Type") != "application/json" {
			t.Errorf("message %d: %s with %v", index, answer.body, answer.header)
		}
		again := w.send(t, http.MethodGet, w.path("/archive/%d?lane=%s", index, w.lane), "", "If-None-Match", etag)
		if again.status != http.StatusNotModified || len(again.body) > 0 {
			t.Errorf("message %d again: status %d with %d bytes", index, again.status, len(again.body))
		}
	}
	for _, path := range []string{"/archive/8", "/archive/-1", "/archive/x", "/archive/99999999999999", "/archive/0?lane=" + uuid.NewString()} {
		w.send(t, http.MethodGet, w.path("%s", path), "").want(t, http.StatusNotFound)
	}
}

func TestDamagedBytesAreNotShown(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	damaged := sha256.Sum256([]byte(w.messages[0]))
	if _, err := w.db.Owner(t).Exec(t.Context(), "UPDATE archive_objects SET bytes = 'other', encoding = 0 WHERE hash = $1", damaged[:]); err != nil {
		t.Fatal(err)
	}
	answer := w.send(t, http.MethodGet, w.path("/archive/0"), "")
	answer.want(t, http.StatusInternalServerError)
	if !bytes.Contains(answer.body, []byte("SHA-256")) || !strings.Contains(w.log.String(), "do not match") {
		t.Errorf("answer %s, log %s", answer.body, w.log)
	}
	w.send(t, http.MethodGet, w.path("/archive/1"), "").want(t, http.StatusOK)
}

func TestTheMainLaneIsTheMostRecentlyActive(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	first := w.lane
	w.longLane(t)
	answer := w.send(t, http.MethodGet, w.path("/archive/0"), "")
	if string(answer.body) != `{"role":"system","content":"one"}` {
		t.Errorf("the main lane begins with %s", answer.body)
	}
	answer = w.send(t, http.MethodGet, w.path("/archive/0?lane=%s", first), "")
	if string(answer.body) != w.messages[0] {
		t.Errorf("the first lane begins with %s", answer.body)
	}
}

func TestEventsTellWhatTheModulesDid(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	answer := w.send(t, http.MethodGet, w.path("/events"), "")
	answer.want(t, http.StatusOK)
	var got struct {
		Data []struct {
			Request, Lane, Module, Type, Reason string
			Counts                              map[string]int
		}
	}
	answer.decode(t, &got)
	if len(got.Data) != 1 || got.Data[0].Request != w.request.String() || got.Data[0].Lane != w.lane.String() || got.Data[0].Module != "ipc" ||
		got.Data[0].Type != "completed" || got.Data[0].Reason != "target" || got.Data[0].Counts["before"] != 100 {
		t.Errorf("events are %s", answer.body)
	}
}

func TestRequestsAndUsageAreWhatWasRecorded(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	var list struct {
		Data []struct {
			ID, Session string
			Messages    int
			OverheadMS  float64        `json:"overhead_ms"`
			NetMicroUSD int64          `json:"net_micro_usd"`
			Reported    map[string]int `json:"reported"`
		}
	}
	w.send(t, http.MethodGet, "/requests?session="+w.session.String(), "").decode(t, &list)
	if len(list.Data) != 1 || list.Data[0].ID != w.request.String() || list.Data[0].Session != w.session.String() || list.Data[0].Messages != 8 ||
		list.Data[0].OverheadMS != 1.5 || list.Data[0].NetMicroUSD != -16 || list.Data[0].Reported["cache_write"] != 13 {
		t.Errorf("requests are %+v", list.Data)
	}
	one := w.send(t, http.MethodGet, "/requests/"+w.request.String(), "")
	one.want(t, http.StatusOK)
	if !bytes.Contains(one.body, []byte(`"events"`)) {
		t.Errorf("the request has no report: %s", one.body)
	}
	w.send(t, http.MethodGet, "/requests/"+uuid.NewString(), "").want(t, http.StatusNotFound)

	var kept time.Time
	if err := w.db.Owner(t).QueryRow(t.Context(), "SELECT at FROM exchanges WHERE id = $1", w.request).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	for by, label := range map[string]string{"": kept.UTC().Format(time.DateOnly), "key": w.keyID, "model": "claude-sonnet-4-5", "client": "claude-code"} {
		answer := w.send(t, http.MethodGet, "/usage?by="+by, "")
		answer.want(t, http.StatusOK)
		var usage struct {
			Data []struct {
				Label            string
				Requests, Output int
			}
		}
		answer.decode(t, &usage)
		found := false
		for _, row := range usage.Data {
			found = found || row.Label == label && row.Requests == 1 && row.Output == 14
		}
		if !found {
			t.Errorf("usage by %q has no row %q: %s", by, label, answer.body)
		}
	}
}

// C11: what each epoch was to save and has saved; a workspace that would be cheaper
// without compression is told so, with the number.
func TestMoneyIsToldByDecisionAndWorkspace(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "money")
	spend := func(count int, projection int, net int64, predicted *int64) {
		for range count {
			exchange := tenants.Exchange{
				ID: uuid.Must(uuid.NewV7()), At: time.Now(),
				Request: tenants.ExchangeRequest{Session: w.session, Lane: w.lane, APIKey: uuid.New()},
				Prompt: tenants.ExchangePrompt{
					Compression: "frozen", Projection: projection,
					Report: []byte(`{"events":[{"type":"completed","counts":{"worst_net_microusd":-95000}}]}`),
				},
				Cost:   tenants.ExchangeCost{NetMicroUSD: net, CostMicroUSD: 1000, PredictedMicroUSD: predicted},
				Tokens: tenants.ExchangeTokens{MissCause: "prefix_change_ours", MissedTokens: 50},
			}
			if err := w.db.DB.Exchanges.RecordExchanges(t.Context(), w.workspace, []tenants.Exchange{exchange}); err != nil {
				t.Fatal(err)
			}
		}
	}
	type usage struct {
		Misses []struct {
			Cause            string
			Requests, Tokens int
		}
		Advice *struct {
			Requests int
			Lost     int `json:"lost_micro_usd"`
			Without  int `json:"without_micro_usd"`
		}
	}
	spend(1, 1, -90_000, new(int64(700)))
	var early usage
	w.send(t, http.MethodGet, "/usage", "").decode(t, &early)
	if early.Advice != nil {
		t.Errorf("advice after one request: %+v", early.Advice)
	}
	spend(19, 1, 100, nil)
	var got usage
	w.send(t, http.MethodGet, "/usage", "").decode(t, &got)
	const lost = 90_000 - 19*100 + 16
	if got.Advice == nil || got.Advice.Requests != 20 || got.Advice.Lost != lost || got.Advice.Without != 20*1000+15-lost {
		t.Errorf("advice %+v", got.Advice)
	}
	if len(got.Misses) != 1 || got.Misses[0].Cause != "prefix_change_ours" || got.Misses[0].Requests != 20 || got.Misses[0].Tokens != 1000 {
		t.Errorf("misses %+v", got.Misses)
	}
	var one struct {
		Lanes []struct {
			Epochs []struct {
				Predicted *int `json:"predicted_micro_usd"`
				Worst     *int `json:"worst_micro_usd"`
				Realized  int  `json:"realised_micro_usd"`
				Requests  int

				Certificate []struct {
					What     string
					All      int
					InPrompt int `json:"in_prompt"`
					Missing  []int
				}
			}
		}
	}
	w.send(t, http.MethodGet, "/sessions/"+w.session.String(), "").decode(t, &one)
	if kept := one.Lanes[0].Epochs[0].Certificate; len(kept) != 1 || kept[0].What != "orders" || kept[0].All != 2 || kept[0].InPrompt != 1 || len(kept[0].Missing) != 1 {
		t.Errorf("certificate %+v", kept)
	}
	if epochs := one.Lanes[0].Epochs; len(epochs) != 1 || epochs[0].Predicted == nil || *epochs[0].Predicted != 700 || epochs[0].Worst == nil || *epochs[0].Worst != -95_000 || epochs[0].Realized != -90_000+1900 || epochs[0].Requests != 20 {
		t.Errorf("epochs %+v", one)
	}
}
