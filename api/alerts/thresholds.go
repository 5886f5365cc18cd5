package alerts

import (
	"context"
	"fmt"
	"time"

	"palimpsest/tenants"
)

const (
	usualDays = 7         // before today, of which a usual day is the average
	leastDays = 3         // minimum of them with requests
	leastJump = 1_000_000 // minimum of a day's spend for an alert, in millionths of a US dollar
)

// spendJump compares the spend of today, in UTC, with that of a usual day.
func (l ruleCheck) spendJump(ctx context.Context) error {
	today, _ := tenants.SpendSpan(l.service.config.Now())
	filter := tenants.UsageFilter{From: today.AddDate(0, 0, -usualDays), To: today.AddDate(0, 0, 1)}
	rows, err := l.service.config.Store.Usage(ctx, l.workspace, tenants.ByDay, filter)
	if err != nil {
		return err
	}
	day := today.Format(time.DateOnly)
	var spent, before, days int64
	for i := range rows {
		switch row := &rows[i]; {
		case row.Label == day:
			spent = row.CostMicroUSD
		case row.CostMicroUSD > 0:
			before, days = before+row.CostMicroUSD, days+1
		}
	}
	if days < leastDays || spent < leastJump || spent*100 < before/days*int64(l.settings.SpendPercent) {
		return nil
	}
	return l.raise(ctx, l.channels, tenants.Alert{
		Period: day, Path: pathSpend,
		Title: fmt.Sprintf("Today costs %d %% of a usual day", spent*100/max(1, before/days)),
		Text: fmt.Sprintf("%s US dollars are spent today, in UTC. Of the last %d days, those with requests cost %s on average.",
			toCents(spent), usualDays, toCents(before/days)),
	})
}

// toCents formats an amount in millionths of a US dollar to the cent.
func toCents(micro int64) string {
	const cent = 10_000
	return tenants.USD((micro + cent/2) / cent * cent)
}

// slow looks for models whose answers take long.
func (l ruleCheck) slow(ctx context.Context) error {
	now := l.service.config.Now()
	_, models, err := l.service.config.Store.Answers(ctx, l.workspace, tenants.UsageFilter{From: now.Add(-recentSpan), To: now.Add(time.Second)})
	if err != nil {
		return err
	}
	var alerts []tenants.Alert
	for _, model := range models {
		if model.Requests-model.Failed < leastRequests || model.P95 < time.Duration(l.settings.SlowSeconds)*time.Second {
			continue
		}
		alerts = append(alerts, tenants.Alert{
			Subject: string(model.Provider) + "/" + model.Model, Path: pathAnswers,
			Title: "Slow answers of " + named(model.Model),
			Text: fmt.Sprintf("In the last 15 minutes, 5 %% of its answers took %s or longer, of %d requests to %s.",
				model.P95.Round(time.Second), model.Requests, model.Provider.Title()),
		})
	}
	return l.goesOn(ctx, alerts)
}

// heldUp checks the share of prompts that stayed above their target.
func (l ruleCheck) heldUp(ctx context.Context) error {
	recent, err := l.service.config.Store.HeldUp(ctx, l.workspace, l.service.config.Now().Add(-recentSpan))
	if err != nil {
		return err
	}
	var alerts []tenants.Alert
	if recent.Concerned >= leastRequests && recent.Held*100 >= recent.Concerned*int64(l.settings.HeldPercent) {
		text := fmt.Sprintf("In the last 15 minutes %d of %d long prompts were sent longer than the target allows.", recent.Held, recent.Concerned)
		if recent.Unstored > 0 {
			text += fmt.Sprintf(" For %d of them, compression failed or the originals could not be stored; nothing is shortened before they are.", recent.Unstored)
		} else {
			text += " The overview names the reason."
		}
		alerts = append(alerts, tenants.Alert{Path: pathOverview, Title: "Compression is held up", Text: text})
	}
	return l.goesOn(ctx, alerts)
}
