package apibench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palimpsest/pipeline/reporttest"
)

// Target is the receiver of requests.
type Target struct {
	Name  string
	URL   string // base, without the path
	Key   string // API key; optional
	Admin string // base URL of the metrics with its dropped records; optional
	PID   int    // process to measure CPU time and memory of; optional

	// Others are more replicas, which take turns with URL. Their CPU time counts, too.
	Others []Replica
	Sticky bool // each client always uses the same replica instead

	// Database is the first process of the program's database server, to measure the CPU time of it and its
	// children; optional.
	Database int
}

// Replica is another process that works on a target's database.
type Replica struct {
	URL   string
	Admin string // as of a Target
	PID   int
}

// base returns the base URL for a request with a number, from a client with a number.
func (t *Target) base(number, client int) string {
	turn := number
	if t.Sticky {
		turn = client
	}
	if at := turn % (1 + len(t.Others)); at > 0 {
		return t.Others[at-1].URL
	}

	return t.URL
}

// replicas returns all of the target's processes.
func (t *Target) replicas() []Replica {
	return append([]Replica{{URL: t.URL, Admin: t.Admin, PID: t.PID}}, t.Others...)
}

// cpu returns the CPU time of the target's processes so far.
func (t *Target) cpu() (sum time.Duration) {
	for _, replica := range t.replicas() {
		sum += reporttest.CPUTime(replica.PID)
	}

	return sum
}

// Load describes the requests to a target: Requests requests from Clients clients, each sending its next
// one when the last is answered.
type Load struct {
	Body     Body
	Novelty  Novelty
	Requests int
	Clients  int
	WarmUp   int // uncounted requests of each client before the load, one client after the other
}

// times returns the load for several replicas, with as many clients for each as for one.
func (l Load) times(replicas int) Load {
	l.Requests *= replicas
	l.Clients *= replicas

	return l
}

// Outcome is the result of a load.
type Outcome struct {
	Answered     int
	Failures     []error // only the first few
	Failed       int
	Total        Distribution   // from sending to the last byte
	FirstByte    Distribution   // from sending to the first byte of the body
	Own          Distribution   // the proxy's own figure in Server-Timing for its work without the archive's
	CPU          time.Duration  // of the target's processes, per request
	DatabaseCPU  time.Duration  // of its database server, per request
	PerSecond    float64        // answered requests
	Memory       int64          // peak resident bytes of the target's process
	Compressions map[string]int // counts of the proxy's compression headers
}

// Distribution holds measured times in ascending order.
type Distribution []time.Duration

// At returns the quantile at a share; 0 without times.
func (d Distribution) At(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}

	return d[min(len(d)-1, int(share*float64(len(d))))]
}

// maxFailures is how many errors an Outcome keeps.
const maxFailures = 3

// sample holds the measurements of one request.
type sample struct {
	total, firstByte, own time.Duration
	compression           string
}

// run is a load in progress.
type run struct {
	target  Target
	load    Load
	client  *http.Client
	numbers *numbers
	next    atomic.Int64

	mu      sync.Mutex
	samples []sample
	outcome Outcome
}

// Bench sends loads. All requests of one Bench differ.
type Bench struct{ numbers numbers }

// numbers makes each request of a process unique, across all its loads.
type numbers struct{ last atomic.Int64 }

func (n *numbers) take() int { return int(n.last.Add(1)) }

// Drive sends a load to a target and waits for all answers.
func (b *Bench) Drive(ctx context.Context, target Target, load Load) Outcome {
	transport := newTransport()
	defer transport.CloseIdleConnections()
	r := &run{target: target, load: load, client: &http.Client{Transport: transport}, numbers: &b.numbers}

	clients := make([]*Client, load.Clients)
	for i := range clients {
		clients[i] = NewClient(load.Body, load.Novelty)
		for range load.WarmUp {
			if _, err := r.exchange(ctx, i, clients[i]); err != nil {
				return Outcome{Failed: 1, Failures: []error{fmt.Errorf("warm-up: %w", err)}}
			}
		}
	}

	watch := watchMemory(target.PID)
	before, stored := target.cpu(), reporttest.FamilyCPUTime(target.Database)
	begin := time.Now()
	var working sync.WaitGroup
	for i, client := range clients {
		working.Go(func() { r.work(ctx, i, client) })
	}
	working.Wait()

	took := time.Since(begin)
	r.outcome.CPU = (target.cpu() - before) / time.Duration(max(1, load.Requests))
	r.outcome.DatabaseCPU = (reporttest.FamilyCPUTime(target.Database) - stored) / time.Duration(max(1, load.Requests))

	return r.finish(took, watch.stop())
}

// work has one client send requests until the load is used up.
func (r *run) work(ctx context.Context, at int, client *Client) {
	var samples []sample
	var failures []error
	for r.next.Add(1) <= int64(r.load.Requests) {
		measured, err := r.exchange(ctx, at, client)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		samples = append(samples, measured)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, samples...)
	r.outcome.Failed += len(failures)
	r.outcome.Failures = append(r.outcome.Failures, failures...)
}

func (r *run) finish(took time.Duration, memory int64) Outcome {
	outcome := r.outcome
	outcome.Failures = outcome.Failures[:min(maxFailures, len(outcome.Failures))]
	outcome.Answered, outcome.Memory = len(r.samples), memory
	outcome.PerSecond = float64(len(r.samples)) / took.Seconds()
	outcome.Compressions = map[string]int{}
	for _, measured := range r.samples {
		outcome.Total = append(outcome.Total, measured.total)
		outcome.FirstByte = append(outcome.FirstByte, measured.firstByte)
		outcome.Own = append(outcome.Own, measured.own)
		if measured.compression != "" {
			outcome.Compressions[measured.compression]++
		}
	}
	slices.Sort(outcome.Total)
	slices.Sort(outcome.FirstByte)
	slices.Sort(outcome.Own)

	return outcome
}

// exchange sends one request and reads its whole answer.
func (r *run) exchange(ctx context.Context, at int, client *Client) (sample, error) {
	number := r.numbers.take()
	body, session := client.Next(number)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.target.base(number, at)+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return sample{}, fmt.Errorf("make a request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("X-Claude-Code-Session-Id", session)
	if r.target.Key != "" {
		request.Header.Set("Authorization", "Bearer "+r.target.Key)
	}

	start := time.Now()
	answer, err := r.client.Do(request)
	if err != nil {
		return sample{}, fmt.Errorf("send: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	measured, text, err := readAnswer(answer, start)
	if err != nil {
		return sample{}, err
	}
	if answer.StatusCode != http.StatusOK {
		return sample{}, fmt.Errorf("answered %s: %.300s", answer.Status, text)
	}
	if !bytes.Contains(text, []byte("message_stop")) && !bytes.Contains(text, []byte(`"stop_reason":"end_turn"`)) {
		return sample{}, errors.New("the answer is cut off")
	}

	return measured, nil
}

// readAnswer reads an answer to its end and returns its last bytes.
func readAnswer(answer *http.Response, start time.Time) (sample, []byte, error) {
	measured := sample{compression: answer.Header.Get("X-Palimpsest-Compression")}
	if _, timing, found := strings.Cut(answer.Header.Get("Server-Timing"), "palimpsest;dur="); found {
		own, _, _ := strings.Cut(timing, ",")
		parsed, err := time.ParseDuration(strings.TrimSpace(own) + "ms")
		if err != nil {
			return sample{}, nil, fmt.Errorf("Server-Timing: %w", err)
		}
		measured.own = parsed
	}

	var buffer [16 << 10]byte
	var tail []byte
	for {
		n, err := answer.Body.Read(buffer[:])
		if n > 0 && measured.firstByte == 0 {
			measured.firstByte = time.Since(start)
		}
		tail = append(tail, buffer[:n]...)
		tail = tail[max(0, len(tail)-1024):]
		if errors.Is(err, io.EOF) {
			measured.total = time.Since(start)
			return measured, tail, nil
		}
		if err != nil {
			return sample{}, tail, fmt.Errorf("read the answer: %w", err)
		}
	}
}
