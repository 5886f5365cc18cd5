package compactionbench

import (
	"math"
	"strconv"
	"testing"
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/tokens"
)

// uniform returns a session of turns of 2,000 tokens behind 20,000, in a window of
// 200,000: that of the cost model every claim about money uses.
func uniform(turns int) *reading {
	r := &reading{
		talk: &Talk{Name: "uniform"}, fixed: replay.Piece{Sum: conversation.Hash{1}, Tokens: 20_000},
		model: tokens.Model{TokensPerO200k: 1}, limit: 200_000, window: 200_000, sums: []int{0},
	}
	for turn := range turns {
		for half := range 2 {
			name := strconv.Itoa(2*turn + half)
			one := message{form: form{Piece: replay.Piece{Tokens: 1_000}, text: []byte(name)}, raw: []byte(name)}
			copy(one.Sum[:], "message "+name)
			r.messages = append(r.messages, one)
			r.sums = append(r.sums, r.sums[len(r.sums)-1]+1_000)
		}
		r.turns = append(r.turns, conversation.Turn{From: 2 * turn, To: 2*turn + 2})
		r.ends = append(r.ends, 2*turn+2)
	}
	return r
}

func near(got, want float64) bool { return math.Abs(got-want) < 0.5 }

// What the requirements' cost model says of a session of 85 turns: none costs 1.12
// million, and a client that compacts itself about two percent more.
func TestUniformSessionCostsWhatTheCostModelSays(t *testing.T) {
	t.Parallel()
	r := uniform(85)
	none, _ := charge(r, untouched{r}, Anthropic(), Warm())
	want := 0.0
	for turn := range 85 {
		before := 20_000 + 2_000*float64(turn)
		if turn == 0 {
			before = 0
		}
		want += 0.1*before + 1.25*(22_000+2_000*float64(turn)-before)
	}
	if !near(none.Cost, want) || none.Requests != 85 || none.TooLong != 0 || none.Busts != 0 {
		t.Errorf("%+v, want a cost of %.0f", none, want)
	}
	client := &selfCompacting{reading: r}
	self, _ := charge(r, client, Anthropic(), Warm())
	if percent := self.against(none); client.compactions != 1 || percent < 1 || percent > 3 {
		t.Errorf("a client that compacts itself: %d compactions, %+.1f %%", client.compactions, percent)
	}
}

func TestGapsHaveEverythingWrittenAgain(t *testing.T) {
	t.Parallel()
	r := uniform(40)
	warm, _ := charge(r, untouched{r}, Anthropic(), Warm())
	gaps, _ := charge(r, untouched{r}, Anthropic(), WithGaps())
	known := 20_000 + 2_000*20.0 // when the one gap comes
	if want := warm.Cost + (1.25-0.1)*known; !near(gaps.Cost, want) {
		t.Errorf("%.0f with a gap, want %.0f", gaps.Cost, want)
	}
	if gaps.Busts != 0 {
		t.Errorf("%d busts: a gap is not one", gaps.Busts)
	}
}

func TestClientThatCompactsItselfNeverSendsTooMuch(t *testing.T) {
	t.Parallel()
	r := uniform(600)
	client := &selfCompacting{reading: r}
	for _, length := range r.ends {
		sent := client.prompts(length)
		last := sent[len(sent)-1]
		if size := r.fixed.Tokens + sizeOf(last.forms); float64(size) > selfShare*r.window {
			t.Fatalf("%d messages: a prompt of %d tokens", length, size)
		}
		if newest := last.forms[len(last.forms)-1]; newest != &r.messages[length-1].form {
			t.Fatalf("%d messages: the newest is not the last of the prompt", length)
		}
		if len(sent) == 2 && (sent[0].output != selfSummary || len(last.forms) != 3) {
			t.Fatalf("%d messages: a summary of %.0f tokens and %d messages behind it", length, sent[0].output, len(last.forms)-1)
		}
	}
	if client.compactions < 6 || client.compactions > 8 {
		t.Errorf("%d compactions", client.compactions)
	}
}

func TestStatelessPoliciesBustTheCacheAndStayInBounds(t *testing.T) {
	t.Parallel()
	bench, err := New()
	if err != nil {
		t.Fatal(err)
	}
	talk := bench.Generated(3, conversation.Anthropic, 120)
	r, err := read(&talk, bench.counter)
	if err != nil {
		t.Fatal(err)
	}
	none, _ := charge(r, untouched{r}, Anthropic(), Warm())
	if last := float64(r.fixed.Tokens+r.sums[len(r.messages)]) * r.model.TokensPerO200k; math.Abs(last-260_000) > 5_000 {
		t.Errorf("the last prompt has %.0f tokens, want 260,000", last)
	}
	justEnough := newStateless(r)
	for _, length := range r.ends {
		if size := r.fixed.Tokens + sizeOf(justEnough.prompts(length)[0].forms); float64(size) > statelessShare*r.limit {
			t.Fatalf("%d messages: %d tokens are more than asked for", length, size)
		}
	}
	stateless, _ := charge(r, justEnough, Anthropic(), Warm())
	masked, _ := charge(r, newMasking(r), Anthropic(), Warm())
	if stateless.Busts < 10 || stateless.against(none) < 50 || stateless.TooLong > 0 {
		t.Errorf("stateless: %+v, %+.1f %%", stateless, stateless.against(none))
	}
	if masked.Busts < 60 || masked.Tokens > none.Tokens/2 {
		t.Errorf("masking: %+v", masked)
	}
}

func TestBillsAreSetBesideEachOther(t *testing.T) {
	t.Parallel()
	var bill Bill
	bill.add(Prices{Read: 0.1, Write: 1.25, Output: 5}, 1_000, 100, 10)
	if bill.Cost != 275 || bill.Tokens != 1_100 || bill.Requests != 1 {
		t.Errorf("%+v", bill)
	}
	if got := bill.against(Bill{Cost: 250}); !near(got, 10) {
		t.Errorf("%+.1f %%, want +10", got)
	}
	if got := bill.against(Bill{}); got != 0 {
		t.Errorf("%+.1f %% against nothing", got)
	}
}

func TestPaceHasItsGaps(t *testing.T) {
	t.Parallel()
	pace := WithGaps()
	if got := pace.At(19).Sub(pace.At(0)); got != 19*20*time.Second {
		t.Errorf("19 requests take %s", got)
	}
	if got := pace.At(20).Sub(pace.At(19)); got != 20*time.Second+3*time.Hour {
		t.Errorf("the pause is %s", got)
	}
}
