package apiclients

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

// good is the last output of a client that told the word.
func good() []Output { return []Output{{Text: finalWord + ": " + noteWord}} }

// generation is an exchange of the main agent.
func generation(status int, body, compression, tokens, lane string) Exchange {
	return Exchange{
		Method: http.MethodPost, Path: "/v1/messages", Status: status, Body: []byte(`{"tools":[{}],"text":"` + body + `"}`),
		Answered: http.Header{
			"X-Palimpsest-Compression": {compression}, "X-Palimpsest-Tokens-Before": {tokens}, "X-Palimpsest-Tokens-After": {tokens}, "X-Palimpsest-Lane": {lane},
		},
	}
}

// verdicts runs a judge on trials that are each wrong in one way.
func verdicts(t *testing.T, judge func(*Trial) (string, error), right Trial, wrong map[string]func(*Trial)) {
	t.Helper()
	if _, err := judge(&right); err != nil {
		t.Errorf("nothing is wrong: %v", err)
	}
	for fault, spoil := range wrong {
		trial := right
		trial.model = &model{rounds: right.model.rounds, errands: right.model.errands}
		spoil(&trial)
		if _, err := judge(&trial); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: judged %v", fault, err)
		}
	}
}

func TestToldTheWord(t *testing.T) {
	t.Parallel()
	verdicts(t, toldTheWord, Trial{Outputs: good(), model: &model{}}, map[string]func(*Trial){
		"did not tell the word": func(trial *Trial) { trial.Outputs = []Output{{Text: finalWord}} },
		"exit 1":                func(trial *Trial) { trial.Outputs = []Output{{Text: good()[0].Text, Err: errors.New("exit 1")}} },
	})
}

func TestWentPastTheWindow(t *testing.T) {
	t.Parallel()
	right := Trial{Case: Case{window: windowSize}, Outputs: good(), model: &model{rounds: parts + 2}, Exchanges: []Exchange{
		generation(http.StatusOK, "", "none", "1000", "a"), generation(http.StatusOK, "", "epoch", "70000", "a"),
	}}
	with := func(extra Exchange) func(*Trial) {
		return func(trial *Trial) { trial.Exchanges = append(trial.Exchanges[:2:2], extra) }
	}
	verdicts(t, wentPastTheWindow, right, map[string]func(*Trial){
		"answered 400":          with(generation(http.StatusBadRequest, "", "none", "1", "a")),
		"no epoch":              func(trial *Trial) { trial.Exchanges = trial.Exchanges[:1] },
		"never grew":            func(trial *Trial) { trial.Exchanges = []Exchange{generation(http.StatusOK, "", "epoch", "100", "a")} },
		"compacted by itself":   func(trial *Trial) { trial.model.summaries = 1 },
		"the client asked":      func(trial *Trial) { trial.model.rounds++ },
		"2 lanes":               with(generation(http.StatusOK, "", "frozen", "1", "b")),
		"did not tell the word": func(trial *Trial) { trial.Outputs = []Output{{}} },
	})
}

func TestUsedEveryTool(t *testing.T) {
	t.Parallel()
	var used []string
	for tool := range strings.SplitSeq(everyTools, ",") {
		used = append(used, `{"type":"tool_use","name":"`+tool+`"}`)
	}
	body := func(blocks ...string) Exchange {
		exchange := generation(http.StatusOK, "", "epoch", "70000", "a")
		exchange.Body = []byte(`{"tools":[{}],"messages":[{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}]}`)
		return exchange
	}
	right := Trial{Case: Case{window: windowSize}, Outputs: good(), model: &model{rounds: parts + 2}, NetMicroUSD: 1, Exchanges: []Exchange{body(used...)}}
	verdicts(t, usedEveryTool, right, map[string]func(*Trial){
		"Agent was not called": func(trial *Trial) { trial.Exchanges = []Exchange{body(used[:len(used)-1]...)} },
		"calls failed":         func(trial *Trial) { trial.Exchanges = []Exchange{body(append(used, `{"is_error":true}`)...)} },
		"cost more":            func(trial *Trial) { trial.NetMicroUSD = 0 },
	})
}

func TestCompactedItself(t *testing.T) {
	t.Parallel()
	client := claudeCode()
	right := Trial{Client: client, Outputs: good(), model: &model{}, Exchanges: []Exchange{
		generation(http.StatusOK, client.summarizes, "none", "1", "a"), generation(http.StatusOK, summaryMark, "none", "1", "b"),
	}}
	verdicts(t, compactedItself, right, map[string]func(*Trial){
		"was edited": func(trial *Trial) {
			trial.Exchanges = []Exchange{generation(http.StatusOK, client.summarizes, "frozen", "1", "a")}
		},
		"did not compact": func(trial *Trial) { trial.Exchanges = trial.Exchanges[1:] },
		"compacted 5 times": func(trial *Trial) {
			for range 4 {
				trial.Exchanges = append(trial.Exchanges, trial.Exchanges[0])
			}
		},
		"no request came after": func(trial *Trial) { trial.Exchanges = trial.Exchanges[:1] },
	})
}

func TestKeptTheErrandApart(t *testing.T) {
	t.Parallel()
	const said = "Have someone find the word."
	right := Trial{Case: Case{says: says(said)}, Outputs: good(), model: &model{errands: 2}, Exchanges: []Exchange{
		generation(http.StatusOK, said, "none", "1", "main"), generation(http.StatusOK, errandMark, "none", "1", "errand"),
		generation(http.StatusOK, said+errandMark, "none", "1", "main"),
	}}
	verdicts(t, keptTheErrandApart, right, map[string]func(*Trial){
		"requests of a subagent": func(trial *Trial) { trial.model.errands = 1 },
		"has 2 lanes": func(trial *Trial) {
			trial.Exchanges = append(trial.Exchanges[:3:3], generation(http.StatusOK, said, "none", "1", "other"))
		},
		"in the main agent's lane": func(trial *Trial) {
			trial.Exchanges = []Exchange{trial.Exchanges[0], generation(http.StatusOK, errandMark, "none", "1", "main")}
		},
	})
}

func TestRecovered(t *testing.T) {
	t.Parallel()
	refused := generation(http.StatusTooManyRequests, "", "none", "1", "a")
	refused.Answered.Set("Retry-After", "1")
	bare := generation(http.StatusTooManyRequests, "", "none", "1", "a")
	right := Trial{Outputs: good(), model: &model{}, Exchanges: []Exchange{refused}}
	verdicts(t, recovered(http.StatusTooManyRequests), right, map[string]func(*Trial){
		"never answered 429":    func(trial *Trial) { trial.Exchanges = nil },
		"retry-after was lost":  func(trial *Trial) { trial.Exchanges = []Exchange{bare} },
		"did not tell the word": func(trial *Trial) { trial.Outputs = []Output{{}} },
	})
}

func TestSaidTooLong(t *testing.T) {
	t.Parallel()
	refused := generation(http.StatusBadRequest, "", "none", "1", "a")
	refused.Refusal = `{"message":"prompt is too long: 70 tokens > 20 maximum"}`
	other := refused
	other.Refusal = "no"
	right := Trial{Outputs: []Output{{Text: "Prompt is too long", Err: errors.New("exit 1")}}, model: &model{}, Exchanges: []Exchange{refused}}
	verdicts(t, saidTooLong, right, map[string]func(*Trial){
		"answered 200":             func(trial *Trial) { trial.Exchanges = []Exchange{generation(http.StatusOK, "", "", "", "")} },
		"not the provider's words": func(trial *Trial) { trial.Exchanges = []Exchange{other} },
		"does not say":             func(trial *Trial) { trial.Outputs = []Output{{Text: "Error"}} },
	})
}

func TestNoticedTheCut(t *testing.T) {
	t.Parallel()
	verdicts(t, noticedTheCut, Trial{Outputs: good(), model: &model{}}, map[string]func(*Trial){
		"half an answer": func(trial *Trial) { trial.Outputs = []Output{{Text: finalWord}} },
	})
	remark, err := noticedTheCut(&Trial{Outputs: []Output{{Text: "broken", Err: errors.New("exit 1")}}})
	if err != nil || remark != "said so" {
		t.Errorf("an honest client: %q, %v", remark, err)
	}
}

func TestWhatAlwaysHolds(t *testing.T) {
	t.Parallel()
	const key = "plm_secret"
	exchange := generation(http.StatusOK, "hello", "none", "1", "a")
	exchange.Header = http.Header{}
	received := providerdouble.Recorded{Body: exchange.Body, Header: http.Header{"X-Api-Key": {"sk-double"}}}
	broken := errors.New("unknown parameter")
	chat := exchange
	chat.Path, chat.Body = "/v1/chat/completions", []byte(`{"model":"m","stream":true}`)
	inserted := generation(http.StatusOK, "hello", "none", "1", "a")
	inserted.Answered.Set("X-Palimpsest-Tokens-After", "2")
	unfit := generation(http.StatusBadRequest, "unfit", "none", "1", "a")
	unfit.Answered.Set("X-Palimpsest-Tokens-After", "2")
	judge := func(_ string, _ http.Header, body []byte) error {
		if bytes.Equal(body, unfit.Body) {
			return errors.New(broken.Error())
		}
		return nil
	}
	plain := chat
	plain.Body = []byte(`{"model":"m"}`)
	begun := exchange
	begun.Body = []byte(`{"model":"m","thread":{"type":"create"}}`)
	asked := Exchange{
		Status: http.StatusNotFound, Refusal: `{"error":{"details":{"error_code":"thread_not_found"}}}`,
		Body: []byte(`{"thread":{"type":"continue"}}`), Answered: http.Header{"X-Palimpsest-Error-Source": {"proxy"}},
	}

	listed := Exchange{
		Method: http.MethodGet, Path: "/inference-profiles?type=SYSTEM_DEFINED", Status: http.StatusUnauthorized, Header: http.Header{},
		Answered: http.Header{"X-Palimpsest-Error-Source": {"proxy"}},
	}
	wronged := listed
	wronged.Header = http.Header{"Authorization": {"Bearer wrong"}}

	for name, one := range map[string]struct {
		exchange Exchange
		received providerdouble.Recorded
		threads  bool // the case is about threads
		own      string
		fault    string
	}{
		"nothing wrong":        {exchange: exchange, received: received},
		"key":                  {exchange: exchange, received: providerdouble.Recorded{Body: exchange.Body, Header: http.Header{"X-Other": {"Bearer " + key}}}, fault: "key reached the provider in X-Other"},
		"another body":         {exchange: exchange, received: providerdouble.Recorded{Body: []byte("{}")}, fault: "got another body"},
		"refused as sent":      {exchange: exchange, received: providerdouble.Recorded{Body: exchange.Body, Invalid: broken}, own: "1 requests refused"},
		"refused as changed":   {exchange: generation(http.StatusOK, "hello", "epoch", "1", "a"), received: providerdouble.Recorded{Body: []byte("{}"), Invalid: broken}, fault: "what the proxy made"},
		"refused either way":   {exchange: unfit, received: providerdouble.Recorded{Path: unfit.Path, Status: unfit.Status, Body: []byte("{}"), Invalid: broken}, own: "1 requests refused"},
		"refused otherwise":    {exchange: unfit, received: providerdouble.Recorded{Path: unfit.Path, Status: unfit.Status, Body: []byte("{}"), Invalid: errors.New("other")}, fault: "what the proxy made"},
		"put in before":        {exchange: inserted, received: providerdouble.Recorded{Body: []byte("{}")}},
		"usage wished for":     {exchange: chat, received: providerdouble.Recorded{Body: []byte(`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`)}},
		"usage and more":       {exchange: chat, received: providerdouble.Recorded{Body: []byte(`{"model":"n","stream":true,"stream_options":{"include_usage":true}}`)}, fault: "got another body"},
		"usage without stream": {exchange: plain, received: providerdouble.Recorded{Body: []byte(`{"model":"m","stream_options":{"include_usage":true}}`)}, fault: "got another body"},
		"held by nobody":       {exchange: begun, received: providerdouble.Recorded{Body: []byte(`{"model":"m","thread":null}`)}, threads: true},
		"begun, and not kept":  {exchange: begun, received: providerdouble.Recorded{Body: []byte(`{"model":"m","thread":null}`)}, fault: "got another body"},
		"asked for the whole":  {exchange: asked, received: providerdouble.Recorded{}, threads: true},
		"asked without reason": {exchange: asked, received: providerdouble.Recorded{}, fault: "the proxy itself"},
		"no key for a list":    {exchange: listed},
		"a key that is wrong":  {exchange: wronged, fault: "the proxy itself"},
		"our own error":        {exchange: Exchange{Answered: http.Header{"X-Palimpsest-Error-Source": {"proxy"}}}, fault: "the proxy itself"},
	} {
		trial := Trial{Case: Case{threads: one.threads}, Exchanges: []Exchange{one.exchange}, Received: []providerdouble.Recorded{one.received}, judge: judge}
		own, err := trial.alwaysHolds(key)
		if !strings.Contains(own, one.own) || one.own == "" && own != "" {
			t.Errorf("%s: remark %q", name, own)
		}
		if (err == nil) != (one.fault == "") || err != nil && !strings.Contains(err.Error(), one.fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
