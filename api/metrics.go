package api

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/limits"
	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/wire"
)

// Metrics are the proxy's counters. Labels take few values only: never a
// workspace, key, session or full model name.
type Metrics struct {
	requests       *prometheus.CounterVec
	duration       *prometheus.HistogramVec
	streamDuration *prometheus.HistogramVec
	overhead       *prometheus.HistogramVec
	firstByte      *prometheus.HistogramVec
	upstreamTTFB   *prometheus.HistogramVec
	tokens         *prometheus.CounterVec
	before         prometheus.Counter
	after          prometheus.Counter
	saved          prometheus.Counter
	turns          *prometheus.CounterVec
	epochs         *prometheus.CounterVec
	unreachable    *prometheus.CounterVec
	lifted         *prometheus.CounterVec
	net            prometheus.Gauge
	busts          *prometheus.CounterVec
	archived       prometheus.Counter
	archiveErrors  prometheus.Counter
	aborts         *prometheus.CounterVec
	dropped        prometheus.Counter
	compactions    *prometheus.CounterVec
	bridged        prometheus.Counter
	rehydrated     prometheus.Counter
	summaries      *prometheus.CounterVec
	plans          *prometheus.CounterVec
	mails          *prometheus.CounterVec
	cache          *prometheus.CounterVec
	recalls        *prometheus.CounterVec
	recalling      *prometheus.HistogramVec
	refused        *prometheus.CounterVec
	alone          prometheus.Counter
	unannounced    prometheus.Counter
	unread         prometheus.Counter
	unkept         prometheus.Counter
}

// NewMetrics registers the proxy's metrics with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	labels := []string{"provider", "model_family", "endpoint", "status_class", "stream"}
	fast := prometheus.ExponentialBuckets(0.0001, 2, 16) // 0.1 ms to 3.3 s
	slow := prometheus.ExponentialBuckets(0.01, 2, 17)   // 10 ms to 11 min
	metrics := &Metrics{
		requests:       counters("requests_total", "Requests answered.", labels...),
		duration:       histograms("request_duration_seconds", "Time from arrival to the last byte.", slow, labels...),
		streamDuration: histograms("stream_duration_seconds", "Time from the first to the last byte of a stream.", slow, labels...),
		overhead:       histograms("overhead_seconds", "The proxy's own work before the provider was dialled.", fast, "endpoint"),
		firstByte:      histograms("time_to_first_byte_seconds", "Time from arrival to the first byte of the answer.", slow, "endpoint"),
		upstreamTTFB:   histograms("upstream_ttfb_seconds", "Time from dialling the provider to its first byte.", slow, "provider"),
		tokens:         counters("tokens_total", "Tokens as providers reported them.", "type"),
		before:         counter("ipc_tokens_before_total", "Estimated tokens of prompts as clients sent them."),
		after:          counter("ipc_tokens_after_total", "Estimated tokens of prompts as they were sent."),
		saved:          counter("ipc_tokens_saved_total", "Estimated tokens that were not sent."),
		turns:          counters("ipc_compressed_turns_total", "Turns compressed by epochs, by the level they reached.", "level"),
		epochs:         counters("ipc_epochs_total", "Epochs, by reason.", "reason"),
		net:            prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "palimpsest", Name: "net_savings_usd_total", Help: "Money saved net of cache rewrites, at list prices; can fall."}),
		archived:       counter("archive_bytes_total", "Bytes of originals given to the archive."),
		archiveErrors:  counter("archive_write_errors_total", "Writes to the archive that failed."),
		aborts:         counters("stream_aborts_total", "Answers that ended early, by the side that left.", "side"),
		dropped:        counter("usage_events_dropped_total", "Records lost because the database refused them, or the queue was full while it did or for five seconds, and the local disk had no room."),
	}
	metrics.busts = counters("provider_cache_bust_total", "Prompts of which the provider did not have in its cache what it should, by cause.", "cause")
	for _, cause := range cost.Causes() {
		metrics.busts.WithLabelValues(string(cause)) // so that a rate begins at zero
	}
	held := []string{"reason", "client", "model_family"}
	metrics.unreachable = counters("ipc_unreachable_total", "Prompts above their target that could not be compressed further, by what holds most of them.", held...)
	metrics.lifted = counters("ipc_protection_lifted_total", "Prompts that fit only because a rule for cost or form was lifted, by the rule.", held...)
	metrics.compactions = counters("compaction_detected_total", "Sessions that went on after their client had compacted them.", "client")
	metrics.bridged = counter("bridge_recovered_total", "Requests into which what a client's summary had lost was put back.")
	metrics.rehydrated = counter("rehydrated_total", "Pieces of earlier turns that were brought back into prompts.")
	metrics.summaries = counters("summaries_total", "Summaries that models were asked for, by outcome.", "outcome")
	metrics.plans = counters("plans_total", "Epochs that were to be planned ahead, by what came of it.", "outcome")
	metrics.cache = counters("cache_total", "Requests of workspaces that have turned the cache of answers on, by what became of them there.", "result")
	metrics.recalls = counters("recall_calls_total", "Calls of the tools that recall from the archive, by outcome.", "tool", "outcome")
	metrics.recalling = histograms("recall_duration_seconds", "Time that a call of a recall tool took.", fast, "tool")
	metrics.mails = counters("mails_total", "Tries to send mails, by outcome.", "outcome")
	metrics.refused = counters("limits_refused_total", "Requests that met a limit of their API key.", "limit")
	for kind := limits.Requests; kind <= limits.HeldBudget; kind++ {
		metrics.refused.WithLabelValues(kind.String())
	}
	metrics.unread = counter("answer_read_failures_total", "Answers of which not all could be read, because reading them panicked. Their clients have them whole.")
	metrics.alone = counter("limits_local_total", "Requests whose limits a replica held by itself because Redis did not answer.")
	metrics.unannounced = counter("lanes_unannounced_total", "Writes that were to tell other processes which lane a request belongs to, and failed.")
	metrics.unkept = counter("exchanges_unkept_total", "Exchanges that the local disk did not take until they were recorded: they are lost if the process is killed.")
	registry.MustRegister(metrics.unkept, metrics.unannounced, metrics.unreachable, metrics.lifted, metrics.unread, metrics.mails, metrics.refused, metrics.alone, metrics.plans, metrics.cache, metrics.recalls, metrics.recalling, metrics.requests, metrics.duration, metrics.streamDuration, metrics.overhead, metrics.firstByte,
		metrics.upstreamTTFB, metrics.tokens, metrics.before, metrics.after, metrics.saved, metrics.turns, metrics.epochs,
		metrics.net, metrics.archived, metrics.archiveErrors, metrics.aborts, metrics.dropped, metrics.compactions, metrics.busts, metrics.bridged, metrics.rehydrated, metrics.summaries)
	return metrics
}

// Unannounced counts a write that was to tell other processes of lanes and failed.
func (m *Metrics) Unannounced(error) { m.unannounced.Inc() }

// observe counts one finished exchange.
func (m *Metrics) observe(event *Event) {
	labels := []string{event.Provider, event.ModelFamily, event.Endpoint, statusClass(event.Status), strconv.FormatBool(event.Stream)}
	m.requests.WithLabelValues(labels...).Inc()
	m.duration.WithLabelValues(labels...).Observe(event.Duration.Seconds())
	if event.Stream && event.Status == 200 {
		m.streamDuration.WithLabelValues(labels...).Observe((event.Duration - event.Overhead - event.TTFB).Seconds())
	}
	m.overhead.WithLabelValues(event.Endpoint).Observe(event.Overhead.Seconds())
	if event.Attempts > 0 {
		m.firstByte.WithLabelValues(event.Endpoint).Observe((event.Overhead + event.TTFB).Seconds())
		m.upstreamTTFB.WithLabelValues(event.Provider).Observe(event.TTFB.Seconds())
	}
	if event.Aborted != "" {
		m.aborts.WithLabelValues(event.Aborted).Inc()
	}
	m.net.Add(float64(event.NetMicroUSD) / 1e6)
	if event.Class == client.AfterCompaction {
		m.compactions.WithLabelValues(event.Client).Inc()
	}
	if event.Miss.Cause != cost.None {
		m.busts.WithLabelValues(string(event.Miss.Cause)).Inc()
	}
	if event.Report.Cache != "" {
		m.cache.WithLabelValues(string(event.Report.Cache)).Inc()
	}
	m.usage(event.Usage)
	m.report(event.Report)
	m.held(event)
}

// held counts what kept a prompt from coming down as it should.
func (m *Metrics) held(event *Event) {
	for _, happened := range event.Report.Events {
		switch happened.Type {
		case "target_unreachable":
			m.unreachable.WithLabelValues(happened.Reason, event.Client, event.ModelFamily).Inc()
		case "protection_lifted":
			m.lifted.WithLabelValues(happened.Reason, event.Client, event.ModelFamily).Inc()
		}
	}
}

// Mailed counts what came of a try to send a mail.
func (m *Metrics) Mailed(outcome string) { m.mails.WithLabelValues(outcome).Inc() }

// LimitedAlone counts a request whose limits this replica held by itself because
// Redis did not answer.
func (m *Metrics) LimitedAlone() { m.alone.Inc() }

// PlanEnded counts what came of an epoch that was to be planned ahead.
func (m *Metrics) PlanEnded(outcome string) { m.plans.WithLabelValues(outcome).Inc() }

func (m *Metrics) usage(usage wire.Usage) {
	m.tokens.WithLabelValues("input").Add(float64(usage.Input))
	m.tokens.WithLabelValues("cache_read").Add(float64(usage.CacheRead))
	m.tokens.WithLabelValues("cache_write").Add(float64(usage.CacheWrite))
	m.tokens.WithLabelValues("output").Add(float64(usage.Output))
}

func (m *Metrics) report(report pipeline.Report) {
	m.before.Add(float64(report.Before))
	m.after.Add(float64(report.After))
	m.saved.Add(float64(max(0, report.Before-report.After)))
	m.rehydrated.Add(float64(report.Injected[rehydrator.Name]))
	for _, event := range report.Events {
		if event.Module == compactionbridge.Name && event.Type == compactionbridge.Recovered {
			m.bridged.Inc()
		}
		if event.Type != "completed" {
			continue
		}
		m.epochs.WithLabelValues(event.Reason).Inc()
		for level := 1; level < len(report.Levels); level++ {
			m.turns.WithLabelValues("L" + strconv.Itoa(level)).Add(float64(report.Levels[level]))
		}
	}
}

func statusClass(status int) string { return strconv.Itoa(status/100) + "xx" }

// modelFamily shortens a model's name to a label of few values.
func modelFamily(family string) string {
	if family == "" {
		return "unknown"
	}
	return strings.ToLower(family)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "palimpsest", Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "palimpsest", Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "palimpsest", Name: name, Help: help, Buckets: buckets}, labels)
}
