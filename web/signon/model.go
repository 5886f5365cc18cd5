package signon

import (
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// askModel is the form for the address.
type askModel struct {
	Email       components.FieldModel
	Next, Error string
}

// model is the page of the settings.
type model struct {
	IsSet    bool
	Callback string // the address to which the provider redirects back
	Domains  []tenants.Domain
	Done     string

	Issuer, Client, Secret, Role, Domain components.FieldModel
}

func newModel(signOn tenants.SignOn, domains []tenants.Domain, callback string) model {
	page := model{IsSet: signOn.Issuer != "", Callback: callback, Domains: domains}
	page.form(tenants.WantedSignOn{Issuer: signOn.Issuer, ClientID: signOn.ClientID, Role: signOn.Role}, nil)
	page.domain("", nil)
	return page
}

// form fills in the form with the input and its errors. A secret is never sent back.
func (m *model) form(typed tenants.WantedSignOn, err error) {
	m.Issuer = components.FieldModel{Label: "Issuer", Name: "issuer", Value: typed.Issuer, Hint: "As the provider names itself, such as https://login.example.com."}
	m.Client = components.FieldModel{Label: "Client id", Name: "client_id", Value: typed.ClientID}
	m.Secret = components.FieldModel{Label: "Client secret", Name: "secret"}
	if m.IsSet {
		m.Secret.Hint = "Empty: the one that is kept, for the same issuer and client."
	}
	m.Role = components.FieldModel{Label: "Role of new people", Name: "role", Value: string(typed.Role)}
	components.FieldErrors(err, &m.Issuer, &m.Client, &m.Secret, &m.Role)
}

func (m *model) domain(typed string, err error) {
	m.Domain = components.FieldModel{Label: "Domain", Name: "domain", Value: typed}
	components.FieldErrors(err, &m.Domain)
}

func roles() []components.Option {
	return []components.Option{{Value: string(tenants.Regular), Label: "Member"}, {Value: string(tenants.Viewer), Label: "Viewer"}}
}

func doneText(what string) string {
	return map[string]string{
		"saved": "Sign-on is saved. With another issuer, prove the domains again.", "removed": "Sign-on is removed, and its domains are to be proven again. People log in with their passwords.", "claimed": "The domain is added. It counts once it is proven.",
		"proven": "The domain is proven.", "domain-removed": "The domain is removed.",
	}[what]
}
