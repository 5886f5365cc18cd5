// Command table measures which content the memory finds again and prints the tables. Only the speed of the
// search needs a database, so it is read from the output of the Go benchmarks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"palimpsest/cmd/tools/memorybench"
	"palimpsest/cmd/tools/memorybench/datasets"
	"palimpsest/pipeline/reporttest"
	"palimpsest/pipeline/tokens"
)

// options are the command's flags.
type options struct {
	data     string
	own      string
	datasets string
	speed    string
	write    string

	rounds int
}

func main() {
	var wanted options
	flag.StringVar(&wanted.data, "data", "../shared/data", "directory with recorded sessions (recall) and requests (bridge), where there is one")
	flag.StringVar(&wanted.own, "own", "cmd/tools/memorybench/testdata", "directory with the invented sessions")
	flag.StringVar(&wanted.datasets, "datasets", "", "directory with LoCoMo, BEAM, or LongMemEval, as their authors publish them")
	flag.StringVar(&wanted.speed, "speed", "", "file with the output of go test -bench of pipeline/archive/archivedb: only its table is made")
	flag.StringVar(&wanted.write, "write", "", "page to write the tables into")
	flag.IntVar(&wanted.rounds, "rounds", 200, "how often the modules are timed")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, wanted)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted options) error {
	head := fmt.Sprintf("%s, commit %s, %s. The machine's load was %s when it began.\n", time.Now().UTC().Format(time.DateOnly), commit(ctx), reporttest.Machine(), load())
	if wanted.speed != "" {
		printed, err := os.ReadFile(wanted.speed)
		if err != nil {
			return fmt.Errorf("read the benchmarks' output: %w", err)
		}
		return tell(wanted.write, "bench-memory-speed", head+"\n"+memorybench.Speed(string(printed)))
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		return fmt.Errorf("token counter: %w", err)
	}
	var text strings.Builder
	text.WriteString(head)
	for _, set := range []source{
		{"Recorded sessions that are tuned on, and all labeled requests", filepath.Join(wanted.data, "recall"), filepath.Join(wanted.data, "bridge", "dev.jsonl"), wanted.data, new(false)},
		{"Recorded sessions that are kept apart", filepath.Join(wanted.data, "recall"), "", wanted.data, new(true)},
		{"Invented sessions", wanted.own, filepath.Join(wanted.own, "labeled.jsonl"), "", nil},
	} {
		tables, err := measure(ctx, counter, &set)
		if errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(os.Stderr, "table:", err)
			continue
		}
		if err != nil {
			return err
		}
		text.WriteString("\n### " + set.title + "\n\n" + tables)
	}
	if wanted.datasets != "" {
		tables, err := published(ctx, counter, wanted.datasets)
		if err != nil {
			return err
		}
		text.WriteString("\n### Published sets\n\n" + tables)
	}
	latencies, err := memorybench.Latencies(ctx, counter, wanted.rounds)
	if err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	text.WriteString("\n### Time that the modules take\n\n" + memorybench.LatencyTable(latencies))
	return tell(wanted.write, "bench-memory", text.String())
}

// tell prints tables and, with a page, writes them between the marks of a target of the Makefile.
func tell(page, target, tables string) error {
	fmt.Print(tables) //nolint:forbidigo // the command's output
	if page == "" {
		return nil
	}
	return reporttest.Write(page, target, tables)
}

// published returns the tables of the public sets in a directory.
func published(ctx context.Context, counter *tokens.Counter, directory string) (string, error) {
	sets, err := datasets.Load(directory)
	if err != nil {
		return "", fmt.Errorf("published sets: %w", err)
	}
	var tables []string
	for i := range sets {
		fmt.Fprintln(os.Stderr, "measuring:", sets[i].Name)
		tables = append(tables, datasets.Markdown(&sets[i], datasets.Measure(&sets[i], datasets.Search), datasets.Measure(&sets[i], datasets.BM25)))
		back, size, err := memorybench.NewRehydration(counter).Published(ctx, &sets[i])
		if err != nil {
			return "", fmt.Errorf("%s: %w", sets[i].Name, err)
		}
		tables = append(tables, memorybench.Figures([]memorybench.Figure{back}), fmt.Sprintf("%.0f tokens come back for a question on average.\n", size))
		windows := []int{32_000, 16_000}
		found := make([][]datasets.Survival, len(windows))
		for at, window := range windows {
			if found[at], err = datasets.Survive(ctx, &sets[i], window); err != nil {
				return "", fmt.Errorf("%s: %w", sets[i].Name, err)
			}
		}
		if len(found[0]) > 0 {
			tables = append(tables, datasets.SurvivalTable(&sets[i], windows, found))
		}
	}
	return strings.Join(tables, "\n"), nil
}

// source holds the inputs of a group of tables.
type source struct {
	title       string
	recall      string // directory of sessions and questions
	labeled     string // file of labeled requests; optional
	compactions string // directory with compactions; optional
	isApart     *bool  // which part of the sessions; nil for all of them
}

// measure returns the tables of one set: of the search, of rehydrator, and of compaction-bridge, for which
// only a recorded set has compactions.
func measure(ctx context.Context, counter *tokens.Counter, from *source) (string, error) {
	set, err := memorybench.Load(from.recall)
	if err != nil {
		return "", err
	}
	if from.isApart != nil {
		set = set.Part(*from.isApart)
	}
	fmt.Fprintln(os.Stderr, "measuring:", from.title)
	var text strings.Builder
	text.WriteString("**Search**\n\n" + memorybench.Markdown(memorybench.New(set, counter.Count).Run()))
	bench := memorybench.NewRehydration(counter)
	figures, err := bench.Questions(ctx, set, 1)
	if err != nil {
		return "", err
	}
	back, err := bench.References(ctx, set)
	if err != nil {
		return "", err
	}
	figures = append(figures, back)
	detected := ""
	if from.labeled != "" {
		var ordinary []memorybench.Figure
		if ordinary, detected, err = labeled(ctx, counter, from.labeled); err != nil {
			return "", err
		}
		figures = append(figures, ordinary...)
	}
	typed, err := bench.Typed(ctx, set)
	if err != nil {
		return "", err
	}
	if typed.Cases > 0 {
		figures = append(figures, typed)
	}
	text.WriteString("\n**rehydrator**\n\n" + memorybench.Figures(figures) + detected)
	if from.compactions == "" {
		return text.String(), nil
	}
	found, missing, err := memorybench.LoadCompactions(from.compactions)
	if err != nil {
		return "", err
	}
	found = memorybench.PartOf(found, *from.isApart)
	var rows []memorybench.Carried
	for _, maxTokens := range []int{3000, 6000, 12000} {
		row, err := memorybench.Carry(ctx, counter, found, maxTokens)
		if err != nil {
			return "", err
		}
		rows = append(rows, row)
	}
	fmt.Fprintf(&text, "\n**compaction-bridge: what is read again within 30 calls of a compaction**\n\n%s\n%d more re-reads are of compactions whose session is not in the set.\n",
		memorybench.Rereads(rows), missing)
	return text.String(), nil
}

// load returns the load average of the last minute.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	minute, _, _ := strings.Cut(string(content), " ")
	return minute
}

// commit names the running version.
func commit(ctx context.Context) string {
	name, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}

// labeled returns the content that comes back into ordinary requests, and the table of the requests that
// compaction-bridge adds to.
func labeled(ctx context.Context, counter *tokens.Counter, name string) ([]memorybench.Figure, string, error) {
	requests, err := memorybench.LoadLabeled(name)
	if err != nil {
		return nil, "", err
	}
	ordinary, err := memorybench.NewRehydration(counter).Ordinary(ctx, requests)
	if err != nil {
		return nil, "", err
	}
	detected, err := memorybench.Detection(ctx, counter, requests)
	if err != nil {
		return nil, "", err
	}
	return ordinary, "\n**compaction-bridge: requests at which it puts something in**\n\n" + memorybench.Figures(detected), nil
}
