package manage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// limitNames are the members of an API key that limit it.
func limitNames() []string {
	return append([]string{"allowed_models", "allowed_endpoints", "allowed_ips", "browser_origins", "lock_overrides", "no_store", "private_base_url", "allow_unpriced"},
		quotaNames(func(*tenants.Limit) bool { return true })...)
}

// identified holds the members of a file that identify a key.
type identified struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// find returns the place of the key with the id, otherwise of the one with the name; -1 if no key has it. It
// reports a missing or ambiguous name.
func (i *configImport) find(item configMember, members []configMember, count int, at func(int) (uuid.UUID, string)) (place int, known bool) {
	var meant identified
	for _, member := range members {
		if (member.name == "id" || member.name == "name") && !take(&i.configReader, member, &meant) {
			return -1, false
		}
	}
	place, named := -1, 0
	for n := range count {
		id, name := at(n)
		if id.String() == meant.ID {
			return n, true
		}
		if name == meant.Name {
			place, named = n, named+1
		}
	}
	switch {
	case meant.Name == "":
		i.wrong(item.place+".name", "is missing")
		return -1, false
	case named > 1:
		i.wrong(item.place+".name", fmt.Sprintf("is that of %d keys of this workspace; give the id of the one that is meant", named))
		return -1, false
	}
	return place, true
}

func (i *configImport) takeKeys(ctx context.Context, part configMember) error {
	done := map[uuid.UUID]bool{}
	for _, item := range i.items(part) {
		members := i.members(item.place, item.node, append([]string{"id", "name", "scopes", "pipeline", "expires_at"}, limitNames()...))
		n, known := i.find(item, members, len(i.now.keys), func(n int) (uuid.UUID, string) { return i.now.keys[n].ID, i.now.keys[n].Name })
		before := tenants.APIKey{}
		if n >= 0 {
			before = i.now.keys[n]
		}
		after, scopes, err := i.keyFrom(item, members, before)
		if err != nil || !known {
			if err != nil {
				return err
			}
			continue
		}
		if n < 0 {
			i.byHandf("API key %q does not exist here: create it with the scopes %s, then import again to set its limits.", item.name, tenants.JoinScopes(scopes, ","))
			continue
		}
		if done[before.ID] {
			i.wrong(item.place, "means a key that the file has already")
			continue
		}
		done[before.ID] = true
		if scopes != nil && !sameScopes(scopes, before.Scopes) {
			i.byHandf("API key %q has the scopes %s, the file says %s: scopes never change, so create another key.", before.Name, tenants.JoinScopes(before.Scopes, ","), tenants.JoinScopes(scopes, ","))
		}
		if !i.changed(item.place, before.Fields(), after.Fields()) {
			continue
		}
		if err := i.refused(item.place, i.apiKeys.ChangeAPIKey(ctx, i.tenant, after)); err != nil {
			return err
		}
	}
	return nil
}

// keyFrom returns the API key in a file, and its scopes; nil if the file omits them.
func (i *configImport) keyFrom(item configMember, members []configMember, before tenants.APIKey) (after tenants.APIKey, scopes []tenants.Scope, err error) {
	after = before
	for _, member := range members {
		switch member.name {
		case "id":
		case "scopes":
			var asked struct {
				Scopes []tenants.Scope `json:"scopes"`
			}
			if take(&i.configReader, member, &asked) {
				scopes, err = tenants.ParseScopes(tenants.JoinScopes(asked.Scopes, ","))
			}
			if err = i.refused(item.place, err); err != nil {
				return after, nil, err
			}
		case "name", "pipeline", "expires_at":
			var asked keyChange
			if !take(&i.configReader, member, &asked) {
				continue
			}
			set(&after.Name, asked.Name)
			set(&after.Pipeline, asked.Pipeline)
			if asked.ExpiresAt.given {
				after.ExpiresAt = asked.ExpiresAt.at
			}
		default:
			var asked limitsChange
			if !take(&i.configReader, member, &asked) {
				continue
			}
			limits, err := asked.apply(tenants.Limits{})
			if err == nil {
				err = limits.Validate()
			}
			if err == nil {
				after.Limits, err = asked.apply(after.Limits)
			}
			if err := i.refused(item.place, err); err != nil {
				return after, nil, err
			}
		}
	}
	return after, scopes, nil
}

func sameScopes(a, b []tenants.Scope) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// providerNames are the members of a provider key in a file: those that an import changes, and those tied to
// its secret.
func providerNames() (changeable, fixed []string) {
	return []string{"name", "dialects", "auth", "headers", "models", "order", "weight", "default", "enabled", "wait_seconds"}, []string{"id", "provider", "preset", "base_url", "region"}
}

func (i *configImport) takeProviders(ctx context.Context, part configMember) error {
	changeable, fixed := providerNames()
	done := map[uuid.UUID]bool{}
	for _, item := range i.items(part) {
		members := i.members(item.place, item.node, append(changeable, fixed...))
		n, known := i.find(item, members, len(i.now.providers), func(n int) (uuid.UUID, string) { return i.now.providers[n].ID, i.now.providers[n].Name })
		asked, sent, err := i.providerFrom(item, members)
		if err != nil || !known {
			if err != nil {
				return err
			}
			continue
		}
		if n < 0 {
			i.byHandf("Provider key %q for %s does not exist here: add it with its secret%s, then import again to set how it is used.", item.name, sent.Provider, at(sent.BaseURL))
			continue
		}
		before := i.now.providers[n]
		if done[before.ID] {
			i.wrong(item.place, "means a key that the file has already")
			continue
		}
		done[before.ID] = true
		if sent.Provider != "" && sent.Provider != before.Provider {
			i.byHandf("Provider key %q speaks to %s, the file says %s: that never changes, so add another key with its secret.", before.Name, before.Provider, sent.Provider)
		}
		if url := strings.TrimRight(sent.BaseURL, "/"); url != before.BaseURL && (url != "" || sent.hasURL) {
			i.byHandf("Provider key %q is sent%s, the file says%s: replace its secret there with that base URL.", before.Name, at(before.BaseURL), at(url))
		}
		if sent.Region != "" && sent.Region != before.Region {
			i.byHandf("Provider key %q is for the region %q, the file says %q: replace its secret there with that region's base URL.", before.Name, before.Region, sent.Region)
		}
		after := asked.Apply(before)
		isOther := !slices.Equal(before.Headers, after.Headers)
		if isOther {
			i.came.Changes = append(i.came.Changes, tenants.ConfigChange{Place: item.place + ".headers", Before: headersOf(before), After: headersOf(after)})
		}
		was, is := before.Fields(), after.Fields()
		delete(was, "headers")
		delete(is, "headers")
		if !i.changed(item.place, was, is) && !isOther {
			continue
		}
		if _, err := i.providerKeys.EditProviderKey(ctx, i.tenant, before.ID, asked); i.refused(item.place, err) != nil {
			return err
		}
	}
	return nil
}

// sentTo holds the settings that decide where a provider key's secret is sent.
type sentTo struct {
	Provider tenants.Provider `json:"provider"`
	Preset   string           `json:"preset"`
	BaseURL  string           `json:"base_url"`
	Region   string           `json:"region"`

	hasURL bool
}

// providerFrom returns the settings of a provider key in a file, and its target.
func (i *configImport) providerFrom(item configMember, members []configMember) (change tenants.ProviderKeyChange, sent sentTo, err error) {
	var asked changedProviderKey
	for _, member := range members {
		switch member.name {
		case "id":
		case "provider", "preset", "base_url", "region":
			take(&i.configReader, member, &sent)
			sent.hasURL = sent.hasURL || member.name == "base_url"
		default:
			take(&i.configReader, member, &asked)
		}
	}
	change, err = asked.change(sent.Provider == tenants.ProviderGemini)
	return change, sent, i.refused(item.place, err)
}

// at returns where a key is sent.
func at(baseURL string) string {
	if baseURL == "" {
		return " to the provider’s own address"
	}
	return " to " + baseURL
}

func headersOf(key tenants.ProviderKey) string {
	return strings.Join(each(key.Headers, func(header tenants.Header) string { return header.Name + ": " + header.Value }), ", ")
}
