package replay_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

// tally counts what was checked.
type tally struct {
	bodies, edited, epochs, released, stripped, truncated, lightened, retried atomic.Int64
}

// A1, A2, A5, A6, A7, A9, A10, A12, A14, B13, B15, W27, W33, W36: over 10,000 bodies of random sessions,
// cut and configured at random, as they would go to the provider: it refuses none; nor
// does it any that is written again because the first was too long. Each change tries a
// tenth of the sessions.
func TestTenThousandRandomBodiesAreAccepted(t *testing.T) {
	t.Parallel()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	var sum tally
	seeds := slices.Collect(fulltest.Part(sessions))
	t.Run("groups", func(t *testing.T) {
		for group := range slices.Chunk(seeds, (len(seeds)+3)/4) {
			t.Run(strconv.Itoa(group[0]), func(t *testing.T) {
				t.Parallel()
				bench := newBench(t, counter)
				for _, seed := range group {
					bench.run(t, uint64(seed), &sum)
				}
			})
		}
	})
	total, edited := sum.bodies.Load(), sum.edited.Load()
	t.Logf("%d bodies, %d edited, %d epochs, %d with thinking released, %d without any", total, edited, sum.epochs.Load(), sum.released.Load(), sum.stripped.Load())
	t.Logf("%d truncated, %d for their bytes, %d written again", sum.truncated.Load(), sum.lightened.Load(), sum.retried.Load())
	each := 8 // a tenth of the seeds may have a few bodies fewer than the average
	if fulltest.Everything() {
		each = 10
	}
	if total < int64(each*len(seeds)) || edited < total/3 || sum.epochs.Load() < total/20 {
		t.Error("too little was checked")
	}
	if fulltest.Everything() && (sum.retried.Load() < total/100 || sum.truncated.Load() < total/200 || sum.lightened.Load() < total/500 || sum.released.Load() < total/100 || sum.stripped.Load() < total/100) {
		t.Error("too little of the rare kinds was checked")
	}
}

// bench writes prompts without a server.
type bench struct {
	writer *prompt.Writer
	codecs map[conversation.Format]wire.Codec
}

func newBench(t *testing.T, counter *tokens.Counter) *bench {
	t.Helper()
	writer, err := prompt.NewWriter(session.NewMemory(), counter, pipeline.NewChain(modules.All(counter, modules.Memory{})...))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{
		writer: writer,
		codecs: map[conversation.Format]wire.Codec{
			conversation.Anthropic: anthropic.New(), conversation.OpenAIChat: openaichat.New(), conversation.OpenAIResponses: openairesponses.New(),
		},
	}
}

// run sends a random session, cut at random, and has each body judged.
func (b *bench) run(t *testing.T, seed uint64, sum *tally) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	double := providerdouble.NewHandler(providerdouble.Config{Window: 100_000_000, BindThinking: random.IntN(4) > 0})
	options := drawSession(random, double)
	generated := sessiontest.Generate(seed, options)
	change := drawChange(random, options.Format)
	scope := session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: options.Format}
	window := int(float64(options.TargetTokens) * (0.05 + 1.3*random.Float64()))
	factor := 0.8 + 0.8*random.Float64()
	config := drawConfig(t, random, window)
	clock := drawClock(random)
	b.writer.Now = func() time.Time { return clock.now }
	for step := random.IntN(4); step < generated.Steps(); {
		body := change(generated.Body(step))
		headers := http.Header{"X-Palimpsest-Session-Id": {"random"}}
		if random.IntN(40) == 0 {
			headers.Set("X-Claude-Code-Compaction", "auto") // the client summarizes its history
		}
		written, err := b.writer.Write(t.Context(), prompt.Request{
			Scope: scope, Codec: b.codecs[options.Format], Config: config, Body: body, Bypass: random.IntN(60) == 0,
			Headers: headers,
		})
		if err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, step, err)
		}
		judge := func(written *prompt.Prompt) {
			header := http.Header{"Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {written.Beta}}
			if strings.Contains(options.ThinkingSetting, "block_binding") {
				header.Add("Anthropic-Beta", "other-1,thinking-binding-controls-2026-08-01") // the client's own
			}
			if err := double.Judge(string(options.Format), header, written.Body); err != nil {
				if before := double.Judge(string(options.Format), header, body); before != nil {
					t.Fatalf("seed %d, step %d: the session itself is refused: %v", seed, step, before)
				}
				t.Fatalf("seed %d, step %d of %s for %s, %+v: refused: %v", seed, step, options.Format, options.Model, pipeline.SettingsOf[ipc.Config](config), err)
			}
		}
		judge(written)
		sum.add(t, seed, written, body)
		if random.IntN(6) == 0 {
			if shrunk, ok := b.writer.Shrink(t.Context(), written, drawRefusal(random, written)); ok {
				judge(shrunk)
				sum.retried.Add(1)
				if len(shrunk.Body) >= len(written.Body) {
					t.Errorf("seed %d, step %d: written again it has %d bytes, had %d", seed, step, len(shrunk.Body), len(written.Body))
				}
				written = shrunk
			}
		}
		b.writer.Answered(written.Sent(), wire.Answer{Usage: clock.usage(int(factor*float64(written.Exchange.Report.After)) + 1)})
		clock.pass(random)
		step += 1 + random.IntN(4)
		switch random.IntN(20) {
		case 0:
			step = random.IntN(step) // the client goes back and goes on from there
			if random.IntN(2) == 0 {
				step = generated.Steps()
			}
		case 1:
			config = drawConfig(t, random, window)
		}
	}
}

// add counts a body and checks what its report says of it.
func (s *tally) add(t *testing.T, seed uint64, written *prompt.Prompt, body []byte) {
	t.Helper()
	exchange := written.Exchange
	s.bodies.Add(1)
	for _, event := range exchange.Report.Events {
		if event.Type == "failed" {
			t.Errorf("seed %d: %+v", seed, event)
		}
		switch {
		case event.Type == "truncated":
			s.truncated.Add(1)
		case event.Type == "completed" && event.Reason == "bytes":
			s.lightened.Add(1)
		}
	}
	if exchange.Report.Archived > 0 {
		s.epochs.Add(1)
	}
	isEdited := exchange.Lane.Projection != nil && exchange.Lane.Projection.Covers > 0
	if isEdited {
		s.edited.Add(1)
	}
	hasThinking := func(body []byte) bool {
		return bytes.Contains(body, []byte(`"thinking","thinking":`)) || bytes.Contains(body, []byte(`"redacted_thinking"`))
	}
	switch {
	case written.Beta != "":
		s.released.Add(1)
	case isEdited && exchange.Model.BoundThinking && hasThinking(body):
		s.stripped.Add(1)
		if hasThinking(written.Body) {
			t.Errorf("seed %d: thinking is left in %.2000s", seed, written.Body)
		}
	}
	wasEdited := exchange.Lane.NextProjection > 1 // and the client now wants to be left alone
	if exchange.Lane.Projection == nil && len(exchange.Lane.Inserts) == 0 && !wasEdited && !bytes.Equal(written.Body, body) {
		t.Errorf("seed %d: nothing was compressed, but the body is another", seed)
	}
}

// thinker is a model with a setting of its thinking.
type thinker struct{ model, setting string }

// drawSession draws what a session is like.
func drawSession(random *rand.Rand, double *providerdouble.Double) sessiontest.Options {
	flag := func() bool { return random.IntN(2) == 0 }
	options := sessiontest.Options{
		Format: []conversation.Format{conversation.Anthropic, conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses}[random.IntN(4)],
		Turns:  2 + random.IntN(60), TargetTokens: 4_000 + random.IntN(24_000),
		Parallel: flag(), Thinking: flag(), Images: random.IntN(4) == 0, CJK: random.IntN(4) == 0, ToolErrors: flag(), Reminders: flag(),
		CacheMarkers: flag(), Varied: random.IntN(3) > 0, Signer: double, HugeResults: random.IntN(10) == 0,
	}
	switch options.Format {
	case conversation.Anthropic:
		thinkers := []thinker{
			{"claude-sonnet-4-5", ""}, {"claude-sonnet-4-5", "none"}, {"claude-opus-4-1", ""}, {"claude-opus-4-6", ""}, {"claude-opus-5", ""}, {"claude-sonnet-5", ""},
			{"claude-opus-5-5", ""}, {"claude-opus-5-5", "none"}, {"claude-opus-5-5", `{"type":"adaptive","display":"omitted"}`},
			{"claude-sonnet-5-5", `{"type":"between_tools"}`}, {"claude-sonnet-5-5", ""}, {"claude-haiku-5-5", `{"type":"disabled"}`}, {"claude-haiku-5-5", "none"},
			{"claude-fable-5-2", `{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`},
		}
		drawn := thinkers[random.IntN(len(thinkers))]
		options.Model, options.ThinkingSetting = drawn.model, drawn.setting
		if options.Thinking && slices.Contains([]string{"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-2"}, options.Model) {
			options.Bind = func(head []byte) (sessiontest.Binder, error) { return double.Bind(head) }
		}
	case conversation.OpenAIResponses:
		if options.Thinking && flag() {
			options.Model = "gpt-6-sol"
			options.Bind = func(head []byte) (sessiontest.Binder, error) { return double.BindItems(head) }
		}
	case conversation.OpenAIChat:
	}
	return options
}

// drawChange draws what a session's client does to its cache markers.
func drawChange(random *rand.Rand, format conversation.Format) func([]byte) []byte {
	const five, hour = `{"type":"ephemeral"}`, `{"type":"ephemeral","ttl":"1h"}`
	long, automatic := random.IntN(3) == 0, random.IntN(4) == 0
	return func(body []byte) []byte {
		if format != conversation.Anthropic {
			return body
		}
		marker := five
		if long {
			marker = hour
			body = bytes.ReplaceAll(body, []byte(five), []byte(hour))
		}
		if automatic {
			body = append([]byte(`{"cache_control":`+marker+`,`), body[1:]...)
		}
		return body
	}
}

// clock is the time of a session's requests and what its provider caches.
type clock struct {
	now    time.Time
	caches bool
}

func drawClock(random *rand.Rand) *clock {
	return &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), caches: random.IntN(4) > 0}
}

// pass lets time pass: now and then so much that any cache goes cold.
func (c *clock) pass(random *rand.Rand) {
	c.now = c.now.Add(time.Minute)
	if random.IntN(8) == 0 {
		c.now = c.now.Add(2 * time.Hour)
	}
}

// usage is what the provider reports for a prompt.
func (c *clock) usage(tokens int) wire.Usage {
	if c.caches {
		return wire.Usage{Reported: true, CacheRead: tokens / 2, CacheWrite: tokens - tokens/2}
	}
	return wire.Usage{Reported: true, Input: tokens}
}

// drawRefusal draws what a provider says of a prompt that it finds too long, or whose
// body it finds too large.
func drawRefusal(random *rand.Rand, written *prompt.Prompt) wire.Overflow {
	after := max(written.Exchange.Report.After, 100)
	switch random.IntN(4) {
	case 0:
		return wire.Overflow{IsHeavy: true}
	case 1:
		return wire.Overflow{}
	default:
		said := after * (80 + random.IntN(60)) / 100
		return wire.Overflow{Tokens: said, Window: max(1, said*(30+random.IntN(65))/100)}
	}
}

// drawLadder draws falling numbers of turns.
func drawLadder(random *rand.Rand) []int {
	var ladder []int
	for turns := 1 + random.IntN(20); turns > 0; turns -= 1 + random.IntN(6) {
		ladder = append(ladder, turns)
	}
	return ladder
}

// drawConfig draws the settings of ipc, all within their bounds.
func drawConfig(t *testing.T, random *rand.Rand, window int) pipeline.Config {
	t.Helper()
	between := func(least, most float64) float64 { return least + (most-least)*random.Float64() }
	config := modules.Catalog().Default()
	settings := pipeline.Change[ipc.Config](&config)
	settings.TargetUtilization = between(0.30, 0.95)
	settings.CompressTo = between(0.10, min(0.90, settings.TargetUtilization))
	settings.MinClear = between(0.01, 0.30)
	settings.PreserveLastTurns = 1 + random.IntN(10)
	settings.PreserveTokens = random.IntN(20_000)
	settings.PreserveSystem = random.IntN(2) == 0
	settings.ArchiveToBlob = random.IntN(30) > 0
	settings.DeepestLevel = []int{0, 1, 2, 3, 3, 3, 3, 3}[random.IntN(8)]
	settings.BlockTokens = 500 + random.IntN(8_000)
	settings.ObservationMasking = random.IntN(3) == 0
	settings.KeepLastLadder = drawLadder(random)
	settings.IdleUtilization = between(0.10, settings.TargetUtilization)
	placements := []string{"turn", "system"}
	pipeline.Change[compactionbridge.Config](&config).Placement = placements[random.IntN(2)]
	pipeline.Change[rehydrator.Config](&config).Placement = placements[random.IntN(2)]
	pipeline.Change[patterns.Config](&config).Placement = placements[random.IntN(2)]
	settings.ContextWindow = ipc.Window(max(window, 1_000))
	if err := modules.Catalog().Validate(config); err != nil {
		t.Fatal(err)
	}
	if random.IntN(4) == 0 {
		settings.MaxBytes = window * (1 + random.IntN(5)) // less than people may set
	}
	return config
}
