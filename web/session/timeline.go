package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/session"
	"palimpsest/web/components"
)

// maxMarks limits the events that the chart numbers and the list below it shows.
const maxMarks = 24

// event is an event at a request.
type event struct {
	Number  int // in the chart
	Request int
	Text    string
	Path    string // of the message to look at; "" if absent
}

// isEpoch reports whether a request made a new projection.
func isEpoch(moment session.TimelineEntry) bool {
	return moment.Compression == string(pipeline.Epoch) || moment.Compression == string(pipeline.Truncated)
}

// compressionName describes in a word what happened to a prompt.
func compressionName(compression string) string {
	words, known := map[string]string{
		"none": "unchanged", "epoch": "compacted", "frozen": "compacted earlier", "bypassed": "left alone", "emergency": "compacted after a refusal", "unreachable": "too long",
	}[compression]
	if !known {
		return compression
	}
	return words
}

// isFallback reports whether a request was sent otherwise than the pipeline intended.
func isFallback(moment session.TimelineEntry) bool {
	return !isEpoch(moment) && moment.Class != afterCompaction && compactedAt(moment) == nil
}

// compactedAt returns the event of the provider's own compaction, or nil.
func compactedAt(moment session.TimelineEntry) *pipeline.ReportEntry {
	if !strings.Contains(string(moment.Report), pipeline.CompactedType) {
		return nil
	}
	var report pipeline.Report
	if json.Unmarshal(moment.Report, &report) != nil {
		return nil
	}
	return report.Compacted()
}

// afterCompaction is the class of the first request after a client has compacted itself.
const afterCompaction = "after-compaction"

// epoch returns the lane's epoch with a number, or nil.
func (m *model) epoch(number int) *session.EpochOverview {
	at := slices.IndexFunc(m.Epochs, func(e session.EpochOverview) bool { return e.Number == number })
	if at < 0 {
		return nil
	}
	return &m.Epochs[at]
}

// events returns the lane's newest events, oldest first, each with a link to its change.
func (m *model) events() []event {
	all := m.Timeline.Events
	all = all[max(0, len(all)-maxMarks):]
	events := make([]event, len(all))
	for i, moment := range all {
		events[i] = event{Number: i + 1, Request: moment.Number, Text: m.happened(moment)}
		if epoch := m.epoch(moment.Projection); epoch != nil && isEpoch(moment) {
			events[i].Path = m.messagePath(max(0, epoch.Covers-1))
		}
	}
	return events
}

// happened describes the events at a moment.
func (m *model) happened(moment session.TimelineEntry) string {
	var parts []string
	if moment.Class == afterCompaction {
		parts = append(parts, "the client compacted itself"+m.putBackAt(moment))
	}
	if compacted := compactedAt(moment); compacted != nil {
		parts = append(parts, providerCompacted(compacted))
	}
	switch epoch := m.epoch(moment.Projection); {
	case isEpoch(moment) && epoch != nil:
		parts = append(parts, fmt.Sprintf("compaction %d, reason: %s, %s → %s tokens", epoch.Number, reasonName(epoch.Reason),
			components.Short(int64(epoch.Before)), components.Short(int64(epoch.After))))
		if epoch.Certificate != nil {
			parts = append(parts, certified(epoch.Certificate))
		}
	case isEpoch(moment):
		parts = append(parts, "compressed, "+components.Short(int64(moment.Before))+" → "+components.Short(int64(moment.After))+" tokens")
	case isFallback(moment):
		parts = append(parts, "sent as "+moment.Compression)
	}
	if moment.Compression == string(pipeline.Truncated) {
		parts = append(parts, "truncated")
	}
	return strings.Join(parts, "; ")
}

// providerCompacted describes the provider's compaction of the history and its cost in tokens.
func providerCompacted(event *pipeline.ReportEntry) string {
	text := fmt.Sprintf("the provider compacted the history, %s; the originals are in the archive", components.Plural(int64(event.Counts["messages"]), "message"))
	if in, out := event.Counts["input_tokens"], event.Counts["output_tokens"]; in+out > 0 {
		text += fmt.Sprintf("; it read %s and wrote %s tokens for that", components.Short(int64(in)), components.Short(int64(out)))
	}
	return text
}

// putBackAt describes the bridge's inserts at a moment.
func (m *model) putBackAt(moment session.TimelineEntry) string {
	bridged := bridgedAt(moment)
	if bridged == nil {
		return ""
	}
	text := ""
	if bridged.counts[compactionbridge.OwnSummary] > 0 {
		text = ", its summary was answered from Palimpsest’s compaction"
	}
	return text + ". " + bridged.restored()
}

// bridgedAt returns the bridge's comparison at a moment, or nil.
func bridgedAt(moment session.TimelineEntry) *bridged {
	if !strings.Contains(string(moment.Report), compactionbridge.DirectivesLost) {
		return nil // only a compared request has the count
	}
	var report pipeline.Report
	if json.Unmarshal(moment.Report, &report) != nil {
		return nil
	}
	for _, event := range report.Events {
		if event.Module == compactionbridge.Name && len(event.Counts) > 0 && event.Type != pipeline.InjectedType {
			return &bridged{counts: event.Counts, reason: event.Reason}
		}
	}
	return nil
}

// answeredBy returns the other models that answered requests of the lane, each once, among the chart's
// requests.
func (m *model) answeredBy() []string {
	var models []string
	for _, moment := range m.Timeline.Points {
		if moment.AnsweredBy != "" && !slices.Contains(models, moment.AnsweredBy) {
			models = append(models, moment.AnsweredBy)
		}
	}
	return models
}

// levels returns the tokens of a moment's prompt at L0 to L3, and whether they are known. An epoch's
// rendering stays the same until the next one; everything else is L0.
func (m *model) levels(moment session.TimelineEntry) (held [4]int, known bool) {
	if moment.Projection > 0 {
		epoch := m.epoch(moment.Projection)
		if epoch == nil {
			return held, false
		}
		copy(held[1:], epoch.Levels[:])
	}
	for level := 3; level > 0; level-- { // two kinds of estimates, so never more than was sent
		held[level] = min(held[level], moment.After-held[0])
		held[0] += held[level]
	}
	held[0] = moment.After - held[0]
	return held, true
}

// chart returns each request's tokens, with the levels stacked and the deepest at the bottom.
func (m *model) chart() string {
	chart := components.Chart{Kind: components.InOrder, XLabel: "Request"}
	before := components.Line{Label: "Without Palimpsest", Color: "lapis-fill", Key: "lapis", Fill: 0.12}
	sent := components.Line{Label: "Sent", Color: "verdigris-fill", Key: "verd"}
	limit := components.Line{Label: "Window", Color: "minium-fill", Key: "minium", Dash: true}
	target := components.Line{Label: "Target", Color: "ochre-fill", Key: "ochre", Dash: true}
	var stack [4]components.Line
	for level := range stack {
		name := "l" + strconv.Itoa(level)
		stack[level] = components.Line{Label: strings.ToUpper(name), Color: name, Key: name, Fill: 1, Stack: true}
	}
	hasTarget := false
	for _, moment := range m.Timeline.Points {
		chart.X = append(chart.X, int64(moment.Number))
		before.Values = append(before.Values, new(int64(moment.Before)))
		sent.Values = append(sent.Values, new(int64(moment.After)))
		var window, share *int64 // by the settings at that time
		if moment.Window > 0 {
			window = new(int64(moment.Window))
		}
		if moment.Target > 0 {
			share = new(int64(moment.Target))
			hasTarget = true
		}
		limit.Values, target.Values = append(limit.Values, window), append(target.Values, share)
		held, known := m.levels(moment)
		for level := range stack {
			var tokens *int64
			if known {
				tokens = new(int64(held[level]))
			}
			stack[level].Values = append(stack[level].Values, tokens)
		}
	}
	chart.Series = append(chart.Series, before, stack[0], stack[1], stack[2], stack[3], sent)
	if m.window() > 0 {
		chart.Series = append(chart.Series, limit)
	}
	if hasTarget {
		chart.Series = append(chart.Series, target)
	}
	for _, event := range m.events() {
		chart.Marks = append(chart.Marks, components.Mark{X: int64(event.Request), Text: strconv.Itoa(event.Number)})
	}
	return chart.JSON()
}

// levelsText describes a moment's prompt by level.
func (m *model) levelsText(moment session.TimelineEntry) string {
	held, known := m.levels(moment)
	if !known {
		return "not recorded"
	}
	var parts []string
	for _, tokens := range held {
		parts = append(parts, components.Short(int64(tokens)))
	}
	return strings.Join(parts, " · ")
}

// isSampled reports whether the chart leaves requests out.
func (m *model) isSampled() bool { return m.Timeline.Total > len(m.Timeline.Points) }

// window returns the limit of the newest request; 0 if it is unknown.
func (m *model) window() int64 { return int64(m.newest().Window) }

// newestTarget returns the size above which the newest request would be compressed; 0 if never or not
// recorded.
func (m *model) newestTarget() int64 { return int64(m.newest().Target) }

// spark draws the share of the window in use; nil if fewer than two requests have it.
func (m *model) spark() *components.Spark {
	var shares []float64
	for _, moment := range m.Timeline.Points {
		if moment.Window > 0 {
			shares = append(shares, float64(moment.After)/float64(moment.Window))
		}
	}
	if len(shares) < 2 {
		return nil
	}
	return components.NewSpark(shares, components.Plural(int64(m.Timeline.Total), "request"))
}

// strip summarizes on one line the share of the window in use and the compression.
func (m *model) strip() string {
	var parts []string
	newest := m.newest()
	switch {
	case newest.At.IsZero():
		return "No request of this thread went through the pipeline."
	case newest.Window > 0:
		parts = append(parts, components.Share(int64(newest.After), int64(newest.Window))+" of "+components.Short(int64(newest.Window))+" filled")
	}
	switch {
	case len(m.Epochs) > 0:
		parts = append(parts, components.Plural(int64(len(m.Epochs)), "compaction"))
	case m.startsAt() > 0:
		parts = append(parts, "not compressed yet, starts at "+components.Short(m.startsAt()))
	default:
		parts = append(parts, "not compressed")
	}
	return strings.Join(parts, " · ")
}

// startsAt returns the tokens at which compression will start; 0 if unknown or off.
func (m *model) startsAt() int64 { return int64(float64(m.window()) * m.Target) }
