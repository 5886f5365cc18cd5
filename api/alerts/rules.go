package alerts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
)

// The pages that alerts link to.
const (
	pathAlerts    = "/settings/alerts"
	pathBudgets   = "/settings#budgets"
	pathKeys      = "/keys"
	pathProviders = "/providers"
	pathRequests  = "/requests"
	pathOverview  = "/overview"
	pathAnswers   = "/overview#card-answers"
	pathSpend     = "/spend"
	pathMembers   = "/members"
	pathOperator  = "/operator"
)

const (
	errorSpan     = 5 * time.Minute  // over which failures are counted
	leastRequests = 20               // minimum for an alert about their share
	lossSpan      = 24 * time.Hour   // over which compaction should save money
	recentSpan    = 15 * time.Minute // over which slow answers and prompts above their target are counted
	newsSpan      = 24 * time.Hour   // after which a change is no longer new

	once = "once" // period of a one-time event
)

// thresholds returns the shares of a budget that raise alerts, in percent, the highest first.
func thresholds() []int64 { return []int64{100, 80, 50} }

// spending is a spender with a budget, and the text of its alerts.
type spending struct {
	tenants.Budget

	subject  string // of the alerts
	name     string // "API key laptop"
	path     string // the page where the budget is set
	requests string // requests refused when it is used up
}

// budgets checks the spend of API keys, members, projects and the workspace against their budgets. If several
// thresholds were passed since the last check, the highest counts.
func (l ruleCheck) budgets(ctx context.Context) error {
	spenders, err := l.spenders(ctx)
	if err != nil {
		return err
	}
	day, month := tenants.SpendSpan(l.service.config.Now())
	var failures []error
	for _, spender := range spenders {
		inDay, inMonth, err := l.service.config.Store.Spend(ctx, l.workspace, spender.Spender, day, month)
		failures = append(failures, err)
		if err == nil {
			failures = append(failures,
				l.budget(ctx, spender, "daily", day.Format(time.DateOnly), inDay, spender.DayMicroUSD),
				l.budget(ctx, spender, "monthly", month.Format("2006-01"), inMonth, spender.MonthMicroUSD))
		}
	}
	return errors.Join(failures...)
}

// spenders returns all spenders with a budget in money, except end users, because there may be any number of
// them.
func (l ruleCheck) spenders(ctx context.Context) ([]spending, error) {
	keys, err := l.service.config.Store.APIKeys(ctx, l.workspace)
	if err != nil {
		return nil, err
	}
	budgets, err := l.service.config.Store.Budgets(ctx, l.workspace)
	if err != nil {
		return nil, err
	}
	var spenders []spending
	for i := range keys {
		if key := &keys[i]; key.RevokedAt == nil && key.Limits.HasBudget() {
			spender := tenants.Spender{Kind: tenants.KeySpends, ID: key.ID.String()}
			budget := tenants.Budget{Spender: spender, Quota: key.Limits.Quota}
			spenders = append(spenders, spending{budget, spender.ID, "API key " + named(key.Name), pathKeys, "requests with the key"})
		}
	}
	names := map[string]string{}
	if slices.ContainsFunc(budgets, func(budget tenants.Budget) bool { return budget.Kind == tenants.MemberSpends }) {
		members, err := l.service.config.Store.Members(ctx, l.workspace)
		if err != nil {
			return nil, err
		}
		for _, member := range members {
			names[member.User.ID.String()] = member.User.Email
		}
	}
	for _, budget := range budgets {
		spender := spending{budget, string(budget.Kind) + " " + budget.ID, "", pathBudgets, ""}
		switch budget.Kind {
		case tenants.WorkspaceSpends:
			spender.name, spender.requests = "The workspace", "all requests"
		case tenants.ProjectSpends:
			spender.name, spender.requests = "Project "+named(budget.ID), "requests of the project"
		case tenants.MemberSpends:
			if spender.name, spender.requests = "Member "+named(names[budget.ID]), "requests with the member's keys"; names[budget.ID] == "" {
				continue // they have left, and so have their keys
			}
		default:
			continue
		}
		spenders = append(spenders, spender)
	}
	return spenders, nil
}

func (l ruleCheck) budget(ctx context.Context, of spending, name, period string, spent, budget int64) error {
	if budget <= 0 {
		return nil
	}
	for _, percent := range thresholds() {
		if spent < budget/100*percent+budget%100*percent/100 {
			continue
		}
		alert := tenants.Alert{
			Subject: fmt.Sprintf("%s/%s/%d", of.subject, name, percent), Period: period, Path: of.path,
			Title: fmt.Sprintf("%s has used %d %% of its %s budget", of.name, percent, name),
			Text:  fmt.Sprintf("%s of %s US dollars are spent. When the budget is used up, %s are refused until the next %s begins, in UTC.", tenants.USD(spent), tenants.USD(budget), of.requests, map[string]string{"daily": "day", "monthly": "month"}[name]),
		}
		return l.raise(ctx, l.channels, alert)
	}
	return nil
}

// providerKeys looks for stored keys that their providers reject.
func (l ruleCheck) providerKeys(ctx context.Context) error {
	rejections, err := l.service.config.Store.Rejections(ctx, l.workspace, l.service.config.Now().Add(-cost.AdviceSpan))
	if err != nil {
		return err
	}
	alerts := make([]tenants.Alert, len(rejections))
	for i, rejection := range rejections {
		alerts[i] = tenants.Alert{
			Subject: rejection.Key.String(), Path: pathProviders,
			Title: "Provider key " + named(rejection.Name) + " was rejected",
			Text:  fmt.Sprintf("The provider answered %d. Requests that go to this key fail until it is replaced.", rejection.Status),
		}
	}
	return l.goesOn(ctx, alerts)
}

// errorRate checks the share of failed requests.
func (l ruleCheck) errorRate(ctx context.Context) error {
	exchanges, failed, err := l.service.config.Store.RecentFailures(ctx, l.workspace, l.service.config.Now().Add(-errorSpan))
	if err != nil {
		return err
	}
	var alerts []tenants.Alert
	if exchanges >= leastRequests && failed*100 >= exchanges*int64(l.settings.ErrorPercent) {
		alerts = append(alerts, tenants.Alert{
			Path: pathRequests, Title: fmt.Sprintf("%d %% of requests fail", failed*100/exchanges),
			Text: fmt.Sprintf("In the last 5 minutes %d of %d requests were answered with an error.", failed, exchanges),
		})
	}
	return l.goesOn(ctx, alerts)
}

// compaction checks whether compaction has cost more than it saved.
func (l ruleCheck) compaction(ctx context.Context) error {
	now := l.service.config.Now()
	totals, err := l.service.config.Store.Totals(ctx, l.workspace, tenants.UsageFilter{From: now.Add(-lossSpan), To: now})
	if err != nil {
		return err
	}
	var alerts []tenants.Alert
	if advice, is := cost.Advise(totals.Prompts.Edited, totals.CostMicroUSD, totals.NetMicroUSD); is {
		alerts = append(alerts, tenants.Alert{
			Path: pathOverview, Title: "Compaction costs more than it saves",
			Text: fmt.Sprintf("In the last 24 hours it cost %s US dollars more than it saved, over %d compressed requests. A higher target compresses less often.", tenants.USD(advice.Lost), advice.Exchanges),
		})
	}
	return l.goesOn(ctx, alerts)
}

// access looks for new members and keys. A channel only hears of those added after it.
func (l ruleCheck) access(ctx context.Context) error {
	since := l.service.config.Now().Add(-newsSpan)
	oldest := slices.MinFunc(l.channels, func(a, b tenants.AlertChannel) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if oldest.CreatedAt.After(since) {
		since = oldest.CreatedAt
	}
	entries, err := l.service.config.Store.UntoldEntries(ctx, l.workspace, since, []tenants.Action{tenants.MemberJoined, tenants.KeyCreated, tenants.ProviderKeyAdded})
	if err != nil {
		return err
	}
	var failures []error
	for i := range entries {
		entry := &entries[i]
		channels := slices.DeleteFunc(slices.Clone(l.channels), func(channel tenants.AlertChannel) bool { return channel.CreatedAt.After(entry.At) })
		failures = append(failures, l.raise(ctx, channels, alertOf(entry)))
	}
	return errors.Join(failures...)
}

// alertOf returns the alert for an entry of the audit log.
func alertOf(entry *tenants.AuditEntry) tenants.Alert {
	alert := tenants.Alert{Subject: entry.ID.String(), Period: once}
	by := "The product added it."
	if entry.Actor.Name != "" {
		by = named(entry.Actor.Name) + " added it."
	}
	switch entry.Action {
	case tenants.MemberJoined:
		alert.Title, alert.Text, alert.Path = "New member: "+named(cmp.Or(entry.After["email"], entry.Actor.Name)), "They joined the workspace as "+named(entry.After["role"])+".", pathMembers
	case tenants.ProviderKeyAdded:
		alert.Title, alert.Text, alert.Path = "New provider key: "+named(entry.After["name"]), by, pathProviders
	default:
		alert.Title, alert.Text, alert.Path = "New API key: "+named(entry.After["name"]), by, pathKeys
	}
	return alert
}

// installation checks the parts of the installation, for channels of an operator.
func (l ruleCheck) installation(ctx context.Context) error {
	if l.service.config.Health == nil {
		return nil
	}
	operators := map[uuid.UUID]bool{}
	l.channels = slices.Clone(l.channels)
	for _, channel := range l.channels {
		is, err := l.service.config.Store.IsOperator(ctx, channel.SetBy)
		if err != nil {
			return err
		}
		operators[channel.SetBy] = is
	}
	l.channels = slices.DeleteFunc(l.channels, func(channel tenants.AlertChannel) bool { return !operators[channel.SetBy] })
	if len(l.channels) == 0 {
		return nil
	}
	var alerts []tenants.Alert
	for _, check := range l.service.config.Health(ctx) {
		if !check.OK {
			alerts = append(alerts, tenants.Alert{Subject: check.Name, Path: pathOperator, Title: check.Name + ": " + check.Text, Text: check.Means})
		}
	}
	return l.goesOn(ctx, alerts)
}
