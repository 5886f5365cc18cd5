package ipc_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// talk writes a conversation in Anthropic's format, message by message.
type talk struct {
	system   string
	messages []string
	calls    int
}

// add adds a message as it stands.
func (c *talk) add(messages ...string) *talk {
	c.messages = append(c.messages, messages...)
	return c
}

// user adds what a person typed.
func (c *talk) user(text string) *talk {
	return c.add(fmt.Sprintf(`{"role":"user","content":%s}`, quoted(text)))
}

// say adds an answer without calls.
func (c *talk) say(text string) *talk {
	return c.add(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}]}`, quoted(text)))
}

// run adds an answer that calls Bash, and its result.
func (c *talk) run(command, result string) *talk {
	c.calls++
	id := "toolu_" + strconv.Itoa(c.calls)
	return c.add(
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{"command":%s}}]}`, id, quoted(command)),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, id, quoted(result)),
	)
}

// body returns the request that ends with the newest message.
func (c *talk) body() []byte {
	system := ""
	if c.system != "" {
		system = `"system":` + quoted(c.system) + ","
	}
	return fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":1000,%s"messages":[%s]}`, system, strings.Join(c.messages, ","))
}

func quoted(text string) string { return string(wire.Quote(text)) }

// words returns about so many tokens of text that repeats nothing for long.
func words(tokens int) string {
	text := strings.Builder{}
	for i := range tokens / 4 {
		fmt.Fprintf(&text, "item %d ", i*7919%100_000)
	}
	return text.String()
}

// epoch takes one body through ipc and checks what comes out.
func epoch(t *testing.T, body []byte, limit int, change ...func(*ipc.Config)) (*pipeline.Exchange, []byte) {
	t.Helper()
	lane := newLane(t, limit, change...)
	return send(t, lane, body)
}

// newLane returns a lane whose prompts are compressed above three quarters of their limit,
// down to one: the sizes of the conversations here are chosen for that.
func newLane(t testing.TB, limit int, change ...func(*ipc.Config)) *pipelinetest.Lane {
	t.Helper()
	counter := newCounter(t)
	config := modules.Catalog().Default()
	settings := pipeline.Change[ipc.Config](&config)
	settings.TargetUtilization, settings.CompressTo = 0.75, 0.25
	for _, set := range change {
		set(pipeline.Change[ipc.Config](&config))
	}
	return &pipelinetest.Lane{
		Codec: anthropic.New(), Modules: []pipeline.Module{ipc.New(counter.Message)},
		Options: pipelinetest.Options{Counter: counter, Config: config, Limit: limit},
	}
}

func byDefault(config *ipc.Config) { *config = ipc.DefaultConfig() }

// send takes a lane's next request through ipc and holds the prompt against the
// provider's rules.
func send(t *testing.T, lane *pipelinetest.Lane, body []byte) (*pipeline.Exchange, []byte) {
	t.Helper()
	exchange, sealed := lane.Send(t, body)
	double := providerdouble.NewHandler(providerdouble.Config{Window: 10_000_000})
	double.Trust(body)
	if err := double.Validate(string(conversation.Anthropic), sealed); err != nil {
		t.Fatalf("refused: %v\n%s", err, sealed)
	}
	if err := pipelinetest.CheckProjection(exchange); err != nil {
		t.Fatal(err)
	}
	return exchange, sealed
}

// wants reports an event that an exchange should have and has not.
func wants(t *testing.T, exchange *pipeline.Exchange, kind, reason string) {
	t.Helper()
	for _, event := range exchange.Report.Events {
		if event.Type == kind && (reason == "" || event.Reason == reason) {
			return
		}
	}
	t.Errorf("no event %s %s: %+v", kind, reason, exchange.Report.Events)
}

// holds reports texts that a prompt should have and has not.
func holds(t *testing.T, prompt []byte, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !bytes.Contains(prompt, []byte(text)) {
			t.Errorf("%q is not in the prompt:\n%s", text, abridged(prompt))
		}
	}
}

// lacks reports texts that a prompt has and should not have.
func lacks(t *testing.T, prompt []byte, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if bytes.Contains(prompt, []byte(text)) {
			t.Errorf("%q is in the prompt:\n%s", text, abridged(prompt))
		}
	}
}

func abridged(prompt []byte) []byte { return prompt[:min(len(prompt), 2000)] }
