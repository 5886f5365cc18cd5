package compactionbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/replay"
)

// Suite selects the comparisons of a run.
type Suite struct {
	Data  string       // directory with transcripts/*.json; optional
	Quick bool         // fewer and shorter sessions
	Only  string       // selects generated sessions by a part of the name, and no real ones; empty: all
	Note  func(string) // called with the current step; optional
}

// Result holds the results of a run.
type Result struct {
	Generated []Row  `json:"generated"`
	Real      []Row  `json:"real"`
	Engine    Engine `json:"engine"`
}

// job is one comparison.
type job struct {
	name     string
	talk     func() (Talk, error)
	prices   Prices
	pace     Pace
	policies []string
	real     bool
}

// Run runs a suite, with one comparison per core at a time.
func (b *Bench) Run(ctx context.Context, suite Suite) (*Result, error) {
	jobs := slices.DeleteFunc(b.generatedJobs(suite.Quick), func(one job) bool { return !strings.Contains(one.name, suite.Only) })
	if suite.Only == "" {
		recorded, err := recordedJobs(suite)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, recorded...)
	}
	rows, faults := make([][]Row, len(jobs)), make([]error, len(jobs))
	next := make(chan int)
	var group sync.WaitGroup
	for range runtime.NumCPU() {
		group.Go(func() {
			for i := range next {
				rows[i], faults[i] = b.do(ctx, &jobs[i], suite.Note)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	result := &Result{}
	for i := range jobs {
		if jobs[i].real {
			result.Real = append(result.Real, rows[i]...)
		} else {
			result.Generated = append(result.Generated, rows[i]...)
		}
	}
	times := 100
	if suite.Quick || suite.Only != "" {
		times = 20
	}
	var err error
	result.Engine, err = b.Epoch(ctx, times)
	return result, err
}

func (b *Bench) do(ctx context.Context, one *job, note func(string)) ([]Row, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	talk, err := one.talk()
	if err != nil {
		return nil, err
	}
	if note != nil {
		note(fmt.Sprintf("%s in %d, %s, %s", talk.Name, talk.Window, one.prices.Name, one.pace.Name))
	}
	return b.Compare(ctx, &talk, one.prices, one.pace, one.policies...)
}

// generatedJobs are the comparisons on generated sessions, the longest first, so that all cores stay busy.
func (b *Bench) generatedJobs(quick bool) []job {
	var jobs []job
	add := func(name string, talk func() Talk, prices Prices, policies []string, paces ...Pace) {
		for _, pace := range paces {
			jobs = append(jobs, job{name: name, talk: func() (Talk, error) { return talk(), nil }, prices: prices, pace: pace, policies: policies})
		}
	}
	session := func(format conversation.Format, turns int) func() Talk {
		return sync.OnceValue(func() Talk { return b.Generated(1, format, turns) })
	}
	references := []string{NoCompression, SelfCompacting}
	lengths := []int{600, 200, 85}
	if quick {
		lengths = lengths[1:]
	} else {
		add("many epochs", func() Talk { return b.ManyEpochs(1) }, Anthropic(), references, Warm())
	}
	for _, turns := range lengths {
		name, talk := fmt.Sprintf("%d turns", turns), session(conversation.Anthropic, turns)
		add(name, talk, Anthropic(), All(), Warm())
		add(name, talk, Anthropic(), references, WithGaps())
	}
	if !quick {
		add("200 turns", session(conversation.OpenAIChat, 200), OpenAI(), references, Warm(), WithGaps())
		add("200 turns", session(conversation.Anthropic, 200), AnthropicHour(), references, Warm(), WithGaps())
	}
	add("fits its window", func() Talk { return b.Small(1, conversation.Anthropic) }, Anthropic(), All(), Warm())
	return jobs
}

// recordedJobs are the comparisons on real sessions.
func recordedJobs(suite Suite) ([]job, error) {
	if suite.Data == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(suite.Data, "transcripts", "*.anthropic.json"))
	if err != nil {
		return nil, fmt.Errorf("find transcripts: %w", err)
	}
	slices.Sort(files)
	if suite.Quick {
		files = files[:min(3, len(files))]
	}
	var jobs []job
	for _, file := range files {
		for _, window := range []int{smallWindow, bigWindow} {
			for _, pace := range []Pace{Warm(), WithGaps()} {
				jobs = append(jobs, job{
					talk: func() (Talk, error) { return Recorded(file, window) }, prices: Anthropic(), pace: pace, policies: All(), real: true,
				})
			}
		}
	}
	return jobs, nil
}

// Recorded returns a session recorded as the body of its last request.
func Recorded(file string, window int) (Talk, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return Talk{}, fmt.Errorf("read transcript: %w", err)
	}
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return Talk{Name: name, Format: formatOf(body), Window: window, Body: body}, nil
}

func formatOf(body []byte) conversation.Format { return replay.Detect(body) }
