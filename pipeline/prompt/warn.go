package prompt

import (
	"strconv"

	"palimpsest/pipeline"
)

// The reasons of warnings.
const (
	warnEpochs    = "epochs"    // a lane has had many epochs
	warnTruncated = "truncated" // something left the prompt for which nothing stands
	warnNetLoss   = "net-loss"  // compression of the lane has cost more than it saved
)

// warn reports what people should know of a prompt's lane. Each warning stands in
// every report for as long as it holds; its event is that of the exchange in which
// something happened.
func (w *Writer) warn(prompt *Prompt) {
	exchange, lane := prompt.Exchange, prompt.Lane
	if lane == nil || exchange.Projection == nil {
		return
	}
	report := &exchange.Report
	epochs, isEpoch := exchange.Projection.Number, report.Archived > 0
	say := func(warning, reason string, counts map[string]int) {
		report.Warnings = append(report.Warnings, warning)
		if isEpoch {
			report.Events = append(report.Events, pipeline.Event{Module: "ipc", Type: "warning", Reason: reason, Counts: counts})
		}
	}
	if after := exchange.Config.IPC.WarnAfterEpochs; after > 0 && epochs >= after {
		say(warnEpochs+"="+strconv.Itoa(epochs), warnEpochs, map[string]int{"epochs": epochs})
	}
	if isTruncated(report) {
		w.Book.Truncated(lane.ID, epochs)
	}
	balance := w.Book.Balance(lane.ID)
	if balance.Truncated == epochs {
		say(warnTruncated, warnTruncated, nil)
	}
	if balance.IsLoss() {
		say(warnNetLoss, warnNetLoss, map[string]int{"net_microusd": int(balance.Net)})
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
