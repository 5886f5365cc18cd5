package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"palimpsest/api/upstream/providerdouble"
)

// The numbers of special sessions; ordinary ones count from 1.
const (
	numberHasty = 10_000 + iota*100
	numberBridged
	numberRehydrated
	numberTroubled
	numberUnstored
	numberEndless
	numberDenied
	numberAgent
	numberNow
)

// episodes are the special sessions.
func (f *filling) episodes() []entry {
	diary := []entry{
		{f.Until.Add(-52 * time.Hour), f.bridged},
		{f.Until.Add(-30 * time.Hour), f.troubled},
		{f.Until.Add(-25 * time.Hour), f.denied},
		{f.Until.Add(-8 * time.Hour), f.unstored},
		{f.Until.Add(-7 * time.Hour), f.helped},
		{f.Until.Add(-5 * time.Hour), f.rehydrated},
		{f.Until.Add(-50 * time.Minute), f.now},
	}
	hasty := uint64(4)
	if f.isSmall() {
		hasty = 1
	}
	diary = append(diary, f.endless()...)
	for i := range hasty {
		diary = append(diary, entry{f.hasty().Add(time.Duration(i) * 3 * time.Hour), func(ctx context.Context) error {
			return f.hold(ctx, &talk{
				program: claudeCode, key: keyMira, model: "claude-opus-4-5", name: f.name(numberHasty + i),
				steps: plan(f.Seed, numberHasty+i, outline{task: tasks()[i], steps: 32, results: 9000}),
			})
		}})
	}
	return diary
}

// coding is a talk of Claude Code.
func (f *filling) coding(number uint64, of outline) *talk {
	return &talk{program: claudeCode, key: keyMira, model: "claude-sonnet-4-5", name: f.name(number), steps: plan(f.Seed, number, of)}
}

// summary is the result of a client's own compaction of a talk. It forgets the standing orders.
const summary = `<summary>
1. Primary Request and Intent: move the stock tables to the new schema without downtime.
2. Files and Code Sections: internal/stock/batch_move.go, internal/stock/shelf_count.go.
3. Current Work: the tests of internal/stock pass; the second step of the migration is written.
4. Next Step: run the migration against a copy.
</summary>`

// bridged is a session whose client compacted itself.
func (f *filling) bridged(ctx context.Context) error {
	t := f.coding(numberBridged, outline{task: tasks()[8], steps: 48, results: 2600, order: orders()[3]})
	t.steps[len(t.steps)/2].typed = orders()[1] + " And keep the old columns until the release after the next."
	if err := f.hold(ctx, t); err != nil {
		return err
	}
	const asks = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far.\n\n" +
		"REMINDER: Do NOT call any tools. Respond with plain text only — an <analysis> block followed by a <summary> block. Tool calls will be rejected and you will fail the task."
	t.steps = []step{{typed: asks, pause: 40 * time.Second, says: "<analysis>\nThe schema, its steps and the tests.\n</analysis>\n\n" + summary}}
	if err := f.hold(ctx, t); err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil { // otherwise its originals are not in the archive yet
		return err
	}
	t.said = nil
	t.steps = plan(f.Seed, numberBridged+1, outline{task: tasks()[8], steps: 14, results: 2600})
	t.steps[0].typed = "This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\n" +
		strings.Trim(strings.TrimPrefix(strings.TrimSuffix(summary, "</summary>"), "<summary>"), "\n") +
		"\n\nContinue the conversation from where it left off without asking the user any further questions."
	return f.hold(ctx, t)
}

// troubled is a session on a day with provider errors.
func (f *filling) troubled(ctx context.Context) error {
	t := f.coding(numberTroubled, outline{task: tasks()[0], steps: 18, results: 2200})
	steps := t.steps
	for i, misbehave := range []string{
		providerdouble.MisbehaveOverloaded, providerdouble.MisbehaveFailure, providerdouble.MisbehaveRateLimit, providerdouble.MisbehaveOverloaded,
	} {
		t.steps = steps[:4]
		if steps = steps[4:]; i == 3 {
			t.steps = append(t.steps, steps...)
		}
		if err := f.hold(ctx, t); err != nil {
			return err
		}
		if err := f.fail(ctx, t, misbehave); err != nil {
			return err
		}
	}
	return nil
}

// fail sends a talk in its current state to a failing provider.
func (f *filling) fail(ctx context.Context, t *talk, misbehave string) error {
	t.header = http.Header{providerdouble.MisbehaveHeader: {misbehave}}
	status, answer, err := f.send(ctx, t)
	if err == nil && status < http.StatusBadRequest {
		err = fmt.Errorf("%w %d where it was to fail: %.200s", errAnswered, status, answer)
	}
	t.header = nil
	f.Clock.Pass(20 * time.Second)
	return err
}

// denied are requests with a revoked provider key.
func (f *filling) denied(ctx context.Context) error {
	t := &talk{program: openCode, key: keyAgents, model: batchModel, name: f.name(numberDenied)}
	t.said = append(t.said, f.programs[openCode].format.typed("Sort the articles of last night's feed into categories."))
	for range 7 {
		if err := f.fail(ctx, t, ""); err != nil {
			return err
		}
	}
	return nil
}

// week is the minimum number of days of a demo that isn't small.
const week = 7

// endless is a session of more than a thousand messages, continued from an older one day by day. It first fits its
// model, and outgrows it halfway.
func (f *filling) endless() []entry {
	older, days, daily := 300, 12, 20
	if f.isSmall() {
		older, days, daily = 510, 1, 12
	}
	var t *talk
	var further []step
	var diary []entry
	for i := range days {
		diary = append(diary, entry{f.Until.Add(-18*time.Hour - time.Duration(days-1-i)*day), func(ctx context.Context) error {
			if i == 0 {
				t = f.coding(numberEndless, outline{task: tasks()[18], steps: older, results: 240, patience: 30})
				t.said = history(t.steps)
				further = plan(f.Seed, numberEndless+1, outline{task: tasks()[18], steps: days * daily, results: 240, patience: 30})
				further[0].typed = "Where were we? Go on with the sleeps in checkout."
			}
			t.steps = further[i*daily : (i+1)*daily]
			return f.hold(ctx, t)
		}})
	}
	return diary
}

// history returns steps that the product has not seen as messages, in Claude Code's format.
func history(of []step) []json.RawMessage {
	var said []json.RawMessage
	for i, step := range of {
		if step.typed != "" {
			said = append(said, anthropic{}.typed(step.typed))
		}
		var ids []string
		for n := range step.calls {
			ids = append(ids, fmt.Sprintf("toolu_01demo%04d%d", i, n))
		}
		said = append(said, anthropic{}.said(step.says, step.calls, ids)...)
		if len(step.calls) > 0 {
			said = append(said, anthropic{}.results(step.calls, ids)...)
		}
	}
	return said
}

// unstored is a session of which only figures are kept.
func (f *filling) unstored(ctx context.Context) error {
	t := f.coding(numberUnstored, outline{task: tasks()[12], steps: 9, results: 1800})
	t.header = http.Header{"X-Palimpsest-No-Store": {"true"}}
	return f.hold(ctx, t)
}

// helped is a session in which another agent looks something up.
func (f *filling) helped(ctx context.Context) error {
	t := f.coding(numberAgent, outline{task: tasks()[16], steps: 12, results: 2400})
	if err := f.hold(ctx, t); err != nil {
		return err
	}
	agent := f.coding(numberAgent, outline{task: task{area: 4, prompt: "List every place that puts a letter into the mailer's queue, with the file and the line."}, steps: 6, results: 1500})
	agent.header = http.Header{"X-Claude-Code-Agent-Id": {"agent-7f21"}, "X-Claude-Code-Request-Class": {"subagent"}}
	if err := f.hold(ctx, agent); err != nil {
		return err
	}
	t.steps = plan(f.Seed, numberAgent+1, outline{task: tasks()[16], steps: 7, results: 2400})
	return f.hold(ctx, t)
}

// rehydrated is a session that was compacted by hand and then asked for removed content.
func (f *filling) rehydrated(ctx context.Context) error {
	t := f.coding(numberRehydrated, outline{task: tasks()[7], steps: 40, results: 3200})
	passed := newWriter(f.Seed, numberRehydrated+9, areas()[2])
	t.steps[2] = step{
		says: "The test that fails, by itself.",
		calls: []call{{
			name: "Bash", input: map[string]string{"command": "go test ./internal/suppliers -run TestTariffConversion"}, failed: true,
			result: "Exit code 1\n" + passed.found(1500, "convertTariff") +
				"    TestTariffConversion logs: amount_minor in shard 7 is missing in 3 of 412 rows, and the first of them is supplier 20417\n" +
				passed.found(1500, "convertTariff") + "FAIL\tnorthbeam/internal/suppliers\t0.311s\n",
		}},
	}
	if err := f.hold(ctx, t); err != nil {
		return err
	}
	if err := f.compact(ctx, t); err != nil {
		return err
	}
	t.steps = plan(f.Seed, numberRehydrated+1, outline{task: tasks()[7], steps: 3, results: 1200})
	t.steps[0].typed = "Go on with the rates."
	if err := f.hold(ctx, t); err != nil {
		return err
	}
	t.steps = plan(f.Seed, numberRehydrated+2, outline{task: tasks()[7], steps: 6, results: 1200})
	t.steps[0].typed, t.steps[0].pause = "What did TestTariffConversion print about amount_minor in shard 7?", time.Minute
	return f.hold(ctx, t)
}

// compact orders a compaction by hand and pins one turn.
func (f *filling) compact(ctx context.Context, t *talk) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	person, err := f.team.as(ctx, "mira")
	if err != nil {
		return err
	}
	var found struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := person.Call(ctx, http.MethodGet, "/sessions?q="+url.QueryEscape(t.name), nil, &found); err != nil {
		return err
	}
	if len(found.Data) != 1 {
		return errors.New("the session is not found by its name")
	}
	session := "/sessions/" + found.Data[0].ID
	if err := person.Call(ctx, http.MethodPost, session+"/pins", map[string]int{"message": 8}, nil); err != nil {
		return err
	}
	err = person.Call(ctx, http.MethodPost, session+"/compact", map[string]string{"instructions": "Keep the names of the rate tables."}, nil)
	f.Reread() // the session continues at once
	return err
}

// now is a session still in progress.
func (f *filling) now(ctx context.Context) error {
	t := f.coding(numberNow, outline{task: tasks()[6], steps: 26, results: 5200, order: orders()[0]})
	return f.hold(ctx, t)
}
