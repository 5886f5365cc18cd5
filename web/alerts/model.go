package alerts

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/render"
)

type model struct {
	tenants.Alerting

	Who  tenants.Principal
	Now  time.Time
	Done string

	Refused bool // a test was not delivered

	Created, Secret string // a newly added channel and the secret that signs its webhooks

	From, To, Zone             components.FieldModel
	Percent, Spend, Slow, Held components.FieldModel // thresholds

	Form *formModel // of a channel, or nil
}

func newModel(found tenants.Alerting, who tenants.Principal, now time.Time) model {
	m := model{Alerting: found, Who: who, Now: now}
	set := found.Settings
	typed := typedSettings{Zone: set.TimeZone, Percent: strconv.Itoa(set.ErrorPercent), Spend: strconv.Itoa(set.SpendPercent), Slow: strconv.Itoa(set.SlowSeconds), Held: strconv.Itoa(set.HeldPercent)}
	if set.QuietFrom != set.QuietTo {
		typed.From, typed.To = tenants.ClockTime(set.QuietFrom), tenants.ClockTime(set.QuietTo)
	}
	m.settings(typed, nil)
	return m
}

// settings fills the form of the settings with the input and its errors.
func (m *model) settings(typed typedSettings, err error) {
	m.From = components.FieldModel{Label: "Quiet from", Name: "quiet_from", Value: typed.From, Hint: "Leave both empty for no quiet hours."}
	m.To = components.FieldModel{Label: "Quiet until", Name: "quiet_to", Value: typed.To, Hint: "Alerts from quiet hours are sent when they end."}
	m.Zone = components.FieldModel{Label: "Time zone", Name: "time_zone", Value: typed.Zone, Hint: "Such as Europe/Berlin or UTC."}
	m.Percent = components.FieldModel{Label: "Failing requests, %", Name: "error_percent", Value: typed.Percent, Hint: "Counted over 5 minutes with at least 20 requests. A lower value alerts sooner."}
	m.Spend = components.FieldModel{Label: "Spend of a day, %", Name: "spend_percent", Value: typed.Spend, Hint: "Of a usual day: the average of the last 7 days, of those with requests. 300 means three times as much."}
	m.Slow = components.FieldModel{Label: "Slow answers, seconds", Name: "slow_seconds", Value: typed.Slow, Hint: "What 5 % of a model’s answers take or exceed, over 15 minutes with at least 20 answers."}
	m.Held = components.FieldModel{Label: "Prompts above their target, %", Name: "held_percent", Value: typed.Held, Hint: "Of the long prompts, over 15 minutes with at least 20 of them."}
	components.FieldErrors(err, &m.From, &m.To, &m.Zone, &m.Percent, &m.Spend, &m.Slow, &m.Held)
}

// channel returns a channel of the workspace, or tenants.ErrNotFound.
func (m *model) channel(id uuid.UUID) (tenants.AlertChannel, error) {
	at := slices.IndexFunc(m.Channels, func(channel tenants.AlertChannel) bool { return channel.ID == id })
	if at < 0 {
		return tenants.AlertChannel{}, tenants.ErrNotFound
	}
	return m.Channels[at], nil
}

// channelName returns the name of a delivery's channel.
func (m *model) channelName(delivery tenants.AlertDelivery) string {
	channel, _ := m.channel(delivery.Channel)
	return render.Visible(channel.Name)
}

// where returns a channel's destination.
func (m *model) where(channel tenants.AlertChannel) string {
	if channel.Kind != tenants.AlertEmail {
		return render.Visible(channel.Place)
	}
	for _, member := range m.Members {
		if member.User.ID == channel.User {
			return member.User.Email
		}
	}
	return "no longer a member"
}

// formModel is a channel's form.
type formModel struct {
	ID       uuid.UUID // uuid.Nil for a new one
	Kind     tenants.AlertKind
	Name     components.FieldModel
	URL      components.FieldModel
	User     components.FieldModel
	People   []components.Option
	Rules    []ruleModel
	RulesErr string
	On       bool
	Error    string
}

// ruleModel is a rule that a channel can subscribe to.
type ruleModel struct {
	Rule        tenants.AlertRule
	Label, Hint string
	On          bool
}

func newForm(m *model, id uuid.UUID, wanted tenants.WantedAlertChannel, err error) *formModel {
	form := &formModel{ID: id, Kind: wanted.Kind, On: !wanted.Disabled, People: []components.Option{}}
	form.Name = components.FieldModel{Label: "Name", Name: "name", Value: wanted.Name}
	form.URL = components.FieldModel{Label: "URL", Name: "url", Value: wanted.URL, Hint: "Stored encrypted. Alerts are sent there with POST."}
	if id != uuid.Nil {
		form.URL.Hint = "Leave it empty to keep the stored one."
	}
	user := ""
	if wanted.User != uuid.Nil {
		user = wanted.User.String()
	}
	form.User = components.FieldModel{Label: "Send to", Name: "user", Value: cmp.Or(user, m.Who.User.ID.String()), Hint: "Only members who have verified their address get alerts."}
	for _, member := range m.Members {
		form.People = append(form.People, components.Option{Value: member.User.ID.String(), Label: member.User.Email})
	}
	for _, rule := range tenants.AlertRules() {
		if rule == tenants.AlertInstallation && !m.Who.User.Operator {
			continue
		}
		words := ruleWords()[rule]
		form.Rules = append(form.Rules, ruleModel{Rule: rule, Label: words[0], Hint: words[1], On: slices.Contains(wanted.Rules, rule)})
	}
	components.FieldErrors(err, &form.Name, &form.URL, &form.User)
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		switch invalid.Field {
		case "rules":
			form.RulesErr = components.FieldError("Rules", invalid.Message)
		case "kind":
			form.Error = components.FieldError("Kind", invalid.Message)
		}
	}
	return form
}

// title returns the heading of the form.
func (f *formModel) title() string {
	if f.ID != uuid.Nil {
		return "Change channel"
	}
	return map[tenants.AlertKind]string{
		tenants.AlertWebhook: "Add a webhook", tenants.AlertSlack: "Add a Slack channel", tenants.AlertEmail: "Add an e-mail address",
	}[f.Kind]
}

// usualRules are the default rules of a new channel: all except the operators'.
func usualRules() []tenants.AlertRule {
	return slices.DeleteFunc(tenants.AlertRules(), func(rule tenants.AlertRule) bool { return rule == tenants.AlertInstallation })
}

// ruleWords describes each rule and its condition.
func ruleWords() map[tenants.AlertRule][2]string {
	return map[tenants.AlertRule][2]string{
		tenants.AlertBudget:       {"Budgets", "Of API keys, members, projects and the workspace: at 50, 80 and 100 % of a day or month."},
		tenants.AlertProviderKey:  {"Provider key rejected", "A provider answers 401 or 403 to a stored key."},
		tenants.AlertSpendJump:    {"Spend jumps", "Today costs more than the share of a usual day set on this page."},
		tenants.AlertErrorRate:    {"Requests fail", "When more fail than the share set on this page."},
		tenants.AlertSlow:         {"Answers are slow", "A model takes longer than the time set on this page."},
		tenants.AlertHeldUp:       {"Compression is held up", "Long prompts stay above their target, or their originals can’t be stored."},
		tenants.AlertCompaction:   {"Compaction costs more than it saves", "Over 24 hours."},
		tenants.AlertAccess:       {"New member or key", "Also new provider keys."},
		tenants.AlertInstallation: {"Problems of the installation", "The database, the archive or its jobs fail or are late. For operators only."},
	}
}

// rulesText names the rules of a channel.
func rulesText(rules []tenants.AlertRule) string {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i] = ruleWords()[rule][0]
	}
	return strings.Join(names, " · ")
}

// kindNames are the display names of the kinds of channels.
func kindNames() map[tenants.AlertKind]string {
	return map[tenants.AlertKind]string{tenants.AlertWebhook: "webhook", tenants.AlertSlack: "Slack", tenants.AlertEmail: "e-mail"}
}

// stateTag returns a state's color.
func stateTag(state tenants.DeliveryState) string {
	return map[tenants.DeliveryState]string{tenants.DeliveryDelivered: "ok", tenants.DeliveryFailed: "bad", tenants.DeliveryWaiting: "warn"}[state]
}

// answerText returns the receiver's answer.
func answerText(delivery tenants.AlertDelivery) string {
	text := render.Visible(delivery.Answer)
	if delivery.Status != 0 {
		text = strings.TrimSpace(strconv.Itoa(delivery.Status) + " " + text)
	}
	if delivery.Attempts == 0 {
		return "not tried yet"
	}
	return text
}

func doneText(what string) string {
	return map[string]string{
		"saved": "The settings are saved.", "added": "The channel is added. Send a test now.", "changed": "The channel is saved.",
		"removed": "The channel and its deliveries are removed.", "tested": "The test was delivered.",
		"retried": "The alert is sent again within a few seconds.",
	}[what]
}
