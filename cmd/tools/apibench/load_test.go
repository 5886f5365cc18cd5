package apibench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"palimpsest/pipeline/reporttest"
)

// recorder stands where a proxy would and notes what it is sent.
type recorder struct {
	mu       sync.Mutex
	sessions map[string]int
	keys     map[string]int
	answer   func(w http.ResponseWriter, number int)
	requests int
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	r.mu.Lock()
	r.requests++
	number := r.requests
	r.sessions[request.Header.Get("X-Claude-Code-Session-Id")]++
	r.keys[request.Header.Get("Authorization")]++
	r.mu.Unlock()
	r.answer(w, number)
}

func record(t *testing.T, answer func(w http.ResponseWriter, number int)) (*recorder, Target) {
	t.Helper()

	recorder := &recorder{sessions: map[string]int{}, keys: map[string]int{}, answer: answer}
	server := httptest.NewServer(recorder)
	t.Cleanup(server.Close)

	return recorder, Target{Name: "recorder", URL: server.URL, Key: "plm_test"}
}

func finished(w http.ResponseWriter, _ int) {
	w.Header().Set("X-Palimpsest-Compression", "frozen")
	w.Header().Set("Server-Timing", "palimpsest;dur=1.25, archive;dur=3")
	_, _ = io.WriteString(w, `{"stop_reason":"end_turn"}`)
}

func smallBody(t *testing.T) Body {
	t.Helper()

	body, err := NewBody(1, small, false)
	if err != nil {
		t.Fatal(err)
	}

	return body
}

func TestReplicasGetRequestsInTurns(t *testing.T) {
	t.Parallel()
	for name, sticky := range map[string]bool{"of all clients": false, "of one client each": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, target := record(t, finished)
			second, other := record(t, finished)
			target.Others, target.Sticky = []Replica{{URL: other.URL}}, sticky

			var bench Bench
			outcome := bench.Drive(t.Context(), target, Load{Body: smallBody(t), Requests: 30, Clients: 4, WarmUp: 1})

			if first.requests+second.requests != 34 || !sticky && first.requests != 17 || outcome.Failed != 0 {
				t.Errorf("%d and %d requests, %d failed; want 34 in all", first.requests, second.requests, outcome.Failed)
			}
			if want := map[bool]int{true: 2, false: 4}[sticky]; len(first.sessions) != want || len(second.sessions) != want {
				t.Errorf("%d and %d sessions, want %d", len(first.sessions), len(second.sessions), want)
			}
		})
	}
}

func TestLoadSendsExactlyItsRequests(t *testing.T) {
	t.Parallel()
	recorder, target := record(t, finished)

	var bench Bench
	outcome := bench.Drive(t.Context(), target, Load{Body: smallBody(t), Requests: 30, Clients: 4, WarmUp: 2})

	if recorder.requests != 38 || outcome.Answered != 30 || outcome.Failed != 0 {
		t.Errorf("%d requests, %d answered, %d failed; want 38, 30, 0", recorder.requests, outcome.Answered, outcome.Failed)
	}
	if recorder.keys["Bearer plm_test"] != 38 {
		t.Errorf("keys: %v", recorder.keys)
	}
	if outcome.Compressions["frozen"] != 30 {
		t.Errorf("compressions: %v", outcome.Compressions)
	}
	if got := outcome.Own.At(0.5); got != 1250*time.Microsecond {
		t.Errorf("own work %v, want 1.25ms", got)
	}
	if outcome.Total.At(0.5) <= 0 || outcome.FirstByte.At(0.5) > outcome.Total.At(0.99) {
		t.Errorf("first byte %v, total %v", outcome.FirstByte.At(0.5), outcome.Total.At(0.5))
	}
}

func TestEachClientHasItsSessionAndEachNewHistoryToo(t *testing.T) {
	t.Parallel()

	for novelty, want := range map[Novelty]int{NextTurn: 2, NewestMessage: 2, FirstMessage: 10, EveryMessage: 10} {
		recorder, target := record(t, finished)
		var bench Bench
		bench.Drive(t.Context(), target, Load{Body: smallBody(t), Novelty: novelty, Requests: 8, Clients: 2, WarmUp: 1})
		if len(recorder.sessions) != want {
			t.Errorf("novelty %d: %d sessions, want %d", novelty, len(recorder.sessions), want)
		}
	}
}

func TestWrongAndCutOffAnswersAreFailures(t *testing.T) {
	t.Parallel()
	_, target := record(t, func(w http.ResponseWriter, number int) {
		switch number % 3 {
		case 0:
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		case 1:
			_, _ = io.WriteString(w, "event: message_start\n\n")
		default:
			finished(w, number)
		}
	})

	var bench Bench
	outcome := bench.Drive(t.Context(), target, Load{Body: smallBody(t), Requests: 30, Clients: 1})

	if outcome.Failed != 20 || outcome.Answered != 10 || len(outcome.Failures) != maxFailures {
		t.Errorf("%d failed, %d answered, %d errors kept", outcome.Failed, outcome.Answered, len(outcome.Failures))
	}
	if text := outcome.Failures[0].Error() + outcome.Failures[1].Error(); !strings.Contains(text, "503") && !strings.Contains(text, "cut off") {
		t.Errorf("failures: %v", outcome.Failures)
	}
}

func TestFailedWarmUpEndsTheLoad(t *testing.T) {
	t.Parallel()
	recorder, target := record(t, func(w http.ResponseWriter, _ int) { http.Error(w, "no", http.StatusUnauthorized) })

	var bench Bench
	outcome := bench.Drive(t.Context(), target, Load{Body: smallBody(t), Requests: 30, Clients: 1, WarmUp: 1})

	if recorder.requests != 1 || outcome.Failed != 1 || !strings.Contains(outcome.Failures[0].Error(), "401") {
		t.Errorf("%d requests, outcome %+v", recorder.requests, outcome)
	}
}

func TestFloorAndProviderAnswerWholeStreams(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(NewProvider())
	t.Cleanup(provider.Close)
	address, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	floor := httptest.NewServer(NewFloor(address))
	t.Cleanup(floor.Close)

	for _, stream := range []bool{false, true} {
		body, err := NewBody(1, medium, stream)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []Target{{Name: "direct", URL: provider.URL}, {Name: "floor", URL: floor.URL}} {
			var bench Bench
			outcome := bench.Drive(t.Context(), target, Load{Body: body, Requests: 20, Clients: 4})
			if outcome.Failed > 0 {
				t.Errorf("%s, stream %v: %v", target.Name, stream, outcome.Failures)
			}
		}
		if direct, through := post(t, provider.URL, body), post(t, floor.URL, body); direct != through {
			t.Errorf("the floor changes the answer:\n%s\n%s", direct, through)
		}
	}
}

func TestFloorSaysThatTheProviderIsAway(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	address, err := url.Parse(away.URL)
	if err != nil {
		t.Fatal(err)
	}
	floor := httptest.NewServer(NewFloor(address))
	t.Cleanup(floor.Close)

	var bench Bench
	outcome := bench.Drive(t.Context(), Target{URL: floor.URL}, Load{Body: smallBody(t), Requests: 1, Clients: 1})
	if outcome.Failed != 1 || !strings.Contains(outcome.Failures[0].Error(), "502") {
		t.Errorf("outcome %+v", outcome)
	}
}

func post(t *testing.T, address string, body Body) string {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/messages", strings.NewReader(string(body.bytes)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return string(answer)
}

func TestProcessFiguresAreThoseOfTheProcess(t *testing.T) {
	t.Parallel()

	if got := memory(os.Getpid()); got < 1<<20 {
		t.Errorf("this process has %d bytes", got)
	}
	watch := watchMemory(os.Getpid())
	if got := watch.stop(); got < 1<<20 {
		t.Errorf("the watch saw %d bytes", got)
	}

	before := reporttest.CPUTime(os.Getpid())
	for sum := 0; reporttest.CPUTime(os.Getpid()) == before; sum++ { // until the clock has ticked
		_ = sum * sum
	}
	if memory(0) != 0 || reporttest.CPUTime(0) != 0 {
		t.Error("process 0 has figures")
	}
}

func TestShareOfADistribution(t *testing.T) {
	t.Parallel()

	figures := Distribution{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if figures.At(0.5) != 6 || figures.At(0.99) != 10 || figures.At(1) != 10 || Distribution(nil).At(0.5) != 0 {
		t.Errorf("p50 %d, p99 %d, p100 %d", figures.At(0.5), figures.At(0.99), figures.At(1))
	}
}
