package alerts

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"palimpsest/tenants"
)

// message is an alert for people, with the name of the workspace and a link.
type message struct {
	delivery  tenants.AlertDelivery
	workspace tenants.WorkspaceID
	name      string // of the workspace
	link      string
}

// webhook returns the body of a webhook, with the members that Standard Webhooks recommends.
func (m message) webhook() ([]byte, error) {
	type workspace struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	type data struct {
		Workspace workspace `json:"workspace"`
		Subject   string    `json:"subject,omitempty"`
		Title     string    `json:"title"`
		Text      string    `json:"text"`
		URL       string    `json:"url"`
	}
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
		Data      data   `json:"data"`
	}{
		"alert." + string(m.delivery.Rule), m.delivery.CreatedAt.UTC().Format(time.RFC3339Nano),
		data{workspace{m.workspace.String(), m.name}, m.delivery.Subject, m.delivery.Title, m.delivery.Text, m.link},
	})
	if err != nil {
		return nil, fmt.Errorf("write webhook: %w", err)
	}
	return body, nil
}

// slack returns the body of a message to Slack, or to a service with the same format.
func (m message) slack() ([]byte, error) {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	text := fmt.Sprintf("*%s*\n%s\n<%s|Open in Palimpsest> · %s", strings.ReplaceAll(escape(m.delivery.Title), "*", "∗"),
		escape(m.delivery.Text), m.link, escape(m.name))
	body, err := json.Marshal(struct {
		Text string `json:"text"`
	}{text})
	if err != nil {
		return nil, fmt.Errorf("write message to Slack: %w", err)
	}
	return body, nil
}

// mail returns a mail to an address.
func (m message) mail(to string) tenants.Mail {
	return tenants.Mail{
		To: to, Subject: "[" + m.name + "] " + m.delivery.Title,
		Text: m.delivery.Title + "\n\n" + m.delivery.Text + "\n\n" + m.link + "\n\nYou get this mail because an alert channel of the workspace " + m.name +
			" has your address. Change it under Settings, Alerts.\n",
	}
}

// maxNamed bounds the characters of a name in an alert.
const maxNamed = 60

// named returns a name chosen by people in a form for one line of an alert.
func named(name string) string {
	shown := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	if runes := []rune(shown); len(runes) > maxNamed {
		return string(runes[:maxNamed-1]) + "…"
	}
	return shown
}
