package api

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/limits"
	"palimpsest/api/recorder"
	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/wire"
)

// Metrics are the proxy's counters. Labels take few values only: never a
// workspace, key, session or full model name.
type Metrics struct {
	request    requestMetrics
	answer     answerMetrics
	prompt     promptMetrics
	compaction compactionMetrics
	service    serviceMetrics

	// Recorded counts the recorder's work.
	Recorded *recorder.Metrics
}

// NewMetrics registers the proxy's metrics with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	return &Metrics{
		request:    newRequestMetrics(registry),
		answer:     newAnswerMetrics(registry),
		prompt:     newPromptMetrics(registry),
		compaction: newCompactionMetrics(registry),
		service:    newServiceMetrics(registry),
		Recorded:   recorder.NewMetrics(registry),
	}
}

// Unannounced counts failed announcements to other processes of lanes, and answers that waited for one in
// vain.
func (m *Metrics) Unannounced(error) { m.service.unannounced.Inc() }

// observe counts one finished exchange.
func (m *Metrics) observe(event *RequestLog) {
	labels := []string{event.Provider, event.ModelFamily, event.Endpoint, statusClass(event.outcome.Status), strconv.FormatBool(event.Stream)}
	m.request.requests.WithLabelValues(labels...).Inc()
	m.request.duration.WithLabelValues(labels...).Observe(event.times.Duration.Seconds())
	if event.Stream && event.outcome.Status == 200 {
		m.request.streamDuration.WithLabelValues(labels...).Observe((event.times.Duration - event.times.Overhead - event.times.TTFB).Seconds())
	}
	m.request.overhead.WithLabelValues(event.Endpoint).Observe(event.times.Overhead.Seconds())
	if event.Attempts > 0 {
		m.request.firstByte.WithLabelValues(event.Endpoint).Observe((event.times.Overhead + event.times.TTFB).Seconds())
		m.request.upstreamTTFB.WithLabelValues(event.Provider).Observe(event.times.TTFB.Seconds())
	}
	if event.outcome.Aborted != "" {
		m.answer.aborts.WithLabelValues(event.outcome.Aborted).Inc()
	}
	m.prompt.net.Add(float64(event.money.NetMicroUSD) / 1e6)
	if event.Class == client.AfterCompaction {
		m.compaction.compactions.WithLabelValues(event.Client).Inc()
	}
	if event.money.Miss.Cause != cost.None {
		m.answer.busts.WithLabelValues(string(event.money.Miss.Cause)).Inc()
	}
	if event.Report.Cache != "" {
		m.answer.cache.WithLabelValues(string(event.Report.Cache)).Inc()
	}
	m.usage(event.money.Usage)
	m.report(event.Report, event.money.Reach)
	m.held(event)
}

// held counts the reasons why a prompt wasn't compressed as expected.
func (m *Metrics) held(event *RequestLog) {
	for _, happened := range event.Report.Events {
		switch happened.Type {
		case "target_unreachable":
			m.prompt.unreachable.WithLabelValues(happened.Reason, event.Client, event.ModelFamily).Inc()
		case "protection_lifted":
			m.prompt.lifted.WithLabelValues(happened.Reason, event.Client, event.ModelFamily).Inc()
		}
	}
}

// Mailed counts an attempt to send a mail by its outcome.
func (m *Metrics) Mailed(outcome string) { m.service.mails.WithLabelValues(outcome).Inc() }

// LimitedAlone counts a request with limits held by this replica alone because Redis did not answer.
func (m *Metrics) LimitedAlone() { m.request.alone.Inc() }

// PlanEnded counts a planned epoch by its outcome.
func (m *Metrics) PlanEnded(outcome string) { m.prompt.plans.WithLabelValues(outcome).Inc() }

// Spent counts a model call that Palimpsest made itself for a workspace.
func (m *Metrics) Spent(usage wire.Usage, microUSD int64) {
	m.usage(usage)
	m.prompt.net.Sub(float64(microUSD) / 1e6)
}

// SummaryEnded counts a summary request to a model by its outcome.
func (m *Metrics) SummaryEnded(outcome string) { m.prompt.summaries.WithLabelValues(outcome).Inc() }

func (m *Metrics) usage(usage wire.Usage) {
	add(m.answer.tokens.WithLabelValues("input"), usage.Input)
	add(m.answer.tokens.WithLabelValues("cache_read"), usage.CacheRead)
	add(m.answer.tokens.WithLabelValues("cache_write"), usage.CacheWrite)
	add(m.answer.tokens.WithLabelValues("output"), usage.Output)
}

func (m *Metrics) report(report pipeline.Report, isReach bool) {
	add(m.prompt.before, report.Before)
	add(m.prompt.after, report.After)
	if !isReach {
		add(m.prompt.saved, report.Before-report.After)
	}
	add(m.compaction.rehydrated, report.Injected[rehydrator.Name])
	for _, event := range report.Events {
		if event.Module == compactionbridge.Name && event.Type == compactionbridge.Recovered {
			m.compaction.bridged.Inc()
		}
		if event.Module == ipc.Name && event.Type == ipc.Certified {
			m.compaction.certified.WithLabelValues(strconv.FormatBool(event.Reason == ipc.Complete)).Inc()
		}
		if event.Type != "completed" {
			continue
		}
		m.prompt.epochs.WithLabelValues(event.Reason).Inc()
		for level := 1; level < len(report.Levels); level++ {
			add(m.prompt.turns.WithLabelValues("L"+strconv.Itoa(level)), report.Levels[level])
		}
	}
}

// add counts n more. It ignores a negative n because a counter panics when it decreases.
func add(to prometheus.Counter, n int) { to.Add(float64(max(0, n))) }

func statusClass(status int) string { return strconv.Itoa(status/100) + "xx" }

// modelFamily shortens a model's name to a label of few values.
func modelFamily(family string) string {
	if family == "" {
		return "unknown"
	}
	return strings.ToLower(family)
}

// requestMetrics count requests, and how long they took.
type requestMetrics struct {
	requests       *prometheus.CounterVec
	duration       *prometheus.HistogramVec
	streamDuration *prometheus.HistogramVec
	overhead       *prometheus.HistogramVec
	firstByte      *prometheus.HistogramVec
	upstreamTTFB   *prometheus.HistogramVec
	refused        *prometheus.CounterVec
	alone          prometheus.Counter
	failovers      *prometheus.CounterVec
}

func newRequestMetrics(registry prometheus.Registerer) requestMetrics {
	labels := []string{"provider", "model_family", "endpoint", "status_class", "stream"}
	fast, slow := fastBuckets(), prometheus.ExponentialBuckets(0.01, 2, 17) // 10 ms to 11 min
	m := requestMetrics{
		requests:       counters("requests_total", "Requests answered.", labels...),
		duration:       histograms("request_duration_seconds", "Time from arrival to the last byte.", slow, labels...),
		streamDuration: histograms("stream_duration_seconds", "Time from the first to the last byte of a stream.", slow, labels...),
		overhead:       histograms("overhead_seconds", "The proxy's own work before the provider was dialled.", fast, "endpoint"),
		firstByte:      histograms("time_to_first_byte_seconds", "Time from arrival to the first byte of the answer.", slow, "endpoint"),
		upstreamTTFB:   histograms("upstream_ttfb_seconds", "Time from dialling the provider to its first byte.", slow, "provider"),
		refused:        counters("limits_refused_total", "Requests that met a limit of their API key.", "limit"),
		alone:          counter("limits_local_total", "Requests whose limits a replica held by itself because Redis did not answer."),
		failovers:      counters("failovers_total", "Prompts that went to another provider key because one failed, by why it did.", "reason"),
	}
	for kind := limits.Requests; kind <= limits.HeldBudget; kind++ {
		m.refused.WithLabelValues(kind.String())
	}
	registry.MustRegister(m.requests, m.duration, m.streamDuration, m.overhead, m.firstByte, m.upstreamTTFB, m.refused, m.alone, m.failovers)
	return m
}

// answerMetrics count answers of providers, and of a cache in their place.
type answerMetrics struct {
	tokens *prometheus.CounterVec
	busts  *prometheus.CounterVec
	aborts *prometheus.CounterVec
	unread prometheus.Counter
	cache  *prometheus.CounterVec
}

func newAnswerMetrics(registry prometheus.Registerer) answerMetrics {
	m := answerMetrics{
		tokens: counters("tokens_total", "Tokens as providers reported them.", "type"),
		busts:  counters("provider_cache_bust_total", "Prompts of which the provider did not have in its cache what it should, by cause.", "cause"),
		aborts: counters("stream_aborts_total", "Answers that ended early, by the side that left.", "side"),
		unread: counter("answer_read_failures_total", "Answers of which not all could be read, because reading them panicked. Their clients have them whole."),
		cache:  counters("cache_total", "Requests of workspaces that have turned the cache of answers on, by what became of them there.", "result"),
	}
	for _, cause := range cost.Causes() {
		m.busts.WithLabelValues(string(cause)) // so that a rate starts at zero
	}
	registry.MustRegister(m.tokens, m.busts, m.aborts, m.unread, m.cache)
	return m
}

// promptMetrics count compressions of prompts and their savings.
type promptMetrics struct {
	before      prometheus.Counter
	after       prometheus.Counter
	saved       prometheus.Counter
	turns       *prometheus.CounterVec
	epochs      *prometheus.CounterVec
	plans       *prometheus.CounterVec
	summaries   *prometheus.CounterVec
	unreachable *prometheus.CounterVec
	lifted      *prometheus.CounterVec
	net         prometheus.Gauge
}

func newPromptMetrics(registry prometheus.Registerer) promptMetrics {
	held := []string{"reason", "client", "model_family"}
	m := promptMetrics{
		before:      counter("ipc_tokens_before_total", "Estimated tokens of prompts as clients sent them."),
		after:       counter("ipc_tokens_after_total", "Estimated tokens of prompts as they were sent."),
		saved:       counter("ipc_tokens_saved_total", "Estimated tokens that were not sent of prompts that could have been sent as they came."),
		turns:       counters("ipc_compressed_turns_total", "Turns compressed by epochs, by the level they reached.", "level"),
		epochs:      counters("ipc_epochs_total", "Epochs, by reason.", "reason"),
		plans:       counters("plans_total", "Epochs that were to be planned ahead, by what came of it.", "outcome"),
		summaries:   counters("summaries_total", "Summaries that models were asked for, by outcome.", "outcome"),
		unreachable: counters("ipc_unreachable_total", "Prompts above their target that could not be compressed further, by what holds most of them.", held...),
		lifted:      counters("ipc_protection_lifted_total", "Prompts that fit only because a rule for cost or form was lifted, by the rule.", held...),
		net:         prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "palimpsest", Name: "net_savings_usd_total", Help: "Money saved net of cache rewrites, at list prices; can fall."}), //nolint:promlinter // scripts depend on the name
	}
	registry.MustRegister(m.before, m.after, m.saved, m.turns, m.epochs, m.plans, m.summaries, m.unreachable, m.lifted, m.net)
	return m
}

// compactionMetrics count compactions by clients, and content put back into prompts.
type compactionMetrics struct {
	compactions *prometheus.CounterVec
	certified   *prometheus.CounterVec
	bridged     prometheus.Counter
	rehydrated  prometheus.Counter
}

func newCompactionMetrics(registry prometheus.Registerer) compactionMetrics {
	m := compactionMetrics{
		compactions: counters("compaction_detected_total", "Sessions that went on after their client had compacted them.", "client"),
		certified:   counters("compaction_certificates_total", "Compactions whose prompt was compared with the originals, by whether all that must not be lost is in it or one recall away.", "complete"),
		bridged:     counter("bridge_recovered_total", "Requests into which what a client's summary had lost was put back."),
		rehydrated:  counter("rehydrated_total", "Pieces of earlier turns that were brought back into prompts."),
	}
	registry.MustRegister(m.compactions, m.certified, m.bridged, m.rehydrated)
	return m
}

// serviceMetrics count work beside prompts: mails, calls of the recall tools, and announcements to other
// processes.
type serviceMetrics struct {
	unannounced prometheus.Counter
	mails       *prometheus.CounterVec
	recalls     *prometheus.CounterVec
	recalling   *prometheus.HistogramVec
}

func newServiceMetrics(registry prometheus.Registerer) serviceMetrics {
	m := serviceMetrics{
		unannounced: counter("lanes_unannounced_total", "Writes that were to tell other processes which lane a request belongs to and failed, and answers that waited for one in vain."),
		mails:       counters("mails_total", "Tries to send mails, by outcome.", "outcome"),
		recalls:     counters("recall_calls_total", "Calls of the tools that recall from the archive, by outcome.", "tool", "outcome"),
		recalling:   histograms("recall_duration_seconds", "Time that a call of a recall tool took.", fastBuckets(), "tool"),
	}
	registry.MustRegister(m.unannounced, m.mails, m.recalls, m.recalling)
	return m
}

// fastBuckets cover durations of 0.1 ms to 3.3 s.
func fastBuckets() []float64 { return prometheus.ExponentialBuckets(0.0001, 2, 16) }

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "palimpsest", Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "palimpsest", Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "palimpsest", Name: name, Help: help, Buckets: buckets}, labels)
}
