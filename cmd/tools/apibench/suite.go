package apibench

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"palimpsest/api/programtest"
)

// Place is the workspace of the program that a case runs in.
type Place int

// The workspaces of a run.
const (
	Roomy Place = iota // no compression, because the model's window holds every body
	Tight              // a window of tightWindow tokens, so that large bodies are compressed
	Slow               // as Roomy, with a provider that pauses between two chunks
	Full               // a window of fullWindow tokens, and the key has limits of every kind
)

// tightWindow is a context window, in tokens, smaller than a large body, fullWindow one smaller than a body
// of 100,000 tokens. roomyWindow is far larger than every body, and larger than the model's own.
const (
	tightWindow = 150_000
	fullWindow  = 100_000
	roomyWindow = 1_000_000
)

// Case is one comparison.
type Case struct {
	Name        string
	Size        int // approximate bytes of the body
	Stream      bool
	Place       Place
	Novelty     Novelty
	Clients     int
	Requests    int    // of each target in each round
	WarmUp      int    // before them
	Compression string // the required compression header
	Goal        Goal
}

// Goal is the target of a case. Zero figures have no target.
type Goal struct {
	P50, P99   time.Duration // added to a direct call, to the last byte
	FirstByte  time.Duration // added to a direct call, to the first byte, p50
	CPU        time.Duration // of the proxy's process, per request
	Database   time.Duration // CPU of its database server, per request
	TimesFloor float64       // p99 as a multiple of the floor's
	PerSecond  float64       // answered requests
	Scales     float64       // rate of several replicas, each on cores of its own, as a multiple of one
	Own50      time.Duration // the proxy's own figure for its work, p50
	Own99      time.Duration // the same, p99
	MemoryPeak int64         // bytes
}

const (
	small  = 1_200
	medium = 64_000
	agent  = 400_000 // 100,000 tokens
	large  = 800_000
)

// Cases returns all comparisons in the order in which they run. Those of memory come first, before the
// program has grown.
func Cases() []Case {
	const us, ms = time.Microsecond, time.Millisecond

	return []Case{
		{Name: "1,000 open streams, 1 KB", Novelty: NewestMessage, Size: small, Stream: true, Place: Slow, Clients: 1000, Requests: 1000, Compression: "none", Goal: Goal{MemoryPeak: 150 << 20}},
		{Name: "1,000 open streams, 64 KB", Novelty: NewestMessage, Size: medium, Stream: true, Place: Slow, Clients: 1000, Requests: 1000, Compression: "none"},
		{Name: "1 KB, 1 client", Novelty: NewestMessage, Size: small, Place: Roomy, Clients: 1, Requests: 1500, WarmUp: 20, Compression: "none", Goal: Goal{P50: 350 * us}},
		{Name: "1 KB, 64 clients", Novelty: NewestMessage, Size: small, Place: Roomy, Clients: 64, Requests: 12_000, WarmUp: 1, Compression: "none", Goal: Goal{PerSecond: 6500, CPU: 200 * us, Database: 120 * us, TimesFloor: 3, Scales: 2.7}},
		{Name: "1 KB streamed, 1 client", Novelty: NewestMessage, Size: small, Stream: true, Place: Roomy, Clients: 1, Requests: 800, WarmUp: 20, Compression: "none", Goal: Goal{FirstByte: 550 * us}},
		{Name: "1 KB streamed, 8 clients", Novelty: NewestMessage, Size: small, Stream: true, Place: Roomy, Clients: 8, Requests: 3000, WarmUp: 2, Compression: "none"},
		{Name: "800 KB untouched, 1 client", Size: large, Place: Roomy, Clients: 1, Requests: 200, WarmUp: 5, Compression: "none", Goal: Goal{P50: 1400 * us, CPU: 2 * ms}},
		{Name: "800 KB untouched, 8 clients", Size: large, Place: Roomy, Clients: 8, Requests: 800, WarmUp: 2, Compression: "none", Goal: Goal{PerSecond: 600}},
		{Name: "800 KB untouched, newest message said again", Size: large, Place: Roomy, Novelty: NewestMessage, Clients: 1, Requests: 100, WarmUp: 5, Compression: "none"},
		{Name: "800 KB steady, 1 client", Size: large, Place: Tight, Clients: 1, Requests: 200, WarmUp: 5, Compression: "frozen", Goal: Goal{P50: 1500 * us, P99: 5 * ms}},
		{Name: "800 KB steady, 8 clients", Size: large, Place: Tight, Clients: 8, Requests: 800, WarmUp: 2, Compression: "frozen", Goal: Goal{PerSecond: 600}},
		{Name: "800 KB steady, streamed", Size: large, Stream: true, Place: Tight, Clients: 1, Requests: 150, WarmUp: 5, Compression: "frozen", Goal: Goal{FirstByte: 1600 * us}},
		{Name: "100,000 tokens, everything on, 8 clients", Size: agent, Place: Full, Novelty: NextTurn, Clients: 8, Requests: 800, WarmUp: 2, Compression: "frozen"},
		{Name: "800 KB at an epoch, history known", Size: large, Place: Tight, Novelty: FirstMessage, Clients: 1, Requests: 25, WarmUp: 2, Compression: "epoch", Goal: Goal{Own50: 20 * ms, Own99: 45 * ms}},
		{Name: "800 KB at an epoch, nothing known", Size: large, Place: Tight, Novelty: EveryMessage, Clients: 1, Requests: 15, WarmUp: 2, Compression: "epoch"},
	}
}

// The names of the routes.
const (
	directRoute = "direct"
	floorRoute  = "floor"
	ourRoute    = "palimpsest"
	allReplicas = "all replicas"
	eachItsOwn  = "all replicas, sticky"
)

// Route is a way to the provider: directly, through the floor, or through the proxy.
type Route struct {
	Name    string
	Targets map[Place]Target
}

// Row is the result of one case on one route: the median of each figure over the
// rounds.
type Row struct {
	Case     Case
	Route    string
	P50, P99 time.Duration // to the last byte

	Added50, Added99           time.Duration // compared with the first route in the same round
	AddedFirst50, AddedFirst99 time.Duration

	TimesFloor  float64 // Added50 as a multiple of the floor's; 0 if the floor adds no time
	Floor99     float64 // P99 as a multiple of the floor's
	ShareOfRate float64 // PerSecond as a share of the floor's
	Scales      float64 // rate of all replicas, each on cores of its own, as a multiple of one's; by CPU

	Own50, Own99 time.Duration
	CPU          time.Duration
	DatabaseCPU  time.Duration
	PerSecond    float64
	MemoryPeak   int64
	Answered     int
	Failed       int
	Failures     []error
	Dropped      int // lost records of exchanges
	Compressions map[string]int
}

// Fault returns why the row's figures are worthless, or "": wrong answers or unfinished work.
func (r Row) Fault() string {
	if r.Failed > 0 {
		return fmt.Sprintf("%d failed: %v", r.Failed, r.Failures)
	}
	if r.Dropped > 0 {
		return fmt.Sprintf("%d records dropped", r.Dropped)
	}
	if len(r.Compressions) > 0 && r.Compressions[r.Case.Compression] != r.Answered {
		return fmt.Sprintf("want %d × %s, got %v", r.Answered, r.Case.Compression, r.Compressions)
	}

	return ""
}

// Compare runs a case on all routes, in turns, for a number of rounds, after the processes behind them
// rest. It compares the other routes with the first.
func (b *Bench) Compare(ctx context.Context, wanted Case, routes []Route, rounds int) ([]Row, error) {
	body, err := NewBody(1, wanted.Size, wanted.Stream)
	if err != nil {
		return nil, err
	}
	load := Load{Body: body, Novelty: wanted.Novelty, Requests: wanted.Requests, Clients: wanted.Clients, WarmUp: wanted.WarmUp}

	if err := rest(ctx, wanted.Place, routes); err != nil {
		return nil, fmt.Errorf("%s: %w", wanted.Name, err)
	}
	before, err := allDropped(ctx, wanted.Place, routes)
	if err != nil {
		return nil, err
	}
	outcomes := make([][]Outcome, len(routes))
	for round := range rounds {
		for turn := range routes {
			at := (turn + round) % len(routes) // rotate so that each route is first in turn
			target := routes[at].Targets[wanted.Place]
			outcomes[at] = append(outcomes[at], b.Drive(ctx, target, load.times(1+len(target.Others))))
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("%s: %w", wanted.Name, err)
			}
		}
	}

	after, err := allDropped(ctx, wanted.Place, routes)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(routes))
	for i, route := range routes {
		rows[i] = newRow(wanted, route.Name, outcomes[i], outcomes[0])
		rows[i].Dropped = after[i] - before[i]
	}
	at := slices.IndexFunc(rows, func(row Row) bool { return row.Route == floorRoute })
	one := slices.IndexFunc(rows, func(row Row) bool { return row.Route == ourRoute })
	for i, route := range routes {
		if at >= 0 && rows[at].Added50 > 0 {
			rows[i].TimesFloor = float64(rows[i].Added50) / float64(rows[at].Added50)
		}
		if at >= 0 && rows[at].P99 > 0 {
			rows[i].Floor99 = float64(rows[i].P99) / float64(rows[at].P99)
		}
		if at >= 0 && rows[at].PerSecond > 0 {
			rows[i].ShareOfRate = rows[i].PerSecond / rows[at].PerSecond
		}
		if replicas := 1 + len(route.Targets[wanted.Place].Others); one >= 0 && replicas > 1 && rows[i].CPU > 0 {
			rows[i].Scales = float64(replicas) * float64(rows[one].CPU) / float64(rows[i].CPU)
		}
	}

	return rows, nil
}

func newRow(wanted Case, route string, rounds, direct []Outcome) Row {
	row := Row{Case: wanted, Route: route, Compressions: map[string]int{}}
	for _, outcome := range rounds {
		row.Answered += outcome.Answered
		row.Failed += outcome.Failed
		row.Failures = append(row.Failures, outcome.Failures...)
		for name, count := range outcome.Compressions {
			row.Compressions[name] += count
		}
	}
	middle := func(figure func(own, direct Outcome) time.Duration) time.Duration {
		figures := make([]time.Duration, len(rounds))
		for i := range rounds {
			figures[i] = figure(rounds[i], direct[i])
		}
		return median(figures)
	}
	row.P50 = middle(func(own, _ Outcome) time.Duration { return own.Total.At(0.5) })
	row.P99 = middle(func(own, _ Outcome) time.Duration { return own.Total.At(0.99) })
	row.Added50 = middle(func(own, direct Outcome) time.Duration { return own.Total.At(0.5) - direct.Total.At(0.5) })
	row.Added99 = middle(func(own, direct Outcome) time.Duration { return own.Total.At(0.99) - direct.Total.At(0.99) })
	row.AddedFirst50 = middle(func(own, direct Outcome) time.Duration { return own.FirstByte.At(0.5) - direct.FirstByte.At(0.5) })
	row.AddedFirst99 = middle(func(own, direct Outcome) time.Duration { return own.FirstByte.At(0.99) - direct.FirstByte.At(0.99) })
	row.Own50 = middle(func(own, _ Outcome) time.Duration { return own.Own.At(0.5) })
	row.Own99 = middle(func(own, _ Outcome) time.Duration { return own.Own.At(0.99) })
	row.CPU = middle(func(own, _ Outcome) time.Duration { return own.CPU })
	row.DatabaseCPU = middle(func(own, _ Outcome) time.Duration { return own.DatabaseCPU })

	rates, peaks := make([]float64, len(rounds)), make([]int64, len(rounds))
	for i, outcome := range rounds {
		rates[i], peaks[i] = outcome.PerSecond, outcome.Memory
	}
	row.PerSecond, row.MemoryPeak = median(rates), median(peaks)

	return row
}

// median returns the median of some figures; the lower one of two.
func median[T cmp.Ordered](figures []T) T {
	ordered := slices.Sorted(slices.Values(figures))

	return ordered[(len(ordered)-1)/2]
}

// Routes returns the ways to the double at provider: directly, through the floor, and through the program
// with its data in a folder, where it signs up for one workspace per place.
func Routes(ctx context.Context, provider string, floor, program *programtest.Program, data string) ([]Route, error) {
	database, err := postmaster(data)
	if err != nil {
		return nil, err
	}
	direct := Route{Name: directRoute, Targets: map[Place]Target{}}
	through := Route{Name: floorRoute, Targets: map[Place]Target{}}
	ours := Route{Name: ourRoute, Targets: map[Place]Target{}}
	for place, workspace := range map[Place]struct {
		name, path string
		window     int
		limits     map[string]any
	}{
		Roomy: {"roomy", "", 0, nil},
		Tight: {"tight", "", tightWindow, nil},
		Slow:  {"slow", slowPath, 0, nil},
		Full: {"full", "", fullWindow, map[string]any{
			"allowed_endpoints": []string{"/v1/messages*"}, "requests_per_minute": 1_000_000, "tokens_per_minute": 1_000_000_000, "concurrency": 1000, "budget_day_usd": 900_000, "budget_month_usd": 900_000,
		}},
	} {
		upstream, err := url.JoinPath(provider, workspace.path)
		if err != nil {
			return nil, fmt.Errorf("address of the double: %w", err)
		}
		account, err := programtest.SignUp(ctx, program.URL, programtest.Workspace{Name: workspace.name, Provider: upstream, Window: workspace.window, Limits: workspace.limits})
		if err != nil {
			return nil, fmt.Errorf("set up the workspace %s: %w", workspace.name, err)
		}
		if workspace.window == 0 {
			if err := account.Call(ctx, http.MethodPut, "/models/windows/"+model, map[string]int{"window_tokens": roomyWindow}, nil); err != nil {
				return nil, fmt.Errorf("set the model's window in the workspace %s: %w", workspace.name, err)
			}
		}
		direct.Targets[place] = Target{Name: direct.Name, URL: upstream}
		through.Targets[place] = Target{Name: through.Name, URL: floor.URL + workspace.path, PID: floor.PID()}
		ours.Targets[place] = Target{Name: ours.Name, URL: program.URL, Key: account.Key, Admin: program.Admin, PID: program.PID(), Database: database}
	}

	return []Route{direct, through, ours}, nil
}
