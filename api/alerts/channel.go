package alerts

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

// place is the sealed part of a channel: the address of its webhooks and their signing secret.
type place struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"` // whsec_…; "" for Slack
}

// Add stores a new channel. It returns the signing secret of its webhooks, which can't be read again; "" for
// other kinds. Errors that a person can correct are a tenants.Invalid.
func (s *Service) Add(ctx context.Context, who tenants.Principal, wanted tenants.WantedAlertChannel) (tenants.AlertChannel, string, error) {
	channel := tenants.AlertChannel{ID: uuid.Must(uuid.NewV7()), Kind: wanted.Kind, CreatedAt: s.config.Now()}
	secret := ""
	if wanted.Kind == tenants.AlertWebhook {
		secret = newSecret()
	}
	channel, err := s.set(ctx, who, channel, wanted, secret)
	if err != nil {
		return tenants.AlertChannel{}, "", err
	}
	return channel, secret, s.config.Store.AddAlertChannel(ctx, who.Workspace.ID, channel)
}

// Change updates a channel, except its kind and its secret. It returns tenants.ErrNotFound, or a
// tenants.Invalid.
func (s *Service) Change(ctx context.Context, who tenants.Principal, id uuid.UUID, wanted tenants.WantedAlertChannel) error {
	return s.config.Store.ChangeAlertChannel(ctx, who.Workspace.ID, id, func(before tenants.AlertChannel) (tenants.AlertChannel, error) {
		wanted.Kind = before.Kind
		opened, err := s.open(who.Workspace.ID, before)
		if err != nil {
			return tenants.AlertChannel{}, err
		}
		if wanted.URL == "" {
			wanted.URL = opened.URL
		}
		return s.set(ctx, who, before, wanted, opened.Secret)
	})
}

// Remove removes a channel with its deliveries, or returns tenants.ErrNotFound.
func (s *Service) Remove(ctx context.Context, who tenants.Principal, id uuid.UUID) error {
	return s.config.Store.RemoveAlertChannel(ctx, who.Workspace.ID, id)
}

// SaveSettings stores the workspace's alert settings, or returns a tenants.Invalid.
func (s *Service) SaveSettings(ctx context.Context, workspace tenants.WorkspaceID, settings tenants.AlertSettings) error {
	return s.config.Store.SaveAlertSettings(ctx, workspace, settings)
}

// set returns a channel with the wanted settings.
func (s *Service) set(ctx context.Context, who tenants.Principal, channel tenants.AlertChannel, wanted tenants.WantedAlertChannel, secret string) (tenants.AlertChannel, error) {
	wanted.Name, wanted.URL = strings.TrimSpace(wanted.Name), strings.TrimSpace(wanted.URL)
	if err := wanted.Validate(); err != nil {
		return tenants.AlertChannel{}, err
	}
	if slices.Contains(wanted.Rules, tenants.AlertInstallation) && !who.User.Operator {
		return tenants.AlertChannel{}, tenants.Invalid{Field: "rules", Message: "may have installation only if an operator of the installation chooses it"}
	}
	channel.Name, channel.Rules, channel.Disabled, channel.SetBy = wanted.Name, wanted.Rules, wanted.Disabled, who.User.ID
	if channel.Kind == tenants.AlertEmail {
		channel.User = wanted.User
		_, err := s.recipient(ctx, who.Workspace.ID, channel.User)
		return channel, err
	}
	host, err := s.checkURL(wanted.URL)
	if err != nil {
		return tenants.AlertChannel{}, err
	}
	channel.Place = host
	text, err := json.Marshal(place{URL: wanted.URL, Secret: secret}) //nolint:gosec // sealed below
	if err != nil {
		return tenants.AlertChannel{}, fmt.Errorf("write alert channel: %w", err)
	}
	channel.Sealed, err = s.config.Sealer.SealAbout(tenants.AboutAlertChannel(who.Workspace.ID, channel.ID), string(text))
	return channel, err
}

// recipient returns the verified address of a member, or a tenants.Invalid. Only members get mails, so that a
// workspace can't send mail to strangers.
func (s *Service) recipient(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID) (string, error) {
	members, err := s.config.Store.Members(ctx, workspace)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(members, func(member tenants.Member) bool { return member.User.ID == user })
	switch {
	case at < 0:
		return "", tenants.Invalid{Field: "user", Message: "must be a member of the workspace"}
	case s.config.HasMail && members[at].User.VerifiedAt == nil:
		return "", tenants.Invalid{Field: "user", Message: "has to verify their address first"}
	}
	return members[at].User.Email, nil
}

// checkURL returns the host of a valid webhook URL, or a tenants.Invalid.
func (s *Service) checkURL(raw string) (host string, err error) {
	invalid := func(message string) (string, error) { return "", tenants.Invalid{Field: "url", Message: message} }
	parsed, err := url.Parse(raw)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" || len(raw) > tenants.MaxAlertURL:
		return invalid("must be a URL such as https://example.com/hooks/palimpsest")
	case parsed.User != nil || strings.Contains(raw, "#"):
		return invalid("must not hold a user or a fragment")
	case s.config.Guard.AllowsPrivate():
		return parsed.Host, nil
	case upstream.IsPrivate(parsed):
		return invalid("leads to a private address, which this installation does not allow; who runs it can set PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS=true")
	case parsed.Scheme != "https":
		return invalid("must start with https://")
	}
	return parsed.Host, nil
}

// open returns the unsealed part of a channel.
func (s *Service) open(workspace tenants.WorkspaceID, channel tenants.AlertChannel) (place, error) {
	if channel.Kind == tenants.AlertEmail {
		return place{}, nil
	}
	text, _, err := s.config.Sealer.OpenAbout(tenants.AboutAlertChannel(workspace, channel.ID), channel.Sealed)
	if err != nil {
		return place{}, fmt.Errorf("open alert channel %s: %w", channel.ID, err)
	}
	var opened place
	if err := json.Unmarshal([]byte(text), &opened); err != nil {
		return place{}, fmt.Errorf("read alert channel %s: %w", channel.ID, err)
	}
	return opened, nil
}

const (
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// newSecret returns a secret that signs webhooks.
func newSecret() string {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}
