package demo

import (
	"context"
	"net/http"
	"time"
)

// as logs a person in again and returns them, because logins do not last as long as the demo.
func (t *team) as(ctx context.Context, name string) (*person, error) {
	person := t.members[name]
	return person, person.logIn(ctx)
}

// change is a call of the JSON API that someone makes.
func (t *team) change(when time.Time, by, method, path string, question any) entry {
	return entry{when, func(ctx context.Context) error {
		person, err := t.as(ctx, by)
		if err != nil {
			return err
		}
		return person.Call(ctx, method, path, question, nil)
	}}
}

// modules are the workspace's from its first quarter on.
func modules(ipc map[string]any) map[string]any {
	return map[string]any{"modules": []string{"ipc", "compaction-bridge", "rehydrator", "patterns"}, "ipc": ipc}
}

// changes are the changes of settings that the people make over time.
func (f *filling) changes() []entry {
	soon := f.Until.Add(5 * day)
	return []entry{
		f.team.change(f.share(0.04), "jonas", http.MethodPut, "/pipeline", modules(map[string]any{"targetUtilization": 0.60, "compressTo": 0.35})),
		// A day on which someone had each prompt shortened at once: the cache is rewritten for each, which
		// costs more than it saves. From then on prices decide when a prompt is shortened ("As soon as it saves money").
		f.team.change(f.hasty().Add(-time.Hour), "jonas", http.MethodPut, "/pipeline", modules(map[string]any{"targetUtilization": 0.30, "compressTo": 0.28, "minClear": 0.01})),
		f.team.change(f.hasty().Add(20*time.Hour), "mira", http.MethodPut, "/pipeline", modules(map[string]any{"targetUtilization": 0.60, "compressTo": 0.35, "trigger": "break-even"})),
		{f.share(0.45), func(ctx context.Context) error { return f.team.revoke(ctx, "jonas", keyIntern) }},
		{f.share(0.70), func(ctx context.Context) error {
			person, err := f.team.as(ctx, "mira")
			if err != nil {
				return err
			}
			return person.Call(ctx, http.MethodPatch, "/keys/"+f.team.keys[keyAgents].id, map[string]float64{"budget_day_usd": 60}, nil)
		}},
		{f.Until.Add(-26 * time.Hour), func(context.Context) error {
			f.Provider.Withdraw()
			return nil
		}},
		{f.Until.Add(-24 * time.Hour), func(ctx context.Context) error {
			if _, err := f.team.as(ctx, "jonas"); err != nil {
				return err
			}
			return f.team.makeKey(ctx, "jonas", keyOf{Name: keyTrial, Scopes: []string{"proxy"}, Expires: &soon, Minute: 60})
		}},
		{f.Until.Add(-22 * time.Hour), func(ctx context.Context) error { return f.team.rotate(ctx, "tom", keyTom) }},
		{f.Until.Add(-21 * time.Hour), func(ctx context.Context) error {
			if _, err := f.team.as(ctx, "mira"); err != nil {
				return err
			}
			_, err := f.team.ask(ctx, "lee@example.com", "member")
			return err
		}},
		{f.Until.Add(-20 * time.Hour), f.learn},
	}
}

func (t *team) revoke(ctx context.Context, by, key string) error {
	person, err := t.as(ctx, by)
	if err != nil {
		return err
	}
	return person.Call(ctx, http.MethodDelete, "/keys/"+t.keys[key].id, nil, nil)
}

func (t *team) rotate(ctx context.Context, by, key string) error {
	person, err := t.as(ctx, by)
	if err != nil {
		return err
	}
	var rotated struct {
		Secret string `json:"secret"`
	}
	if err := person.Call(ctx, http.MethodPost, "/keys/"+t.keys[key].id+"/rotate", map[string]string{"grace": "24h"}, &rotated); err != nil {
		return err
	}
	t.keys[key] = apiKey{t.keys[key].id, rotated.Secret}
	return nil
}

// learn has the sessions so far indexed, and a person write a rule.
func (f *filling) learn(ctx context.Context) error {
	if err := f.Pass(ctx, "index"); err != nil {
		return err
	}
	person, err := f.team.as(ctx, "mira")
	if err != nil {
		return err
	}
	written := map[string]any{
		"kind": "convention", "text": "Prices are stored in minor units with their currency, never as floating point numbers.", "when": map[string]bool{"always": true},
	}
	return person.Call(ctx, http.MethodPost, "/patterns", written, nil)
}
