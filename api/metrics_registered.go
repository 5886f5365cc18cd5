package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/limits"
	"palimpsest/pipeline/cost"
)

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
		net:         prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "palimpsest", Name: "net_savings_usd_total", Help: "Money saved net of cache rewrites, at list prices; can fall."}),
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
