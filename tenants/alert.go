package tenants

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// AlertRule names a kind of alert.
type AlertRule string

// The rules of alerts.
const (
	AlertBudget       AlertRule = "budget"       // a key, a member, a project or the workspace has used 50, 80 or 100 % of a budget
	AlertProviderKey  AlertRule = "provider_key" // a provider refuses a stored key
	AlertSpendJump    AlertRule = "spend_jump"   // a day costs much more than usual
	AlertErrorRate    AlertRule = "error_rate"   // many requests fail
	AlertSlow         AlertRule = "slow"         // a model's answers take long
	AlertHeldUp       AlertRule = "held_up"      // many prompts stay above their target
	AlertCompaction   AlertRule = "compaction"   // compaction has cost more than it saved
	AlertAccess       AlertRule = "access"       // a new member, API key or provider key
	AlertInstallation AlertRule = "installation" // a part of the installation fails or is late; operators only

	// AlertTest is the rule of a test. Channels cannot subscribe to it.
	AlertTest AlertRule = "test"
)

// AlertRules returns the rules that a channel can subscribe to.
func AlertRules() []AlertRule {
	return []AlertRule{AlertBudget, AlertSpendJump, AlertProviderKey, AlertErrorRate, AlertSlow, AlertHeldUp, AlertCompaction, AlertAccess, AlertInstallation}
}

// AlertKind is the transport of a channel.
type AlertKind string

// The kinds of channels.
const (
	AlertWebhook AlertKind = "webhook" // signed according to Standard Webhooks
	AlertSlack   AlertKind = "slack"   // Slack's incoming webhook format
	AlertEmail   AlertKind = "email"   // to a member of the workspace
)

// The bounds of alerts.
const (
	MaxAlertChannels = 20   // of a workspace
	MaxAlertName     = 60   // characters of a channel's name
	MaxAlertURL      = 2000 // bytes of a webhook's URL
)

// AlertChannel is a destination of a workspace's alerts.
type AlertChannel struct {
	ID        uuid.UUID
	Kind      AlertKind
	Name      string
	Place     string      // host of the webhook; "" for mails
	User      uuid.UUID   `gorm:"column:user_id;serializer:null"` // the member who gets the mails; uuid.Nil for webhooks
	Sealed    []byte      // URL and signing secret, see AboutAlertChannel; nil for mails
	Rules     []AlertRule `gorm:"serializer:list"`
	Disabled  bool
	SetBy     uuid.UUID `gorm:"serializer:null"` // who chose the rules last
	CreatedAt time.Time
}

// Takes reports whether the channel is enabled and subscribes to a rule.
func (c AlertChannel) Takes(rule AlertRule) bool {
	return !c.Disabled && slices.Contains(c.Rules, rule)
}

// Fields returns the channel's fields for the audit log.
func (c AlertChannel) Fields() Fields {
	fields := Fields{"name": c.Name, "kind": string(c.Kind), "rules": JoinAlertRules(c.Rules)}
	if c.Place != "" {
		fields["place"] = c.Place
	}
	if c.User != uuid.Nil {
		fields["user"] = c.User.String()
	}
	if c.Disabled {
		fields["disabled"] = "yes"
	}
	return fields
}

// WantedAlertChannel is the requested configuration of a channel.
type WantedAlertChannel struct {
	Kind     AlertKind // cannot be changed later
	Name     string
	URL      string    // of a webhook; "" keeps the stored one
	User     uuid.UUID // who gets the mails
	Rules    []AlertRule
	Disabled bool
}

// Validate returns an Invalid for an invalid channel. It does not check the URL.
func (w WantedAlertChannel) Validate() error {
	if _, err := CheckName("name", w.Name, MaxAlertName); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]AlertKind{AlertWebhook, AlertSlack, AlertEmail}, w.Kind):
		return Invalid{Field: "kind", Message: "must be webhook, slack or email"}
	case len(w.Rules) == 0:
		return Invalid{Field: "rules", Message: "must have at least one entry"}
	}
	for _, rule := range w.Rules {
		if !slices.Contains(AlertRules(), rule) {
			return Invalid{Field: "rules", Message: "must be some of " + JoinAlertRules(AlertRules())}
		}
	}
	return nil
}

// JoinAlertRules joins rules with commas.
func JoinAlertRules(rules []AlertRule) string {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i] = string(rule)
	}
	return strings.Join(names, ",")
}

// AboutAlertChannel returns the context to which a channel's URL and signing secret are sealed.
func AboutAlertChannel(workspace WorkspaceID, channel uuid.UUID) string {
	return "alert channel of ws:" + workspace.String() + "|id:" + channel.String()
}

// Alert is one notification. It contains no secrets and no session text.
type Alert struct {
	Rule    AlertRule
	Subject string // the subject: a key's id, a part of the installation; "" for the workspace
	Period  string `gorm:"-"` // people are alerted once in it; "" to alert again after AlertAgain
	Title   string // one line
	Text    string `gorm:"column:body"`
	Path    string // of the page that shows more
}

// HeldUp counts requests whose prompt was compressed or should have been.
type HeldUp struct {
	Concerned int64 // all of them
	Held      int64 // sent above their target
	Unstored  int64 // part of Held: the originals were not stored, or compression failed
}

const (
	// AlertAgain is the pause before an ongoing problem causes another alert.
	AlertAgain = 24 * time.Hour
	// AlertCalm is the pause before a problem that had ended may cause another alert.
	AlertCalm = time.Hour
)

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of deliveries.
const (
	DeliveryWaiting   DeliveryState = "waiting"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed"
)

// AlertDelivery is an alert for one channel, and its outcome.
type AlertDelivery struct {
	Alert

	ID        uuid.UUID // version 7; receivers detect repeats by it
	Channel   uuid.UUID `gorm:"column:channel_id"`
	CreatedAt time.Time
	NextAt    time.Time // not tried before
	Until     time.Time // not tried after
	State     DeliveryState
	Attempts  int
	TriedAt   time.Time `gorm:"serializer:null"` // zero if it was not tried yet
	Status    int       // HTTP status of the newest answer; 0 without an answer
	Answer    string    // its beginning, without secrets; or the error
}

// AlertAttempt is the outcome of one delivery attempt.
type AlertAttempt struct {
	At     time.Time
	State  DeliveryState
	NextAt time.Time // of another attempt, if it waits
	Status int
	Answer string
}

// Alerting is a workspace's alert configuration, with the newest deliveries first.
type Alerting struct {
	Settings   AlertSettings
	Channels   []AlertChannel
	Deliveries []AlertDelivery
	Members    []Member // who can get mails
	HasMail    bool     // a mail server is set
}

// Alerts stores channels and sends alerts to them. Bad input is an Invalid; an unknown channel or delivery is
// ErrNotFound.
type Alerts interface {
	// Find returns the workspace's alert configuration with its newest deliveries.
	Find(ctx context.Context, workspace WorkspaceID) (Alerting, error)

	// Add returns the secret that signs webhooks, which is shown only once; "" if the channel has no
	// signature.
	Add(ctx context.Context, who Principal, wanted WantedAlertChannel) (AlertChannel, string, error)
	Change(ctx context.Context, who Principal, id uuid.UUID, wanted WantedAlertChannel) error
	Remove(ctx context.Context, who Principal, id uuid.UUID) error

	// SaveSettings returns an Invalid for invalid settings.
	SaveSettings(ctx context.Context, workspace WorkspaceID, settings AlertSettings) error

	// Deliveries returns up to limit deliveries, the newest first.
	Deliveries(ctx context.Context, workspace WorkspaceID, limit int) ([]AlertDelivery, error)

	// Test sends a test now. A failed delivery is a result, not an error.
	Test(ctx context.Context, who Principal, id uuid.UUID) (AlertDelivery, error)
	Retry(ctx context.Context, who Principal, id uuid.UUID) error
}

const minutesOfDay = 24 * 60

// AlertSettings are a workspace's quiet hours and alert thresholds.
type AlertSettings struct {
	QuietFrom    int    // minutes after midnight from which alerts wait
	QuietTo      int    // end of the quiet hours; equal to QuietFrom for none
	TimeZone     string // time zone of both, from the IANA time zone database
	ErrorPercent int    // share of failing requests that causes an alert
	SpendPercent int    // a day's spend that causes an alert, as a share of a usual day's
	SlowSeconds  int    // time of the slowest 5 % of a model's answers that causes an alert
	HeldPercent  int    // share of prompts above their target that causes an alert
}

// DefaultAlertSettings are the settings of a workspace that has not set its own: no quiet hours.
func DefaultAlertSettings() AlertSettings {
	return AlertSettings{TimeZone: "UTC", ErrorPercent: 25, SpendPercent: 300, SlowSeconds: 120, HeldPercent: 25}
}

// Validate returns an Invalid for invalid settings.
func (s AlertSettings) Validate() error {
	for _, field := range []struct {
		name  string
		value int
	}{{"quiet_from", s.QuietFrom}, {"quiet_to", s.QuietTo}} {
		if field.value < 0 || field.value >= minutesOfDay {
			return Invalid{Field: field.name, Message: "must be a time of day from 00:00 to 23:59"}
		}
	}
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "" || s.TimeZone == "Local" {
		return Invalid{Field: "time_zone", Message: "is not a time zone such as Europe/Berlin or UTC"}
	}
	for _, field := range []struct {
		name             string
		value, low, high int
	}{{"error_percent", s.ErrorPercent, 1, 100}, {"spend_percent", s.SpendPercent, 110, 10_000}, {"slow_seconds", s.SlowSeconds, 1, 3600}, {"held_percent", s.HeldPercent, 1, 100}} {
		if field.value < field.low || field.value > field.high {
			return Invalid{Field: field.name, Message: fmt.Sprintf("must be a whole number from %d to %d", field.low, field.high)}
		}
	}
	return nil
}

// Due returns when to send an alert of a time: at once, or at the end of the quiet hours.
func (s AlertSettings) Due(at time.Time) time.Time {
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil || s.QuietFrom == s.QuietTo || !s.isQuiet(at.In(zone)) {
		return at
	}
	// Minute by minute, since a day may have 23 or 25 hours and a time of day may come twice.
	end := at.Truncate(time.Minute)
	for s.isQuiet(end.In(zone)) {
		end = end.Add(time.Minute)
	}
	return end
}

func (s AlertSettings) isQuiet(local time.Time) bool {
	minute := local.Hour()*60 + local.Minute()
	if s.QuietFrom < s.QuietTo {
		return minute >= s.QuietFrom && minute < s.QuietTo
	}
	return minute >= s.QuietFrom || minute < s.QuietTo
}

// Fields returns the settings' fields for the audit log.
func (s AlertSettings) Fields() Fields {
	quiet := "none"
	if s.QuietFrom != s.QuietTo {
		quiet = ClockTime(s.QuietFrom) + " to " + ClockTime(s.QuietTo)
	}
	return Fields{
		"quiet_hours": quiet, "time_zone": s.TimeZone, "error_percent": strconv.Itoa(s.ErrorPercent),
		"spend_percent": strconv.Itoa(s.SpendPercent), "slow_seconds": strconv.Itoa(s.SlowSeconds), "held_percent": strconv.Itoa(s.HeldPercent),
	}
}

// ClockTime formats minutes after midnight as a time of day, such as 22:30.
func ClockTime(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// ParseClockTime parses a time of day such as 22:30 to minutes after midnight, or returns -1.
func ParseClockTime(text string) int {
	at, err := time.Parse("15:04", strings.TrimSpace(text))
	if err != nil {
		return -1
	}
	return at.Hour()*60 + at.Minute()
}
