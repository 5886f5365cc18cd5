package api

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

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
	requestMetrics
	answerMetrics
	promptMetrics
	compactionMetrics
	serviceMetrics

	// Recorded counts the recorder's work.
	Recorded *recorder.Metrics
}

// NewMetrics registers the proxy's metrics with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	return &Metrics{
		requestMetrics:    newRequestMetrics(registry),
		answerMetrics:     newAnswerMetrics(registry),
		promptMetrics:     newPromptMetrics(registry),
		compactionMetrics: newCompactionMetrics(registry),
		serviceMetrics:    newServiceMetrics(registry),
		Recorded:          recorder.NewMetrics(registry),
	}
}

// Unannounced counts failed announcements to other processes of lanes, and answers that waited for one in
// vain.
func (m *Metrics) Unannounced(error) { m.unannounced.Inc() }

// observe counts one finished exchange.
func (m *Metrics) observe(event *RequestLog) {
	labels := []string{event.Provider, event.ModelFamily, event.Endpoint, statusClass(event.outcome.Status), strconv.FormatBool(event.Stream)}
	m.requests.WithLabelValues(labels...).Inc()
	m.duration.WithLabelValues(labels...).Observe(event.times.Duration.Seconds())
	if event.Stream && event.outcome.Status == 200 {
		m.streamDuration.WithLabelValues(labels...).Observe((event.times.Duration - event.times.Overhead - event.times.TTFB).Seconds())
	}
	m.overhead.WithLabelValues(event.Endpoint).Observe(event.times.Overhead.Seconds())
	if event.Attempts > 0 {
		m.firstByte.WithLabelValues(event.Endpoint).Observe((event.times.Overhead + event.times.TTFB).Seconds())
		m.upstreamTTFB.WithLabelValues(event.Provider).Observe(event.times.TTFB.Seconds())
	}
	if event.outcome.Aborted != "" {
		m.aborts.WithLabelValues(event.outcome.Aborted).Inc()
	}
	m.net.Add(float64(event.money.NetMicroUSD) / 1e6)
	if event.Class == client.AfterCompaction {
		m.compactions.WithLabelValues(event.Client).Inc()
	}
	if event.money.Miss.Cause != cost.None {
		m.busts.WithLabelValues(string(event.money.Miss.Cause)).Inc()
	}
	if event.Report.Cache != "" {
		m.cache.WithLabelValues(string(event.Report.Cache)).Inc()
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
			m.unreachable.WithLabelValues(happened.Reason, event.Client, event.ModelFamily).Inc()
		case "protection_lifted":
			m.lifted.WithLabelValues(happened.Reason, event.Client, event.ModelFamily).Inc()
		}
	}
}

// Mailed counts an attempt to send a mail by its outcome.
func (m *Metrics) Mailed(outcome string) { m.mails.WithLabelValues(outcome).Inc() }

// LimitedAlone counts a request with limits held by this replica alone because Redis did not answer.
func (m *Metrics) LimitedAlone() { m.alone.Inc() }

// PlanEnded counts a planned epoch by its outcome.
func (m *Metrics) PlanEnded(outcome string) { m.plans.WithLabelValues(outcome).Inc() }

// Spent counts a model call that Palimpsest made itself for a workspace.
func (m *Metrics) Spent(usage wire.Usage, microUSD int64) {
	m.usage(usage)
	m.net.Sub(float64(microUSD) / 1e6)
}

// SummaryEnded counts a summary request to a model by its outcome.
func (m *Metrics) SummaryEnded(outcome string) { m.summaries.WithLabelValues(outcome).Inc() }

func (m *Metrics) usage(usage wire.Usage) {
	add(m.tokens.WithLabelValues("input"), usage.Input)
	add(m.tokens.WithLabelValues("cache_read"), usage.CacheRead)
	add(m.tokens.WithLabelValues("cache_write"), usage.CacheWrite)
	add(m.tokens.WithLabelValues("output"), usage.Output)
}

func (m *Metrics) report(report pipeline.Report, isReach bool) {
	add(m.before, report.Before)
	add(m.after, report.After)
	if !isReach {
		add(m.saved, report.Before-report.After)
	}
	add(m.rehydrated, report.Injected[rehydrator.Name])
	for _, event := range report.Events {
		if event.Module == compactionbridge.Name && event.Type == compactionbridge.Recovered {
			m.bridged.Inc()
		}
		if event.Module == ipc.Name && event.Type == ipc.Certified {
			m.certified.WithLabelValues(strconv.FormatBool(event.Reason == ipc.Complete)).Inc()
		}
		if event.Type != "completed" {
			continue
		}
		m.epochs.WithLabelValues(event.Reason).Inc()
		for level := 1; level < len(report.Levels); level++ {
			add(m.turns.WithLabelValues("L"+strconv.Itoa(level)), report.Levels[level])
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
