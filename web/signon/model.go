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
	m.Issuer = components.FieldModel{Label: "Issuer", Name: "issuer", Value: typed.Issuer, Hint: "The provider’s name for itself, such as https://login.example.com."}
	m.Client = components.FieldModel{Label: "Client id", Name: "client_id", Value: typed.ClientID}
	m.Secret = components.FieldModel{Label: "Client secret", Name: "secret"}
	if m.IsSet {
		m.Secret.Hint = "Leave it empty to keep the stored secret, for the same issuer and client."
	}
	m.Role = components.FieldModel{Label: "Role of new members", Name: "role", Value: string(typed.Role)}
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
		"saved": "Sign-on is saved. If you changed the issuer, verify the domains again.", "removed": "Sign-on is removed. People log in with their passwords. To use its domains again, verify them again.", "claimed": "The domain is added. It takes effect once it is verified.",
		"proven": "The domain is verified.", "domain-removed": "The domain is removed.",
	}[what]
}
