package pages_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline/session"
	"palimpsest/web/webtest"
)

// BenchmarkSession opens the pages of two sessions of PALIMPSEST_BENCH_TURNS turns, each
// a question, a call and its result: one that was never compressed, one that was. Both
// went through the proxy as their last request; requests and epochs before it are
// recorded past it. Every hundredth turn holds 20 KB, and a hundred of the page that is
// opened in the middle do. It reports medians and 95th percentiles of the time to the
// whole page, through HTTP on the loopback, and its size.
func BenchmarkSession(b *testing.B) {
	turns := 300
	if text := os.Getenv("PALIMPSEST_BENCH_TURNS"); text != "" {
		var err error
		if turns, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	person := webtest.Start(b).SignUp(b, "northbeam")
	began := time.Now()
	long := longSession(b, person, turns, 1_000_000_000)
	entry, err := person.Sessions.Browser().Timeline(b.Context(), person.Workspace.ID, long.ID, laneOf(b, person, long.ID), 1)
	if err != nil {
		b.Fatal(err)
	}
	short := longSession(b, person, turns, entry.Points[0].Before*6/5)
	b.Logf("two sessions of %d turns recorded in %s, the second with %d epochs", turns, time.Since(began).Round(time.Second), short.Sums.Epochs)
	b.Log(webtest.Machine())
	read(b, person, short, turns)
	if n, err := person.Index.IndexPending(b.Context(), 10); err != nil || n == 0 {
		b.Fatalf("%d threads were indexed: %v", n, err)
	}
	part := []string{"HX-Request", "true", "HX-Request-Type", "partial", "HX-Target"}
	middle := "?m=" + itoa(turns)
	table := new(webtest.Timings)
	for _, page := range []struct {
		name, path string
		header     []string
	}{
		{"not compressed", "/sessions/" + long.ID.String(), nil},
		{"not compressed, 100 heavy turns", "/sessions/" + long.ID.String() + middle, nil},
		{"compressed", "/sessions/" + short.ID.String(), nil},
		{"compressed, table", "/sessions/" + short.ID.String() + "?table=1", nil},
		{"one turn", "/sessions/" + long.ID.String() + middle, append(part, "div#pane")},
		{"100 more turns", "/sessions/" + long.ID.String() + "?from=" + itoa(turns), append(part, "li#turns-after")},
		{"search, a word of one turn", "/sessions/" + long.ID.String() + "/find?q=main_" + itoa(turns/2) + ".go", part[:4]},
		{"search, words of every turn", "/sessions/" + long.ID.String() + "/find?q=what+does+the+file+say", part[:4]},
	} {
		b.Run(page.name, func(b *testing.B) { table.Measure(b, person, page.name, page.path, page.header...) })
	}
}

// read measures what the page reads of a session.
func read(b *testing.B, person *webtest.Person, of session.Overview, turns int) {
	b.Helper()
	workspace, lane := person.Workspace.ID, laneOf(b, person, of.ID)
	for name, one := range map[string]func(ctx context.Context) error{
		"Timeline": func(ctx context.Context) error {
			_, err := person.Sessions.Browser().Timeline(ctx, workspace, of.ID, lane, 200)
			return err
		},
		"Decisions": func(ctx context.Context) error {
			_, err := person.Sessions.Browser().Decisions(ctx, workspace, of.ID)
			return err
		},
		"Session": func(ctx context.Context) error {
			_, err := person.Sessions.Browser().Session(ctx, workspace, of.ID)
			return err
		},
		"Epochs": func(ctx context.Context) error {
			_, err := person.Sessions.Browser().Epochs(ctx, workspace, lane)
			return err
		},
		"Sizes": func(ctx context.Context) error {
			_, err := person.Archive.Sizes(ctx, workspace, lane, 2*turns)
			return err
		},
		"Projection": func(ctx context.Context) error {
			_, err := person.Sessions.Browser().Projection(ctx, workspace, lane)
			return err
		},
		"Newest": func(ctx context.Context) error {
			_, err := person.Sessions.Browser().Newest(ctx, workspace, of.ID, lane, 2*turns+1)
			return err
		},
		"Entries": func(ctx context.Context) error {
			_, err := person.Archive.Entries(ctx, workspace, lane, turns, 100)
			return err
		},
		"Originals": func(ctx context.Context) error {
			_, err := person.Archive.Originals(ctx, workspace, lane, turns, turns+1)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := one(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// longSession has a session's last request go through the proxy with so many turns, and
// records a request for each of the others in its lane.
func longSession(b *testing.B, person *webtest.Person, turns, window int) session.Overview {
	b.Helper()
	var body strings.Builder
	fmt.Fprintf(&body, `{"model":"claude-sonnet-4-5","max_tokens":100,"metadata":{"user_id":"user_a_account_b_session_%08d-0000-4000-8000-000000000000"},"messages":[`, window%100_000_000)
	middle := turns / 2
	for turn := range turns {
		result := fmt.Sprintf("line %d: func add(a, b int) int { return a + b }\\n", turn)
		if turn%100 == 0 || turn >= middle && turn < middle+50 {
			result = strings.Repeat(result, 400)
		}
		fmt.Fprintf(&body, `{"role":"user","content":[%s{"type":"text","text":"Question %d of %d: what does the file say now?"}]},`, map[bool]string{
			true: fmt.Sprintf(`{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"},`, turn-1, result)}[turn > 0], turn, window)
		fmt.Fprintf(&body, `{"role":"assistant","content":[{"type":"text","text":"I will **read** the file, see `+"`main.go`"+`."},{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"/src/main_%d.go"}}]},`, turn, turn)
	}
	fmt.Fprintf(&body, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"the end"}]}]}`, turns-1)
	person.TalkOnce(person.Connect(webtest.Provider(b, 2_000_000_000), "laptop-"+itoa(window)), window, "/v1/messages", body.String(), claudeCode)
	overview := person.Newest()
	owner := person.Database.Owner(b)
	_, err := owner.Exec(b.Context(), `INSERT INTO exchanges (workspace_id, id, at, session_id, lane_id, api_key_id, provider, endpoint, model, client, class, stream, status, position, compression,
			tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3, input_tokens, cache_read_tokens, cache_write_tokens,
			output_tokens, cost_microusd, net_microusd, unread_microusd, overhead_us, ttfb_us, duration_us, attempts, projection, report)
		SELECT l.workspace_id, gen_random_uuid(), now() - n * interval '1 minute', l.session_id, l.id, $3, 'anthropic', '/v1/messages', 'claude-sonnet-4-5', 'claude-code', 'main', true, 200, n,
			CASE n % 250 WHEN 0 THEN 'epoch' ELSE 'frozen' END, 90000 + n % 9973, 50000 + n % 997, 200000, 20, 30, 10, 5, 1200, 46000, 900, 400,
			30000, 9000 - n % 7919, 4000, 300, 1, 1, 1, 1, jsonb_build_object('compression', 'frozen', 'modules', repeat('x', 600))
		FROM lanes l CROSS JOIN generate_series(1, $2::int) n WHERE l.session_id = $1`, overview.ID, turns, overview.APIKey)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := owner.Exec(b.Context(), "VACUUM ANALYZE"); err != nil {
		b.Fatal(err)
	}
	return person.Newest()
}
