package prompt

import (
	"strconv"

	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/ipc"
)

// warn adds the warnings of a prompt's lane to its report. A warning is repeated in every report for as long
// as it applies. Its event is from the exchange in which the problem arose; for a loss, from the first one
// that detects it.
func (w *Writer) warn(prompt *Prompt) {
	exchange, lane := prompt.Exchange, prompt.Lane
	if lane == nil || exchange.Projection == nil {
		return
	}
	report := &exchange.Report
	epochs, isEpoch := exchange.Projection.Number, report.Archived > 0
	say := func(warning, reason string, isNew bool, counts map[string]int) {
		report.Warnings = append(report.Warnings, warning)
		if isNew {
			report.Events = append(report.Events, pipeline.ReportEntry{Module: ipc.Name, Type: "warning", Reason: reason, Counts: counts})
		}
	}
	if after := pipeline.SettingsOf[ipc.Config](exchange.Config).WarnsAfter(); after > 0 && epochs >= after {
		say(cost.NoticeEpochs+"="+strconv.Itoa(epochs), cost.NoticeEpochs, isEpoch, map[string]int{"epochs": epochs})
	}
	if isTruncated(report) {
		w.Tracker.Truncated(lane.ID, epochs)
	}
	balance := w.Tracker.Balance(lane.ID)
	if balance.Truncated == epochs {
		say(cost.NoticeTruncated, cost.NoticeTruncated, isEpoch, nil)
	}
	isLoss := balance.IsLoss()
	if isNew := w.Tracker.Warned(lane.ID, isLoss); isLoss {
		say(cost.NoticeLoss, cost.NoticeLoss, isNew, map[string]int{"net_microusd": int(balance.Net)})
	}
}

// isTruncated reports whether an epoch has just truncated the prompt.
func isTruncated(report *pipeline.Report) bool {
	for _, event := range report.Events {
		if event.Type == "truncated" {
			return true
		}
	}
	return false
}
