package ipc_test

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
)

const million = 1_000_000

func byBreakEven(config *ipc.Config) { config.Trigger = ipc.TriggerBreakEven }

// grown is a conversation with a head of 5,000 tokens whose turns have about 2,000.
func grown(turns int) *talk {
	c := (&talk{system: words(5_000)}).user("Change the handlers.")
	for i := range turns {
		c.run(fmt.Sprintf("cat handler%d.go", i), fmt.Sprintf("handler%d %s", i, words(1_950)))
	}
	return c
}

// untilEpoch sends a growing conversation request by request and returns the sizes of
// the prompts as they came, of which the last was compressed.
func untilEpoch(t *testing.T, u *used) (sizes []int, last *pipeline.Exchange) {
	t.Helper()
	const most = 100
	early := 0 // requests that planned in vain: what is left is known after planning alone
	defer func() {
		if early > 1 {
			t.Errorf("%d requests planned before an epoch was due", early)
		}
	}()
	for turns := range most {
		exchange := u.send(t, 10*time.Second, grown(turns+1))
		sizes = append(sizes, exchange.Report.Before)
		if u.Epochs > 0 {
			return sizes, exchange
		}
		if u.codec.parsed.Load() > 0 {
			early++
		}
	}
	t.Fatalf("no epoch in %d requests", most)
	return nil, nil
}

// The rule of rent or buy: an epoch comes with the first request before which reading
// what it removes has cost as much as it costs, and not one earlier.
func TestAnEpochComesWhenReadingOnHasCostAsMuch(t *testing.T) {
	t.Parallel()

	for _, minContext := range []int{25_000, 50_000} {
		u := newUsed(t, million, byBreakEven, func(config *ipc.Config) { config.MinContext = minContext })
		sizes, last := untilEpoch(t, u)
		completed := event(t, last, "completed")
		if completed.Reason != "break-even" || last.Lane.Projection.Reason != "break-even" {
			t.Fatalf("event %+v", completed)
		}
		after, price := last.Report.After, sonnet()
		even := func(sizes []int) bool {
			rent := 0.0
			for _, size := range sizes {
				rent += max(0, float64(size-after)) * price.CacheRead
			}
			return rent >= float64(after-5_000-2_000)*(price.CacheWrite-price.CacheRead)
		}
		n := len(sizes) - 1 // requests before
		if sizes[n] <= minContext || !even(sizes[:n]) {
			t.Errorf("above %d: epoch at %d of %v after reading too little", minContext, n, sizes)
		}
		if sizes[n-1] > minContext && even(sizes[:n-3]) { // the estimate without a plan may be a turn larger
			t.Errorf("above %d: the epoch at %d of %v is late", minContext, n, sizes)
		}
		counts := completed.Counts
		if counts["worst_net_microusd"] >= 0 || counts["predicted_net_microusd"] <= 0 || counts["rent_microusd"] < -counts["worst_net_microusd"]-50_000 {
			t.Errorf("counts: %v", counts)
		}
	}
}

// The sum is that of the history: a replica that has seen none of the requests before
// decides as the one that has seen them all.
func TestAReplicaThatSeesALaneLateDecidesAsTheOthers(t *testing.T) {
	t.Parallel()

	first := newUsed(t, million, byBreakEven)
	sizes, _ := untilEpoch(t, first)
	for _, more := range []int{-1, 0} {
		late := newUsed(t, million, byBreakEven)
		late.now = first.now
		c := grown(len(sizes) + more)
		late.heat = session.CacheState{At: late.now, TTL: session.ShortTTL, Position: len(c.messages) - 2, Model: "claude-sonnet-4-5"}
		exchange := late.send(t, time.Second, c)
		if got, want := late.Epochs, 1+more; got != want {
			t.Errorf("at request %d: %d epochs, want %d: %+v", len(sizes)+more, got, want, exchange.Report)
		}
	}
}

// The next epoch pays from where the last one was made.
func TestTheRentIsAddedUpSinceTheLastEpoch(t *testing.T) {
	t.Parallel()

	u := newUsed(t, million, byBreakEven)
	sizes, last := untilEpoch(t, u)
	after := last.Report.After
	at := map[int]int{}
	var read []int // sizes of the prompts since the last epoch
	for turns := len(sizes) + 1; turns < len(sizes)+60; turns++ {
		exchange := u.send(t, 10*time.Second, grown(turns))
		if exchange.Report.Compression == pipeline.Epoch {
			counts := event(t, exchange, "completed").Counts
			at[turns] = counts["before"]
			rent := 0.0
			for _, size := range read {
				rent += max(0, float64(size-counts["after"])) * sonnet().CacheRead
			}
			if told := float64(counts["rent_microusd"]); told < 0.97*rent || told > 1.03*rent {
				t.Errorf("request %d: the rent is told as %.0f, and was %.0f", turns, told, rent)
			}
			read = nil
			continue
		}
		read = append(read, exchange.Report.After)
	}
	if len(at) < 2 || len(at) > 60*2_000/(50_000-after)+1 {
		t.Errorf("epochs at %v after one that left %d", at, after)
	}
	for turns, before := range at {
		if before <= 50_000 {
			t.Errorf("request %d: at %d", turns, before)
		}
	}
}

// Where the window is far, what is left is a share of minContext: compressTo is one of the
// window.
func TestCompressToSaysNothingWhereTheWindowIsFar(t *testing.T) {
	t.Parallel()

	var left []int
	for _, share := range []float64{0.10, 0.60} {
		_, last := untilEpoch(t, newUsed(t, million, byBreakEven, func(config *ipc.Config) { config.CompressTo = share }))
		left = append(left, last.Report.After)
	}
	if left[0] != left[1] {
		t.Errorf("%d tokens are left with one compressTo, %d with another", left[0], left[1])
	}
}

// Of what a compaction by cost leaves, at least two fifths are the newest turns.
func TestTheNewestTokensAreTwoFifthsOfWhatIsLeft(t *testing.T) {
	t.Parallel()

	u := newUsed(t, million, byBreakEven)
	c := (&talk{system: words(5_000)}).user("Change the handlers.")
	for u.Epochs == 0 && len(c.messages) < 400 {
		c.tool("Read", fmt.Sprintf(`{"file_path":"%d.go"}`, len(c.messages)), fmt.Sprint(len(c.messages), words(450)))
		last := u.send(t, 10*time.Second, c)
		if u.Epochs == 0 {
			continue
		}
		newest := 0
		for _, digest := range last.Conversation.Digests[last.Lane.Projection.Covers:] {
			newest += digest.Tokens
		}
		if least := (5_000 + 0.23*50_000) * 0.4; float64(newest) < 0.97*least {
			t.Errorf("%d tokens stay as they are, want %.0f", newest, least)
		}
	}
	if u.Epochs == 0 {
		t.Error("no epoch")
	}
}

// Up to minContext nothing is touched, on a cold cache either; above it a cold cache is
// the moment to act at once.
func TestUpToMinContextNothingIsTouched(t *testing.T) {
	t.Parallel()

	u := newUsed(t, million, byBreakEven, func(config *ipc.Config) { config.MinContext = 100_000 })
	for turns := 20; turns <= 46; turns += 2 {
		exchange := u.send(t, time.Hour, grown(turns))
		if exchange.Report.Before > 100_000 || exchange.Report.Compression != pipeline.None || len(exchange.Report.Events) > 0 {
			t.Fatalf("%d turns: %+v", turns, exchange.Report)
		}
	}
	u.heat = session.CacheState{}
	u.send(t, time.Second, (&talk{system: words(94_000)}).user("Begin.").run("true", words(500)))
	exchange := u.send(t, 6*time.Minute, grown(49))
	wants(t, exchange, "completed", session.ReasonIdle)
	if exchange.Report.After > 35_000 {
		t.Errorf("left %d", exchange.Report.After)
	}
}

// A compaction costs what is written again: an hour's cache makes a compaction
// dearer, so it comes later; where nothing caches it costs nothing.
func TestTheLifeOfTheCacheSetsThePrice(t *testing.T) {
	t.Parallel()

	at := func(ttl time.Duration) int {
		u := newUsed(t, million, byBreakEven, func(config *ipc.Config) { config.MinContext = 20_000 })
		prepare := u.Prepare
		u.Prepare = func(exchange *pipeline.Exchange) {
			u.heat.TTL = ttl
			prepare(exchange)
		}
		sizes, _ := untilEpoch(t, u)
		return sizes[len(sizes)-1]
	}
	short, long, none := at(session.ShortTTL), at(session.LongTTL), at(0)
	if none >= short || short >= long {
		t.Errorf("epochs at %d without a cache, %d with one of 5 minutes, %d of an hour", none, short, long)
	}
}

// The ceiling holds in both: what comes near the window is compressed however the rent
// stands, and windows below minContext as well.
func TestTheTargetStaysTheCeiling(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 40_000, byBreakEven)
	wants(t, u.send(t, 0, longTalk(33)), "completed", "target")
}

// By default the window alone decides.
func TestWithoutTheRuleAPromptFarFromItsWindowIsLeftAlone(t *testing.T) {
	t.Parallel()

	u := newUsed(t, million)
	for turns := range 60 {
		if exchange := u.send(t, 10*time.Second, grown(turns+1)); exchange.Report.Compression != pipeline.None {
			t.Fatalf("%d turns: %+v", turns+1, exchange.Report)
		}
	}
}

// minClear is a share of the prompt where the window decides nothing.
func TestAnEpochThatWouldFreeLittleOfThePromptIsNotMade(t *testing.T) {
	t.Parallel()

	u := newUsed(t, million, byBreakEven, func(config *ipc.Config) { config.MinClear = 0.5 })
	c := (&talk{system: words(40_000)}).user("Begin.")
	for i := range 15 { // of 70,000 tokens less than half can go
		if exchange := u.send(t, 10*time.Second, c.run(fmt.Sprint("cat ", i), words(1_900))); exchange.Report.Compression != pipeline.None {
			t.Fatalf("request %d: %+v", i, exchange.Report)
		}
	}
}

// A pinned turn stays as it is.
func TestPinnedTurnsStayByBreakEven(t *testing.T) {
	t.Parallel()

	u := newUsed(t, million, byBreakEven)
	prepare := u.Prepare
	u.Prepare = func(exchange *pipeline.Exchange) {
		prepare(exchange)
		exchange.Lane.Pins = []int{1}
	}
	_, last := untilEpoch(t, u)
	for _, part := range last.Lane.Projection.Parts {
		if part.From <= 1 && 1 < part.To && part.Raw != nil {
			t.Errorf("the pinned message was compressed: %+v", part)
		}
	}
}
