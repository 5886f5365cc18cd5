package session

import (
	"encoding/json"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
)

// decisionsOf returns a session's decisions that made a lane's epochs, in the order of the epochs.
func decisionsOf(epochs []session.EpochOverview, all []cost.Decision) []cost.Decision {
	var of []cost.Decision
	for _, epoch := range epochs {
		at := slices.IndexFunc(all, func(d cost.Decision) bool { return d.Lane == epoch.Lane && d.Number == epoch.Number })
		if at >= 0 {
			of = append(of, all[at])
		}
	}
	return of
}

// isLoss reports whether compression has lost money in this session.
func (m *model) isLoss() bool { return cost.IsLoss(m.Sums.NetMicroUSD, m.Decisions) }

// isOften reports whether the lane has been compressed often enough for a warning.
func (m *model) isOften() bool { return m.WarnAfter > 0 && len(m.Epochs) >= m.WarnAfter }

// isTruncated reports whether messages have left the lane's prompts without a replacement.
func (m *model) isTruncated() bool {
	return slices.ContainsFunc(m.Timeline.Events, func(moment session.TimelineEntry) bool {
		var report pipeline.Report
		return json.Unmarshal(moment.Report, &report) == nil && slices.Contains(report.Warnings, cost.NoticeTruncated)
	})
}
