package alerts

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/excerpts"
	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

const (
	maxAnswer = 4 << 10 // bytes read of an answer
	maxShown  = 300     // characters kept of it
)

// outcome is the result of one attempt to send an alert.
type outcome struct {
	ok     bool
	final  bool // another try is useless
	status int
	answer string
}

// send sends an alert to its channel once. An error is our own: the receiver has not been contacted.
func (s *Service) send(ctx context.Context, workspace tenants.WorkspaceID, delivery tenants.AlertDelivery, channel tenants.AlertChannel) (outcome, error) {
	name, err := s.config.Store.WorkspaceName(ctx, workspace)
	if err != nil {
		return outcome{}, err
	}
	m := message{delivery: delivery, workspace: workspace, name: named(name), link: s.config.PublicURL + delivery.Path}
	if channel.Kind == tenants.AlertEmail {
		return s.sendMail(ctx, workspace, m, channel)
	}
	opened, err := s.open(workspace, channel)
	if err != nil {
		return outcome{}, err
	}
	write := m.webhook
	if channel.Kind == tenants.AlertSlack {
		write = m.slack
	}
	body, err := write()
	if err != nil {
		return outcome{}, err
	}
	return s.post(ctx, opened, delivery.ID.String(), body)
}

func (s *Service) sendMail(ctx context.Context, workspace tenants.WorkspaceID, m message, channel tenants.AlertChannel) (outcome, error) {
	address, err := s.recipient(ctx, workspace, channel.User)
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		return outcome{final: true, answer: "Not sent: the recipient " + invalid.Message + "."}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Patience)
	defer cancel()
	if err := s.config.Mailer.Send(ctx, m.delivery.ID, m.mail(address)); err != nil {
		s.config.Log.WarnContext(ctx, "mail server did not take an alert", "workspace", workspace, "delivery", m.delivery.ID, "error", err)
		return outcome{answer: "The mail server did not take the mail."}, nil
	}
	if !s.config.HasMail {
		return outcome{ok: true, answer: "Kept, not sent: no mail server is set."}, nil
	}
	return outcome{ok: true, answer: "The mail server took the mail."}, nil
}

// post sends a webhook, signed if there is a secret, and reads the beginning of the answer.
func (s *Service) post(ctx context.Context, to place, id string, body []byte) (outcome, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return outcome{}, errors.New("URL of webhook is not valid") // the error would show it
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Palimpsest-Alerts")
	if to.Secret != "" {
		if err := sign(request.Header, to.Secret, id, s.config.Now(), body); err != nil {
			return outcome{}, err
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return s.unanswered(err), nil
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // the status counts
	result := outcome{
		ok: response.StatusCode >= 200 && response.StatusCode < 300, final: response.StatusCode == http.StatusGone,
		status: response.StatusCode, answer: shown(string(text), to),
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		result.answer = "The receiver redirects. Redirects are not followed: enter the address where it leads."
	}
	return result, nil
}

// unanswered explains a missing answer, without the URL and details of our own network.
func (s *Service) unanswered(err error) outcome {
	var dns *net.DNSError
	var failed *url.Error
	switch {
	case upstream.IsForbidden(err):
		return outcome{final: true, answer: "Not sent: the host leads to a private address, or to another that is not allowed."}
	case errors.As(err, &failed) && failed.Timeout():
		return outcome{answer: "No answer within " + s.config.Patience.String() + "."}
	case errors.As(err, &dns):
		return outcome{answer: "The host was not found."}
	case strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "x509:"):
		return outcome{answer: "The host's certificate was not accepted."}
	}
	return outcome{answer: "The host could not be reached."}
}

// shown returns an answer for storage: one line, shortened, without secrets and without the parts of the URL
// that may be one.
func shown(text string, to place) string {
	hide := []string{to.URL}
	if to.Secret != "" {
		hide = append(hide, to.Secret, strings.TrimPrefix(to.Secret, secretPrefix))
	}
	if parsed, err := url.Parse(to.URL); err == nil {
		for _, part := range append(strings.Split(parsed.Path, "/"), parsed.RawQuery) {
			if len(part) >= 8 {
				hide = append(hide, part)
			}
		}
	}
	for _, part := range hide {
		text = strings.ReplaceAll(text, part, redaction.Redacted)
	}
	text = string(redaction.Members([]byte(redaction.Text(text))))
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	return excerpts.Start(text, maxShown)
}

// sign adds the signature headers of Standard Webhooks 1.0.0, by which a receiver verifies the sender and the
// time of a webhook.
func sign(header http.Header, secret, id string, at time.Time, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return fmt.Errorf("secret of webhook: %w", err)
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	sum := hmac.New(sha256.New, key)
	fmt.Fprintf(sum, "%s.%s.%s", id, timestamp, body)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	return nil
}

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
	return excerpts.Start(shown, maxNamed)
}
