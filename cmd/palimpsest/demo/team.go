package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"palimpsest/tenants"
)

// The keys of the demo's people.
const (
	keyMira    = "mira-laptop"
	keyAiko    = "aiko-laptop"
	keyTom     = "tom-workstation"
	keyNoor    = "noor-laptop"
	keyRavi    = "ravi-laptop"
	keyAgents  = "ci-agents"
	keyCursor  = "cursor-team"
	keySupport = "support-bot"
	keyIntern  = "summer-intern"
	keyTrial   = "trial-week"
)

const day = 24 * time.Hour

// team holds the people of the demo and their keys.
type team struct {
	workspace tenants.WorkspaceID
	owner     *person
	members   map[string]*person // by the first part of the address
	keys      map[string]apiKey
	providers map[string]string // ids by name
}

// apiKey is a person's API key.
type apiKey struct{ id, secret string }

// hire creates the workspace, its people and their first keys and settings.
func (f *filling) hire(ctx context.Context) error {
	if err := f.at(ctx, f.first().Add(-2*time.Hour)); err != nil {
		return err
	}
	owner, err := newPerson(f.URL, "mira@example.com")
	if err != nil {
		return err
	}
	f.team = &team{owner: owner, members: map[string]*person{"mira": owner}, keys: map[string]apiKey{}, providers: map[string]string{}}
	signUp := map[string]string{"email": owner.email, "password": Password, "workspace": "Northbeam"}
	if err := owner.Call(ctx, http.MethodPost, "/signup", signUp, nil); err != nil {
		return err
	}
	if f.team.workspace, err = f.Verify(ctx, owner.email); err != nil {
		return err
	}
	for _, provider := range []providerKeyOf{
		{"anthropic", "anthropic-prod", providerKey, nil},
		{"openai", "openai-prod", providerKey, nil},
		{"openai", "openai-batch", batchKey, []string{batchModel}},
	} {
		if err := f.store(ctx, provider); err != nil {
			return err
		}
	}
	if err := owner.Call(ctx, http.MethodPut, "/settings", map[string]string{"time_zone": "Europe/Berlin", "viewers_read": "none"}, nil); err != nil {
		return err
	}
	budgets := map[string]any{"budgets": []map[string]any{{"kind": "workspace", "budget_month_usd": monthBudget}}}
	if err := owner.Call(ctx, http.MethodPut, "/budgets", budgets, nil); err != nil {
		return err
	}
	// Limit prompts to the team's own choice, below the models' windows.
	for _, model := range []string{"claude-opus-4-5", "claude-sonnet-4-5", "gpt-5.1", "gpt-5.1-codex"} {
		if err := owner.Call(ctx, http.MethodPut, "/models/windows/"+model, map[string]int{"window_tokens": 120_000}, nil); err != nil {
			return err
		}
	}
	if err := f.invite(ctx); err != nil {
		return err
	}
	return f.makeKeys(ctx)
}

// monthBudget is what the team allows itself in a month, in US dollars.
const monthBudget = 3000

// batchModel is the model that the second key of OpenAI is for.
const batchModel = "gpt-4.1-mini"

// providerKeyOf is one of the team's provider keys.
type providerKeyOf struct {
	provider, name, secret string
	models                 []string
}

func (f *filling) store(ctx context.Context, wanted providerKeyOf) error {
	question := struct {
		Provider string   `json:"provider"`
		Name     string   `json:"name"`
		Key      string   `json:"key"`
		BaseURL  string   `json:"base_url"`
		Models   []string `json:"models,omitempty"`
		Default  bool     `json:"default"`
	}{wanted.provider, wanted.name, wanted.secret, f.ProviderURL, wanted.models, wanted.models == nil}
	var stored struct {
		ID string `json:"id"`
	}
	if err := f.team.owner.Call(ctx, http.MethodPost, "/provider-keys", question, &stored); err != nil {
		return err
	}
	f.team.providers[wanted.name] = stored.ID
	return f.team.owner.Call(ctx, http.MethodPost, "/provider-keys/"+stored.ID+"/test", nil, nil)
}

// invite invites the people, who sign up a little later.
func (f *filling) invite(ctx context.Context) error {
	for _, invited := range []struct{ name, role string }{
		{"jonas", "admin"}, {"aiko", "member"}, {"tom", "member"}, {"noor", "member"}, {"ravi", "member"}, {"sam", "viewer"}, {"dana", "billing"},
	} {
		person, err := newPerson(f.URL, invited.name+"@example.com")
		if err != nil {
			return err
		}
		f.Clock.Pass(4 * time.Minute)
		if err := f.at(ctx, f.Clock.Now()); err != nil {
			return err
		}
		link, err := f.team.ask(ctx, person.email, invited.role)
		if err != nil {
			return err
		}
		if err := f.Join(ctx, link, Password); err != nil {
			return fmt.Errorf("join %s: %w", person.email, err)
		}
		if _, err := f.Verify(ctx, person.email); err != nil {
			return err
		}
		if err := person.logIn(ctx); err != nil {
			return err
		}
		f.team.members[invited.name] = person
	}
	return nil
}

// ask invites someone and returns the link.
func (t *team) ask(ctx context.Context, email, role string) (link string, err error) {
	var invitation struct {
		Link string `json:"link"`
	}
	err = t.owner.Call(ctx, http.MethodPost, "/invitations", map[string]string{"email": email, "role": role}, &invitation)
	return invitation.Link, err
}

// keyOf is an API key that a person creates.
type keyOf struct {
	Name     string     `json:"name"`
	Scopes   []string   `json:"scopes"`
	Expires  *time.Time `json:"expires_at,omitempty"`
	Pipeline string     `json:"pipeline,omitempty"`
	Models   []string   `json:"allowed_models,omitempty"`
	Minute   int        `json:"requests_per_minute,omitempty"`
	AtOnce   int        `json:"concurrency,omitempty"`
	Day      float64    `json:"budget_day_usd,omitempty"`
	Month    float64    `json:"budget_month_usd,omitempty"`
	Unpriced bool       `json:"allow_unpriced,omitempty"`
}

func (f *filling) makeKeys(ctx context.Context) error {
	proxy := []string{"proxy"}
	for _, wanted := range []struct {
		by  string
		key keyOf
	}{
		{"mira", keyOf{Name: keyMira, Scopes: []string{"proxy", "recall"}}},
		{"aiko", keyOf{Name: keyAiko, Scopes: proxy}},
		{"tom", keyOf{Name: keyTom, Scopes: proxy}},
		{"noor", keyOf{Name: keyNoor, Scopes: proxy}},
		{"ravi", keyOf{Name: keyRavi, Scopes: proxy}},
		{"jonas", keyOf{Name: keyAgents, Scopes: proxy, Models: []string{"gpt-5*", "gpt-4.1*", "claude-*"}, Minute: 600, AtOnce: 8, Day: 40, Month: 600}},
		{"jonas", keyOf{Name: keyCursor, Scopes: proxy}},
		{"jonas", keyOf{Name: keySupport, Scopes: proxy, Pipeline: "modules: [semantic-cache]\nsemantic-cache:\n  embeddingModel: \"\"\n  ttlSeconds: 86400\n"}},
		{"jonas", keyOf{Name: keyIntern, Scopes: proxy, Day: 5}},
	} {
		if err := f.team.makeKey(ctx, wanted.by, wanted.key); err != nil {
			return err
		}
	}
	return nil
}

func (t *team) makeKey(ctx context.Context, by string, wanted keyOf) error {
	var created struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	if err := t.members[by].Call(ctx, http.MethodPost, "/keys", wanted, &created); err != nil {
		return err
	}
	t.keys[wanted.Name] = apiKey{created.ID, created.Secret}
	return nil
}
