package memorybench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/sessiontest"
)

// Latency is the time of a module for one request.
type Latency struct {
	Name     string
	Bytes    int // of the body, or of the history read
	Rounds   int
	P50, P99 time.Duration // from call to return
	CPU50    time.Duration // CPU time, which other programs hardly affect
	CPU99    time.Duration
	Fires    bool
}

// mostFiring is the limit on a module's time for a request at which it fires, in the slowest of a hundred.
const mostFiring = 25 * time.Millisecond

// summarized is the first request after a compaction.
const summarized = `[{"role":"user","content":"This session is being continued from a previous conversation that ran out of context. ` +
	`The summary below covers the earlier portion of the conversation.\n\nSummary: the tests were run, some fail.\n\nPlease continue."}]`

// Latencies measures rehydrator and compaction-bridge, for a number of rounds, on a generated conversation
// of some 800 KB, with requests at which they fire and others. The bridge's history is in memory, so that
// the database's time is not included.
func Latencies(ctx context.Context, counter *tokens.Counter, rounds int) ([]Latency, error) {
	generated := sessiontest.Generate(1, sessiontest.Options{Format: conversation.Anthropic, Turns: 300, Parallel: true, TargetTokens: 205_000})
	large := generated.Body(generated.Steps() - 1)
	command, err := firstCommand(large)
	if err != nil {
		return nil, err
	}
	recall := NewRehydration(counter)
	var all []Latency
	for _, asked := range []struct {
		name, typed string
		fires       bool
	}{
		{"rehydrator, an explicit question", "What did " + command + " print earlier?", true},
		{"rehydrator, an ordinary request", "Please run the linter before you commit.", false},
	} {
		body, err := withTyped(large, asked.typed)
		if err != nil {
			return nil, err
		}
		one, err := timed(ctx, rounds, asked.fires, rehydrator.New(nil), func() (*pipeline.Exchange, error) {
			exchange, err := recall.exchange(body, 0)
			if err != nil {
				return nil, err
			}
			return recall.exchange(body, len(exchange.Conversation.Digests)-newestShown)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", asked.name, err)
		}
		one.Name, one.Bytes = asked.name, len(body)
		all = append(all, one)
	}
	bridge, err := bridgeLatencies(ctx, counter, rounds, large)
	return append(all, bridge...), err
}

func bridgeLatencies(ctx context.Context, counter *tokens.Counter, rounds int, large []byte) ([]Latency, error) {
	past, err := messagesOf(large)
	if err != nil {
		return nil, err
	}
	body, err := around(json.RawMessage(summarized))
	if err != nil {
		return nil, err
	}
	module := compactionbridge.New(counter, compactionbridge.Past{Originals: past})
	first, err := timed(ctx, rounds, true, module, func() (*pipeline.Exchange, error) {
		return afterCompaction(counter, body, len(past))
	})
	if err != nil {
		return nil, fmt.Errorf("compaction-bridge: %w", err)
	}
	first.Name, first.Bytes = "compaction-bridge, the first request after a compaction", len(large)
	recall := NewRehydration(counter)
	other, err := timed(ctx, rounds, false, module, func() (*pipeline.Exchange, error) { return recall.exchange(large, 0) })
	if err != nil {
		return nil, fmt.Errorf("compaction-bridge: %w", err)
	}
	other.Name, other.Bytes = "compaction-bridge, any other request", len(large)
	return []Latency{first, other}, nil
}

// timed runs a module on newly created exchanges, and checks whether it fires as expected.
func timed(ctx context.Context, rounds int, fires bool, module pipeline.Module, next func() (*pipeline.Exchange, error)) (Latency, error) {
	runtime.LockOSThread() // so that the thread's time is the module's
	defer runtime.UnlockOSThread()
	took, worked := make([]time.Duration, rounds), make([]time.Duration, rounds)
	for i := range took {
		exchange, err := next()
		if err != nil {
			return Latency{}, err
		}
		begun, used := time.Now(), threadTime()
		draft, err := module.Process(ctx, &exchange.View)
		took[i], worked[i] = time.Since(begun), threadTime()-used
		if err != nil {
			return Latency{}, fmt.Errorf("process: %w", err)
		}
		exchange.Take(draft)
		if fired := len(exchange.Injected(module.Name())) > 0; fired != fires {
			return Latency{}, fmt.Errorf("it fired: %t, which was not to be measured", fired)
		}
	}
	slices.Sort(took)
	slices.Sort(worked)
	half, most := rounds/2, (rounds*99)/100
	return Latency{Rounds: rounds, P50: took[half], P99: took[most], CPU50: worked[half], CPU99: worked[most], Fires: fires}, nil
}

// threadTime returns the CPU time of this thread, or 0 if the system does not report it.
func threadTime() time.Duration {
	const ofThread = 1 // RUSAGE_THREAD of Linux
	var usage syscall.Rusage
	if syscall.Getrusage(ofThread, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// messagesOf returns the messages of a body as the archive stores them.
func messagesOf(body []byte) (left, error) {
	var request struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	var entries left
	for i, raw := range request.Messages {
		entries = append(entries, archive.Entry{Index: i, Raw: raw, Size: len(raw)})
	}
	return entries, nil
}

// firstCommand returns the first command in a body's conversation.
func firstCommand(body []byte) (string, error) {
	match := regexp.MustCompile(`"input":\{"command":("(?:[^"\\]|\\.)*")`).FindSubmatch(body)
	if match == nil {
		return "", errors.New("the generated conversation ran no command")
	}
	var command string
	if err := json.Unmarshal(match[1], &command); err != nil {
		return "", fmt.Errorf("read command: %w", err)
	}
	return command, nil
}

// withTyped returns a body with a typed message after its last one.
func withTyped(body []byte, typed string) ([]byte, error) {
	quoted, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("write message: %w", err)
	}
	head, closed := strings.CutSuffix(string(body), "]}")
	if !closed {
		return nil, errors.New("the generated body does not end with its messages")
	}
	return []byte(head + `,{"role":"user","content":` + string(quoted) + `}]}`), nil
}

// LatencyTable returns measured times as a table.
func LatencyTable(rows []Latency) string {
	var text strings.Builder
	text.WriteString("| what | KB | rounds | p50, ms | p99, ms | p99 to reach, ms | processor p50, ms | processor p99, ms |\n" + strings.Repeat("| --- ", 8) + "|\n")
	for _, row := range rows {
		target := ""
		if row.Fires {
			target = strconv.FormatInt(mostFiring.Milliseconds(), 10)
		}
		milliseconds := func(d time.Duration) string { return fmt.Sprintf("%.4g", float64(d)/float64(time.Millisecond)) }
		fmt.Fprintf(&text, "| %s | %d | %d | %s | **%s** | %s | %s | %s |\n", row.Name, row.Bytes/1000, row.Rounds,
			milliseconds(row.P50), milliseconds(row.P99), target, milliseconds(row.CPU50), milliseconds(row.CPU99))
	}
	return text.String()
}
