package overview

import (
	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// narrowing is the page's current filters and their choices.
type narrowing struct {
	query

	choices *tenants.UsageChoices
}

// narrowing returns the page's filters.
func (m *model) narrowing() narrowing { return narrowing{m.query, &m.Choices} }

// filters returns the active filters, each with the address of the page without it.
func (n narrowing) filters() []filtered {
	var list []filtered
	if n.Filter.Client != "" {
		list = append(list, filtered{components.ClientName(n.Filter.Client), n.page("client", "")})
	}
	if n.Filter.Model != "" {
		list = append(list, filtered{n.Filter.Model, n.page("model", "")})
	}
	if n.Filter.APIKey != uuid.Nil {
		name := n.Filter.APIKey.String()[:8]
		for _, key := range n.choices.APIKeys {
			if key.ID == n.Filter.APIKey && key.Name != "" {
				name = key.Name
			}
		}
		list = append(list, filtered{"key " + name, n.page("key", "")})
	}
	return list
}

// filtered is an active filter.
type filtered struct{ Title, Without string }

// filterTitle summarizes the active filters.
func (n narrowing) filterTitle() string {
	if count := len(n.filters()); count > 0 {
		return components.Plural(int64(count), "filter")
	}
	return "All clients, all models"
}

// options returns the choices of a select, "all" first.
func options(all string, names []string, title func(string) string, chosen string) []components.Option {
	list := []components.Option{{Value: "", Label: all}}
	known := chosen == ""
	for _, name := range names {
		list = append(list, components.Option{Value: name, Label: title(name)})
		known = known || name == chosen
	}
	if !known {
		list = append(list, components.Option{Value: chosen, Label: title(chosen)})
	}
	return list
}

func (n narrowing) clientOptions() []components.Option {
	return options("All clients", n.choices.Clients, components.ClientName, n.Filter.Client)
}

func (n narrowing) modelOptions() []components.Option {
	return options("All models", n.choices.Models, func(name string) string { return name }, n.Filter.Model)
}

func (n narrowing) keyOptions() []components.Option {
	ids, names := make([]string, 0, len(n.choices.APIKeys)), map[string]string{}
	for _, key := range n.choices.APIKeys {
		ids, names[key.ID.String()] = append(ids, key.ID.String()), key.Name
	}
	return options("All keys", ids, func(id string) string {
		if names[id] == "" {
			return id[:8] + "…"
		}
		return names[id]
	}, n.keyID())
}

// keyID returns the id of the API key in the filter; "" if absent.
func (n narrowing) keyID() string {
	if n.Filter.APIKey == uuid.Nil {
		return ""
	}
	return n.Filter.APIKey.String()
}
