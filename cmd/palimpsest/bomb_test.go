package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
)

// What one request of any shape may take of a process that has just started: at most 2 s of
// processor time and four times its size of memory (BenchmarkBomb). The test allows twice that:
// beside other work each instruction takes longer, and the collector comes late. What it looks
// for took a minute and gigabytes.
const (
	bombSize   = 31 << 20 // bytes
	bombCPU    = 2.0      // seconds, of all cores together
	bombMemory = 4 * 31   // megabytes
	leeway     = 2
)

// bombs are bodies that cost most for their size, by endpoint and what they are made of.
func bombs() map[string]string {
	many := func(piece string) string {
		return strings.Repeat(piece+",", bombSize/(len(piece)+1)) + piece
	}
	numbered := func(format string, n int) string {
		var all strings.Builder
		for i := range n {
			if i > 0 {
				all.WriteByte(',')
			}
			all.WriteString(strings.ReplaceAll(format, "#", strconv.Itoa(i)))
		}
		return all.String()
	}
	messages := func(list string) string {
		return `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[` + list + `]}`
	}
	user := func(content string) string { return `{"role":"user","content":[` + content + `]}` }
	const text = `{"type":"text","text":"a"}`
	command := func(script string) string {
		return messages(user(text) + `,{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"` + script + `"}}]},` +
			user(`{"type":"tool_result","tool_use_id":"t","content":"x"}`))
	}
	commands := numbered(`{"role":"assistant","content":[{"type":"tool_use","id":"t#","name":"Bash","input":{"command":"`+strings.Repeat("$(", 30_000)+`"}}]},`+
		user(`{"type":"tool_result","tool_use_id":"t#","content":"x"}`), 300)
	random := rand.New(rand.NewPCG(1, 2))
	var letters strings.Builder // words that no vocabulary has
	for i := range bombSize {
		if letters.WriteByte("qwertzuiopasdfghjklyxcvbnm"[random.IntN(26)]); i%500 == 499 {
			letters.WriteString(" 1 ")
		}
	}
	dated := `{"type":"text","text":"` + strings.Repeat("The current date is 2026-11-29. "+strings.Repeat("lorem ipsum ", 30)+`\n`, 5) + `"}`
	return map[string]string{
		"/v1/messages blocks":                messages(user(many(text))),
		"/v1/messages empty blocks":          messages(user(many("{}"))),
		"/v1/messages system":                `{"system":[` + many(text) + `],` + messages(user(text))[1:],
		"/v1/messages tools":                 `{"tools":[` + many(`{"name":"n","input_schema":{}}`) + `],` + messages(user(text))[1:],
		"/v1/messages members":               `{` + many(`"a":0`) + `,` + messages(user(text))[1:],
		"/v1/messages members of a message":  messages(`{"role":"user","content":"a",` + many(`"a":0`) + `}`),
		"/v1/messages nesting":               messages(user(`{"type":"text","text":"a","x":` + strings.Repeat("[", bombSize/2) + strings.Repeat("]", bombSize/2) + `}`)),
		"/v1/messages one text":              messages(user(`{"type":"text","text":"` + strings.Repeat("<a>", bombSize/3) + `"}`)),
		"/v1/messages reminders":             messages(user(`{"type":"text","text":"` + strings.Repeat("<system-reminder>", bombSize/17) + `"}`)),
		"/v1/messages reminders that end":    messages(user(strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"<system-reminder>`+strings.Repeat("x", 3_200)+`</system-reminder>"},`, bombSize/3_300), ","))),
		"/v1/messages a script":              command(strings.Repeat("$(", bombSize/2)),
		"/v1/messages scripts":               messages(user(text) + "," + commands),
		"/v1/messages a loop in itself":      command("for x in $x; do cat $x; done"),
		"/v1/messages letters":               messages(user(`{"type":"text","text":"` + letters.String() + `"}`)),
		"/v1/messages letters in messages":   messages(strings.Repeat(user(`{"type":"text","text":"`+letters.String()[:24<<10]+`"}`)+",", bombSize/(25<<10)) + user(text)),
		"/v1/messages too many messages":     messages(numbered(user(`{"type":"text","text":"a#"}`), 99_000)),
		"/v1/messages messages":              messages(numbered(user(`{"type":"text","text":"a#"}`), 30_000)),
		"/v1/messages large messages":        messages(numbered(user(`{"type":"text","text":"a# `+strings.Repeat("lorem ipsum ", bombSize/12/33_000)+`"}`), 30_000)),
		"/v1/messages dates":                 messages(user(many(dated))),
		"/v1/messages dates in messages":     messages(numbered(user(strings.Replace(dated, "The", "# The", 1)), bombSize/2/(len(dated)+40))),
		"/v1/messages blocks in messages":    messages(numbered(user(strings.Repeat(text+",", 800)+text), 1_000)),
		"/v1/messages calls of servers":      messages(user(text) + `,{"role":"assistant","content":[` + numbered(`{"type":"server_tool_use","id":"s#"}`, 12_000) + "," + numbered(`{"type":"x_tool_result","tool_use_id":"s#"}`, 12_000) + `]}`),
		"/v1/messages/count_tokens blocks":   messages(user(many(text))),
		"/v1/chat/completions parts":         messages(user(many(text))),
		"/v1/responses parts":                `{"model":"gpt-5.5","input":[` + user(many(`{"type":"input_text","text":"a"}`)) + `]}`,
		"/v1/responses too many items":       `{"model":"gpt-5.5","input":[` + numbered(`{"type":"function_call","call_id":"c#","name":"bash","arguments":"{}"}`, 99_000) + `]}`,
		"/v1/responses items":                `{"model":"gpt-5.5","input":[` + numbered(`{"type":"function_call","call_id":"c#","name":"bash","arguments":"{}"}`, 30_000) + `]}`,
		"/v1/responses calls with outputs":   `{"model":"gpt-5.5","input":[` + numbered(`{"type":"function_call","call_id":"c#","name":"bash","arguments":"{}"},{"type":"function_call_output","call_id":"c#","output":"`+strings.Repeat("lorem ipsum ", bombSize/12/18_000)+`"}`, 15_000) + `]}`,
		"/v1/responses/compact parts":        `{"model":"gpt-5.5","input":[` + user(many(`{"type":"input_text","text":"a"}`)) + `]}`,
		"/v1/responses/input_tokens strings": `{"model":"gpt-5.5","input":"` + strings.Repeat(`\"`, bombSize/2) + `"}`,
	}
}

// No request costs the process time that grows with the square of what it holds, or memory
// by the gigabyte: a workspace has patterns, and all modules are on. Each
// request that was answered was the first of its process, so that nothing before it counts.
// S17, S37
func TestNoRequestTakesTheProcessDown(t *testing.T) {
	t.Parallel()
	throwBombs(t, leeway)
}

// BenchmarkBomb holds each of these requests to the strict bounds: on a machine without other
// work. -v shows what each of them took.
func BenchmarkBomb(b *testing.B) {
	for b.Loop() {
		throwBombs(b, 1)
	}
}

// throwBombs sends each bomb to the program, which may take so many times the bounds.
func throwBombs(t testing.TB, leeway int) {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		_, _ = io.WriteString(w, `{"content":[]}`)
	}))
	t.Cleanup(provider.Close)
	database := dbtest.New(t)
	c := &child{t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: database.OwnerURL}
	c.start()
	w := &tenant{instance: &instance{t: t, double: &providertest.Server{URL: provider.URL}}}
	c.adopt(w)
	w.join("bombs")
	w.call(http.MethodPost, "/api/v1/patterns", map[string]any{"kind": "convention", "text": "Use tabs for indentation in Go files"}, http.StatusCreated, nil)

	answered := true
	bombs := bombs()
	names := slices.Sorted(maps.Keys(bombs))
	for number := range fulltest.Part(len(names)) {
		name := names[number]
		body := bombs[name]
		if answered {
			c.stop()
			if _, err := database.Owner(t).Exec(t.Context(), "DELETE FROM jobs.river_job"); err != nil { // what is to be done for the one before
				t.Fatal(err)
			}
			c.start()
			c.adopt(w)
			w.post("/v1/messages", []byte(smallMessage), nil)
		}
		path, _, _ := strings.Cut(name, " ")
		before, size := c.cpu(), c.status("VmRSS")
		response, answer := w.post(path, []byte(body), nil)
		cpu, memory := c.cpu()-before, c.status("VmHWM")-size
		answered = response.StatusCode == http.StatusOK
		t.Logf("%-40s %3d MB: status %d, %.1f s of CPU, %d MB", name, len(body)>>20, response.StatusCode, cpu, memory)
		if !answered && response.StatusCode != http.StatusRequestEntityTooLarge && response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d: %.300s", name, response.StatusCode, answer)
		}
		if cpu > bombCPU*float64(leeway) || memory > bombMemory*leeway {
			t.Errorf("%s: %.1f s of CPU and %d MB for %d bytes", name, cpu, memory, len(body))
		}
	}
	c.stop()
}

// cpu returns the seconds of processor time that the program has had.
func (c *child) cpu() float64 {
	c.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.command.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, userErr := strconv.Atoi(fields[11])
	system, systemErr := strconv.Atoi(fields[12])
	if userErr != nil || systemErr != nil {
		c.t.Fatalf("stat %s", stat)
	}
	return float64(user+system) / 100
}

// status returns a figure of the program's memory, in megabytes; asked for its present
// size, its largest begins again there.
func (c *child) status(name string) int {
	c.t.Helper()
	process := fmt.Sprintf("/proc/%d/", c.command.Process.Pid)
	if name == "VmRSS" {
		if err := os.WriteFile(process+"clear_refs", []byte("5"), 0); err != nil {
			c.t.Fatal(err)
		}
	}
	status, err := os.ReadFile(process + "status")
	if err != nil {
		c.t.Fatal(err)
	}
	found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		c.t.Fatalf("no %s in %s", name, status)
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		c.t.Fatal(err)
	}
	return kilobytes >> 10
}
