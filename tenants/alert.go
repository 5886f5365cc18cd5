package tenants

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// AlertRule names what people are alerted to.
type AlertRule string

// The rules of alerts.
const (
	AlertBudget       AlertRule = "budget"       // a key, a member, a project or the workspace has used 50, 80 or 100 % of a budget
	AlertProviderKey  AlertRule = "provider_key" // a provider refuses a stored key
	AlertErrorRate    AlertRule = "error_rate"   // many requests fail
	AlertCompaction   AlertRule = "compaction"   // compaction has cost more than it saved
	AlertAccess       AlertRule = "access"       // a new member, API key or provider key
	AlertInstallation AlertRule = "installation" // a part of the installation fails or is late; operators only

	// AlertTest is the rule of a test, which no channel subscribes to.
	AlertTest AlertRule = "test"
)

// AlertRules returns the rules that a channel can subscribe to.
func AlertRules() []AlertRule {
	return []AlertRule{AlertBudget, AlertProviderKey, AlertErrorRate, AlertCompaction, AlertAccess, AlertInstallation}
}

// AlertKind says how a channel takes alerts.
type AlertKind string

// The kinds of channels.
const (
	AlertWebhook AlertKind = "webhook" // signed as Standard Webhooks have it
	AlertSlack   AlertKind = "slack"   // as Slack's incoming webhooks take messages
	AlertEmail   AlertKind = "email"   // to a member of the workspace
)

// The bounds of alerts.
const (
	MaxAlertChannels = 20   // of a workspace
	MaxAlertName     = 60   // characters of a channel's name
	MaxAlertURL      = 2000 // bytes of a webhook's URL
)

// AlertChannel is where alerts of a workspace go.
type AlertChannel struct {
	ID        uuid.UUID
	Kind      AlertKind
	Name      string
	Place     string    // host of the webhook; "" for mails
	User      uuid.UUID // the member who gets the mails; uuid.Nil for webhooks
	Sealed    []byte    // URL and signing secret, see AboutAlertChannel; nil for mails
	Rules     []AlertRule
	Disabled  bool
	SetBy     uuid.UUID // who chose the rules last
	CreatedAt time.Time
}

// Takes reports whether the channel subscribes to a rule and is on.
func (c AlertChannel) Takes(rule AlertRule) bool {
	return !c.Disabled && slices.Contains(c.Rules, rule)
}

// Fields returns what the audit log shows of the channel.
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

// WantedAlertChannel is what a person sets a channel to.
type WantedAlertChannel struct {
	Kind     AlertKind // cannot be changed later
	Name     string
	URL      string    // of a webhook; "" keeps the one that is stored
	User     uuid.UUID // who gets the mails
	Rules    []AlertRule
	Disabled bool
}

// Validate returns an Invalid for what no channel can be set to. The URL is not looked at.
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

// JoinAlertRules returns rules as they are stored: separated by commas.
func JoinAlertRules(rules []AlertRule) string {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i] = string(rule)
	}
	return strings.Join(names, ",")
}

// SplitAlertRules reads what JoinAlertRules wrote.
func SplitAlertRules(text string) []AlertRule {
	var rules []AlertRule
	for name := range strings.SplitSeq(text, ",") {
		if name != "" {
			rules = append(rules, AlertRule(name))
		}
	}
	return rules
}

// AboutAlertChannel is what the URL and the signing secret of a channel are sealed for.
func AboutAlertChannel(workspace WorkspaceID, channel uuid.UUID) string {
	return "alert channel of ws:" + workspace.String() + "|id:" + channel.String()
}

// Alert is one thing that people are told. It holds no secret and nothing of what was
// said in sessions.
type Alert struct {
	Rule    AlertRule
	Subject string // what it is about: a key's id, a part of the installation; "" for the workspace
	Period  string // people are alerted once in it; "" to alert again after AlertAgain
	Title   string // one line
	Text    string
	Path    string // of the page that shows more
}

const (
	// AlertAgain is how long people are not alerted again to what goes on.
	AlertAgain = 24 * time.Hour
	// AlertCalm is how long after an alert what was fine in between may cause another one.
	AlertCalm = time.Hour
)

// DeliveryState says what has become of a delivery.
type DeliveryState string

// The states of deliveries.
const (
	DeliveryWaiting   DeliveryState = "waiting"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed"
)

// AlertDelivery is an alert on its way to one channel, and what became of it.
type AlertDelivery struct {
	Alert

	ID        uuid.UUID // version 7; receivers tell repeats by it
	Channel   uuid.UUID
	CreatedAt time.Time
	NextAt    time.Time // not tried before
	Until     time.Time // not tried after
	State     DeliveryState
	Attempts  int
	TriedAt   time.Time // zero if it was not tried yet
	Status    int       // HTTP status of the newest answer; 0 if there was none
	Answer    string    // the beginning of it, without secrets; or what went wrong
}

// AlertAttempt is what came of trying to deliver an alert.
type AlertAttempt struct {
	At     time.Time
	State  DeliveryState
	NextAt time.Time // of another attempt, if it waits
	Status int
	Answer string
}

// Alerting is all that a workspace has set of alerts, with the newest deliveries first.
type Alerting struct {
	Settings   AlertSettings
	Channels   []AlertChannel
	Deliveries []AlertDelivery
	Members    []Member // who can get mails
	HasMail    bool     // a mail server is set
}

// Alerts keeps channels and sends alerts to them. What a person can mend is an Invalid;
// a channel or a delivery that the workspace does not have is ErrNotFound.
type Alerts interface {
	// Find returns what the workspace has set of alerts, with its newest deliveries.
	Find(ctx context.Context, workspace WorkspaceID) (Alerting, error)

	// Add returns the secret that signs webhooks, which is shown this once; "" if nothing is signed.
	Add(ctx context.Context, who Principal, wanted WantedAlertChannel) (AlertChannel, string, error)
	Change(ctx context.Context, who Principal, id uuid.UUID, wanted WantedAlertChannel) error
	Remove(ctx context.Context, who Principal, id uuid.UUID) error

	// SaveSettings returns an Invalid for what cannot be set.
	SaveSettings(ctx context.Context, workspace WorkspaceID, settings AlertSettings) error

	// Deliveries returns up to limit deliveries, the newest first.
	Deliveries(ctx context.Context, workspace WorkspaceID, limit int) ([]AlertDelivery, error)

	// Test sends a test now. A receiver that does not take it is an answer.
	Test(ctx context.Context, who Principal, id uuid.UUID) (AlertDelivery, error)
	Retry(ctx context.Context, who Principal, id uuid.UUID) error
}
