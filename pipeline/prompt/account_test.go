package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// teller writes the prompts of one session without modules, each at its provider key, and answers them.
type teller struct {
	*Writer

	t     *testing.T
	scope session.Scope
}

func newTeller(t *testing.T) teller {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	writer, err := NewWriter(session.NewMemory(), counter, pipeline.NewChain())
	if err != nil {
		t.Fatal(err)
	}
	return teller{writer, t, session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: conversation.Anthropic}}
}

// tell writes a prompt with these messages of a user and a model in turn, and answers it.
func (l teller) tell(key uuid.UUID, said ...string) *Prompt {
	l.t.Helper()
	messages := make([]string, len(said))
	for i, text := range said {
		messages[i] = fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text)
	}
	written, err := l.Write(l.t.Context(), Request{
		Scope: l.scope, Codec: anthropic.New(), Config: modules.Catalog().Default(), Headers: http.Header{"X-Palimpsest-Session-Id": {"s"}}, Path: "/v1/messages",
		Destination: Destination{Key: key},
		Body: []byte(`{"model":"claude-sonnet-4-5","max_tokens":10,"system":"` + strings.Repeat("Read the files before you change them. ", 40) +
			`","messages":[` + strings.Join(messages, ",") + `]}`),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.Answered(written.Sent(), wire.Answer{Usage: wire.Usage{Reported: true, CacheWrite: written.Exchange.Report.After}})
	return written
}

// What an account says of a prompt is in the model's own tokens, of which Claude has more than o200k.
func TestAccountIsInTheModelsTokens(t *testing.T) {
	t.Parallel()
	l := newTeller(t)
	first := l.tell(uuid.Nil, "Please begin with the parser.")
	second := l.tell(uuid.Nil, "Please begin with the parser.", "It is done.", "Now do the same for the printer, and run all of its tests.")
	for from, written := range map[int]*Prompt{0: first, 1: second} {
		exchange, got, fresh := written.Exchange, written.account.exchange, 0
		for _, digest := range exchange.Conversation.Digests[from:] {
			fresh += digest.Tokens
		}
		factor := exchange.Limits.Factor
		if factor < 1.1 || got.Ahead != int(float64(exchange.Limits.Fixed)*factor) || got.Fresh != int(float64(fresh)*factor) || got.Shared != from {
			t.Errorf("%d messages with factor %v: %d tokens before them and %d fresh ones after %d shared messages", len(exchange.Conversation.Digests), factor, got.Ahead, got.Fresh, got.Shared)
		}
	}
}

// Each account has its own cache. What went out with an unknown one may be in that of any.
func TestCacheIsThatOfTheAccount(t *testing.T) {
	t.Parallel()
	l, one, two := newTeller(t), uuid.New(), uuid.New()
	said := []string{"Please begin."}
	for i, step := range []struct {
		key   uuid.UUID
		knows bool
	}{{uuid.Nil, false}, {one, true}, {one, true}, {two, false}, {uuid.Nil, true}, {two, true}} {
		written := l.tell(step.key, said...)
		if before := written.account.before; (before != nil) != step.knows {
			t.Errorf("request %d: the prompt before it is %+v", i, before)
		}
		said = append(said, "Done.", "Go on.")
	}
}

// A fork shares the messages before it with the lane that it leaves, and no more.
func TestForkSharesTheMessagesBeforeIt(t *testing.T) {
	t.Parallel()
	l := newTeller(t)
	long := []string{"Begin.", "Done.", "Go on.", "Done too.", "And on."}
	l.tell(uuid.Nil, long[:3]...)
	l.tell(uuid.Nil, long...)
	fork := l.tell(uuid.Nil, "Begin.", "Done.", "Go on.", "I do something else.", "Now stop.")
	if at := fork.Lane.Ancestry.ForkAt; at != 3 || fork.account.before == nil || fork.account.exchange.Shared != 3 {
		t.Errorf("forked at %d, shares %d with %+v", at, fork.account.exchange.Shared, fork.account.before)
	}
}

// A prompt that another process sent renews the cache of the same model.
func TestCacheIsRenewedByPromptsOfItsModel(t *testing.T) {
	t.Parallel()
	noon := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	last := cost.Cached{Prompt: cost.Prompt{At: noon, Model: "m"}, Tokens: 10, TTL: 5 * time.Minute}
	later := session.CacheState{At: noon.Add(2 * time.Minute), Model: "m", TTL: time.Hour}
	other, uncached, earlier := later, later, later
	other.Model, uncached.TTL, earlier.At = "n", 0, noon.Add(-time.Minute)
	for name, c := range map[string]struct {
		heat session.CacheState
		at   time.Time
		ttl  time.Duration
	}{
		"later": {later, later.At, time.Hour}, "another model": {other, noon, last.TTL}, "without a cache": {uncached, noon, last.TTL}, "earlier": {earlier, noon, last.TTL},
	} {
		if got := refreshed(last, c.heat); !got.At.Equal(c.at) || got.TTL != c.ttl || got.Tokens != 10 {
			t.Errorf("%s: at %s for %s", name, got.At, got.TTL)
		}
	}
}

// After a restart the lane's record tells what is cached: nothing without a cache.
func TestRecordOfAnUncachedLaneHasNoTokens(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]int{0: 0, time.Minute: 500} {
		written := &Prompt{Exchange: &pipeline.Exchange{}, earlier: earlier{heat: session.CacheState{At: time.Now(), TTL: ttl, Tokens: 500, Position: 4}}}
		written.Exchange.Conversation.Digests = make([]conversation.Digest, 3)
		if last, shared := ownRecord(written); last.Tokens != want || last.TTL != ttl || shared != 3 {
			t.Errorf("cached for %s: %d tokens for %s, %d messages shared", ttl, last.Tokens, last.TTL, shared)
		}
	}
}

// Another order of the parts before the messages, or another insert there, is another prompt.
func TestFixedPartsAreToldApart(t *testing.T) {
	t.Parallel()
	hash := func(insert string, parts ...string) uint64 {
		exchange := &pipeline.Exchange{}
		for _, part := range parts {
			exchange.Request.Fixed = append(exchange.Request.Fixed, json.RawMessage(part))
		}
		if insert != "" {
			exchange.Lane.Inserts = []session.Insert{{Message: session.InSystem, Text: insert}, {Message: 2, Text: "elsewhere"}}
		}
		return fixedHash(exchange)
	}
	seen := map[uint64]string{}
	for name, sum := range map[string]uint64{
		"none": hash(""), "one": hash("", "a"), "two": hash("", "a", "b"), "swapped": hash("", "b", "a"), "with an insert": hash("i", "a", "b"), "with another": hash("j", "a", "b"),
	} {
		if other, is := seen[sum]; is || sum == 0 {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[sum] = name
	}
}

// A refusal teaches a window that is smaller than the known one and fits the prompt that was refused.
func TestOnlyPlausibleWindowsAreLearned(t *testing.T) {
	t.Parallel()
	known, unknown := tokens.Model{Name: "known", Family: "f", Known: true, Window: 200_000}, tokens.Model{Name: "unknown"}
	for name, c := range map[string]struct {
		model tokens.Model
		size  int
		said  wire.Overflow
		want  int
	}{
		"smaller":                        {known, 150_000, wire.Overflow{Window: 128_000}, 128_000},
		"the known one":                  {known, 250_000, wire.Overflow{Window: 200_000}, 0},
		"larger":                         {known, 250_000, wire.Overflow{Window: 210_000}, 0},
		"as small as it may be":          {unknown, 65_536, wire.Overflow{Window: 1024}, 1024},
		"too small":                      {unknown, 1_000, wire.Overflow{Window: 1023}, 0},
		"too small for such a prompt":    {unknown, 128_000, wire.Overflow{Window: 1999}, 0},
		"not named, of an unknown model": {unknown, 10_000, wire.Overflow{Tokens: 10_200}, 10_000},
		"not named, of a known model":    {known, 150_000, wire.Overflow{}, 0},
		"too many bytes":                 {unknown, 10_000, wire.Overflow{IsHeavy: true}, 0},
	} {
		got := lesson(c.model, c.size, c.said)
		if got.Window != c.want || (got.Model == c.model.Name) != (c.want > 0) {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
}

// A person's error message is the title until they say more, but only before the first answer.
func TestReportedProblemIsTheTitleOnceItIsAnswered(t *testing.T) {
	t.Parallel()
	l := newTeller(t)
	for want, said := range map[string][]string{
		"Error: exit status 1": {"Error: exit status 1", "I look.", "Fix the build."},
		"Fix the build.":       {"Fix the build.", "I look.", "Error: exit status 1"},
	} {
		if got := title(&l.tell(uuid.Nil, said...).Exchange.Conversation); got != want {
			t.Errorf("%q: %q, want %q", said[0], got, want)
		}
	}
}

// A warning of dropped content stands with the compaction that dropped it, not with a later one.
func TestWarningOfDroppedContentEndsWithItsCompaction(t *testing.T) {
	t.Parallel()
	l := newTeller(t)
	written := l.tell(uuid.Nil, "Begin.")
	l.Tracker.Truncated(written.Lane.ID, 2)
	for number, want := range map[int]bool{1: false, 2: true, 3: false} {
		written.Exchange.Report.Warnings, written.Exchange.Lane.Projection = nil, &session.Projection{Number: number}
		if l.warn(written); slices.Contains(written.Exchange.Report.Warnings, cost.NoticeTruncated) != want {
			t.Errorf("compaction %d: warned of %v", number, written.Exchange.Report.Warnings)
		}
	}
}

// The messages of an update follow the link of the history before them.
func TestUpdateBeginsAtTheLinkBeforeItsMessages(t *testing.T) {
	t.Parallel()
	written := newTeller(t).tell(uuid.Nil, "Begin.", "Done.", "Go on.")
	chain := written.Exchange.Conversation.Chain
	for from := range 4 {
		update := written.update(time.Now(), from)
		want := chain[3]
		if from < 3 {
			want = chain[from]
		}
		if base := update.Base(); !bytes.Equal(base[:], want[:]) || update.First() != from || len(update.Messages.Entries) > 0 && len(update.Messages.Links) != len(update.Messages.Entries)+1 {
			t.Errorf("from message %d: %d messages from %d on, %d links", from, len(update.Messages.Entries), update.First(), len(update.Messages.Links))
		}
	}
}
