package demo_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/api/programtest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/cmd/palimpsest/demo"
)

// visitor looks around in a demo, logged in as its owner.
type visitor struct {
	t      *testing.T
	url    string
	client *http.Client
}

// publicURL is the address of a proxy in front of the demo. Nothing answers there while the demo is made.
const publicURL = "http://localhost:1"

// start starts the demo of a data directory, which is made if it does not exist.
func start(t *testing.T, binary, data string, environment ...string) (*visitor, *programtest.Program) {
	t.Helper()
	program, err := programtest.Start(t.Context(), binary, []string{"demo", "--days", "3"}, slices.Concat(programtest.Environment(data), []string{"PALIMPSEST_PUBLIC_URL=" + publicURL}, environment))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Stop() })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, url: program.URL, client: &http.Client{Jar: jar, Timeout: time.Minute}}, program
}

// logIn logs the visitor in as the demo says.
func (v *visitor) logIn(email string) {
	v.t.Helper()
	v.ask(http.MethodPost, "/api/v1/login", `{"email":"`+email+`","password":"`+demo.Password+`"}`, nil)
}

// ask returns an answer, which must be a good one.
func (v *visitor) ask(method, path, body string, header http.Header) []byte {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name := range header {
		request.Header.Set(name, header.Get(name))
	}
	response, err := v.client.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		v.t.Fatalf("%s %s: %s %v: %.300s", method, path, response.Status, err, text)
	}
	return text
}

// page returns a page of the dashboard.
func (v *visitor) page(path string) *goquery.Document {
	v.t.Helper()
	document, err := goquery.NewDocumentFromReader(bytes.NewReader(v.ask(http.MethodGet, path, "", nil)))
	if err != nil {
		v.t.Fatal(err)
	}
	return document
}

// read reads an answer of the JSON API.
func (v *visitor) read(path string, into any) {
	v.t.Helper()
	if err := json.Unmarshal(v.ask(http.MethodGet, "/api/v1"+path, "", nil), into); err != nil {
		v.t.Fatalf("%s: %v", path, err)
	}
}

// exchange is a row of the download of all requests.
type exchange map[string]string

func (e exchange) number(t *testing.T, column string) float64 {
	t.Helper()
	number, err := strconv.ParseFloat(e[column], 64)
	if err != nil {
		t.Fatalf("%s %q: %v", column, e[column], err)
	}
	return number
}

// exchanges returns every exchange of the demo.
func (v *visitor) exchanges() []exchange {
	v.t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(v.ask(http.MethodGet, "/api/v1/requests.csv", "", nil))).ReadAll()
	if err != nil {
		v.t.Fatal(err)
	}
	var all []exchange
	for _, row := range rows[1:] {
		one := exchange{}
		for i, name := range rows[0] {
			one[name] = row[i]
		}
		all = append(all, one)
	}
	return all
}

// A stranger starts the demo, looks around, tries a client, comes back the next day and
// throws it away.
func TestDemoShowsWhatTheRealPipelineMade(t *testing.T) {
	t.Parallel()
	binary, data := buildtest.Palimpsest(t), t.TempDir()
	visitor, program := start(t, binary, data)
	var state struct {
		Made demo.Made `json:"made"`
	}
	text, err := os.ReadFile(filepath.Join(data, "demo", "demo.json"))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || state.Made.Email != "mira@example.com" {
		t.Fatalf("the demo's state is %s, %v", text, err)
	}
	if shown := visitor.page("/login"); !strings.Contains(shown.Find("main").Text(), demo.Password) || shown.Find(`[data-testid="demo"]`).Length() != 1 {
		t.Error("the page to log in does not say that this is a demo, and how to log in")
	}
	visitor.logIn(state.Made.Email)
	all := visitor.exchanges()
	visitor.checkFigures(all, state.Made)
	visitor.checkCounts(state.Made)
	visitor.checkSessions(all)
	visitor.checkWorkspace(strings.TrimPrefix(program.Mails, publicURL))

	clean := exec.CommandContext(t.Context(), binary, "demo", "clean")
	clean.Env = append(os.Environ(), programtest.Environment(data)...)
	if said, err := clean.CombinedOutput(); err == nil {
		t.Errorf("a demo that runs was removed: %s", said)
	}
	if err := program.Stop(); err != nil {
		t.Fatal(err)
	}
	visitor, program = start(t, binary, data)
	visitor.logIn(state.Made.Email)
	if again := visitor.exchanges(); len(again) != len(all) {
		t.Errorf("the second start shows %d exchanges, the first %d", len(again), len(all))
	}
	answer := visitor.ask(http.MethodPost, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":200,"messages":[{"role":"user","content":"Who are you?"}]}`,
		http.Header{"Authorization": {"Bearer " + state.Made.Key}, "Anthropic-Version": {"2023-06-01"}})
	if !bytes.Contains(answer, []byte("no model was asked")) {
		t.Errorf("a client is answered %s", answer)
	}
	if err := program.Stop(); err != nil {
		t.Fatal(err)
	}
	visitor, program = start(t, binary, data, "PALIMPSEST_PUBLIC_DEMO="+publicURL)
	visitor.checkPublic(state.Made)
	if err := program.Stop(); err != nil {
		t.Fatal(err)
	}
	clean = exec.CommandContext(t.Context(), binary, "demo", "clean")
	clean.Env = append(os.Environ(), programtest.Environment(data)...)
	said, err := clean.CombinedOutput()
	if _, left := os.Stat(filepath.Join(data, "demo")); err != nil || !os.IsNotExist(left) {
		t.Errorf("the demo is still there: %v %v %s", err, left, said)
	}
}

// checkPublic checks that someone without a login may look at a public demo, and use nothing of it.
func (v *visitor) checkPublic(made demo.Made) {
	v.t.Helper()
	for _, path := range []string{"/overview", "/sessions", "/requests", "/spend", "/pipeline"} {
		if shown := v.page(path); shown.Find(`[data-testid="demo"]`).Length() != 1 || shown.Find(`form[action="/logout"]`).Length() != 0 {
			v.t.Errorf("%s of the public demo: %s", path, shown.Find("title").Text())
		}
	}
	for _, closed := range []string{"POST /v1/messages", "GET /api/v1/usage", "POST /api/v1/login", "POST /mcp", "POST /pipeline", "GET /keys", "GET /requests/csv", "POST /login", "GET /audit"} {
		method, path, _ := strings.Cut(closed, " ")
		request, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader("{}"))
		if err != nil {
			v.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+made.Key)
		response, err := v.client.Do(request)
		if err != nil {
			v.t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusNotFound {
			v.t.Errorf("%s: %s", closed, response.Status)
		}
	}
}

// checkFigures checks that the overview shows the sums over the exchanges.
func (v *visitor) checkFigures(all []exchange, made demo.Made) {
	v.t.Helper()
	t := v.t
	now := time.Now()
	var net, received, sent float64
	epochs, losses := 0, map[string]float64{}
	for _, one := range all {
		net += one.number(t, "net_usd")
		received += one.number(t, "tokens_received")
		sent += one.number(t, "tokens_sent")
		losses[one["at"][:len(time.DateOnly)]] += one.number(t, "net_usd")
		if one["compression"] == "epoch" {
			epochs++
		}
		if at, err := time.Parse(time.RFC3339Nano, one["at"]); err != nil || at.After(now) || at.Before(now.Add(-4*24*time.Hour)) {
			t.Errorf("an exchange is of %s: %v", one["at"], err)
		}
	}
	if len(all) != made.Exchanges || epochs < 2 {
		t.Errorf("%d exchanges of %d with %d epochs", len(all), made.Exchanges, epochs)
	}
	overview := v.page("/overview?range=30d")
	if overview.Find(`.top [data-testid="demo"]`).Text() != "Demo data" {
		t.Error("the overview does not say that this is a demo")
	}
	for id, want := range map[string]string{"requests": strconv.Itoa(len(all)), "epochs": strconv.Itoa(epochs)} {
		if shown := strings.Join(strings.Fields(strings.ReplaceAll(overview.Find(`[data-testid="`+id+`"]`).Text(), ",", "")), ""); shown != want {
			t.Errorf("the overview shows %s %s, the exchanges sum up to %s", shown, id, want)
		}
	}
	var usage struct {
		Data []struct {
			Net      int64 `json:"net_micro_usd"`
			Received int64 `json:"tokens_before"`
			Sent     int64 `json:"tokens_after"`
		} `json:"data"`
	}
	v.read("/usage?by=model&from="+now.Add(-10*24*time.Hour).UTC().Format(time.RFC3339), &usage)
	for _, row := range usage.Data {
		net, received, sent = net-float64(row.Net)/1e6, received-float64(row.Received), sent-float64(row.Sent)
	}
	if net > 1e-5 || net < -1e-5 || received != 0 || sent != 0 {
		t.Errorf("by model the sums are off by $%f, %f received and %f sent", net, received, sent)
	}
	if !slices.ContainsFunc(slices.Collect(values(losses)), func(net float64) bool { return net < 0 }) {
		t.Errorf("no day cost more than it saved: %v", losses)
	}
}

// values are those of a map.
func values(of map[string]float64) func(func(float64) bool) {
	return func(yield func(float64) bool) {
		for _, value := range of {
			if !yield(value) {
				return
			}
		}
	}
}

// checkCounts checks that the list counts as many sessions as the demo said.
func (v *visitor) checkCounts(made demo.Made) {
	v.t.Helper()
	listed := strings.TrimSpace(v.page("/sessions").Find("#parts a[aria-current] .hint").Text())
	if listed != strconv.Itoa(made.Sessions) || made.Sessions == 0 || made.Single == 0 {
		v.t.Errorf("%d sessions and %d single calls were made, the list has %s sessions", made.Sessions, made.Single, listed)
	}
	calls := 0
	v.page("/sessions?show=single").Find(`[data-testid="sessions"] tbody tr .tag.info`).Each(func(_ int, tag *goquery.Selection) {
		count, err := strconv.Atoi(strings.Fields(tag.Text())[0])
		if err != nil {
			v.t.Error(err)
		}
		calls += count
	})
	if calls != made.Single {
		v.t.Errorf("the list shows %d single calls, %d were made", calls, made.Single)
	}
}

// checkSessions checks that each session is there that is not ordinary.
func (v *visitor) checkSessions(all []exchange) {
	v.t.Helper()
	has := func(what string, is func(exchange) bool) {
		v.t.Helper()
		if !slices.ContainsFunc(all, is) {
			v.t.Errorf("there is no exchange %s", what)
		}
	}
	for _, done := range []string{"compaction-bridge:applied", "rehydrator:applied", "patterns:applied"} {
		has("with "+done, func(e exchange) bool { return strings.Contains(e["modules"], done) })
	}
	for _, status := range []string{"401", "429", "500", "529"} {
		has("with status "+status, func(e exchange) bool { return e["status"] == status })
	}
	for _, client := range []string{"claude-code", "opencode", "anthropic-sdk"} {
		has("of "+client, func(e exchange) bool { return e["client"] == client })
	}
	has("of another agent", func(e exchange) bool { return e["class"] == "subagent" })
	has("answered from memory", func(e exchange) bool { return e["class"] != "" && e["cost_usd"] == "0.000000" && e["status"] == "200" })
	var sessions struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	v.read("/sessions?q=The+tests+of+checkout+take&limit=5", &sessions)
	longest := 0
	for _, session := range sessions.Data {
		var read struct {
			Lanes []struct {
				Messages int `json:"messages"`
			} `json:"lanes"`
		}
		v.read("/sessions/"+session.ID, &read)
		for _, lane := range read.Lanes {
			longest = max(longest, lane.Messages)
		}
	}
	if longest < 1000 {
		v.t.Errorf("the longest session has %d messages, want more than a thousand", longest)
	}
}

// checkWorkspace checks the people, the keys and what else there is beside sessions.
func (v *visitor) checkWorkspace(mails string) {
	v.t.Helper()
	for path, wants := range map[string][]string{
		"/keys":      {"expires soon", "revoked", "old secret until", "$60", "support-bot"},
		"/providers": {"anthropic-prod", "openai-batch", "rejected"},
		"/members":   {"jonas@example.com", "viewer", "billing", "lee@example.com"},
		"/audit":     {"mira@example.com", "jonas@example.com"},
		"/patterns":  {"minor units"},
		"/pipeline":  {"0.60"},
		mails:        {"Invitation to Northbeam"},
	} {
		shown := v.page(path)
		text, err := shown.Find("main").Html()
		if err != nil {
			v.t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				v.t.Errorf("%s does not show %q", path, want)
			}
		}
		if shown.Find(`[data-testid="demo"]`).Length() != 1 {
			v.t.Errorf("%s does not say that this is a demo", path)
		}
	}
}
