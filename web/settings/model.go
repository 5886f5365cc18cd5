package settings

import (
	"slices"
	"strconv"
	"strings"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// model is the page's data.
type model struct {
	Who       tenants.Principal
	Form      *formModel
	Days      components.FieldModel
	Budgets   budgetsModel
	Prices    pricesModel
	Limits    limitsModel
	MayExport bool
	Saved     bool         // settings were just saved
	Delete    *deleteModel // nil without a question

	FormFailed, DaysFailed, ExportFailed string // references in the log; "" if loaded
}

// mayDelete reports whether the reader may delete the workspace.
func (m model) mayDelete() bool { return m.Who.Role.May(tenants.DeleteWorkspace) }

// formModel is the form of the workspace's data settings.
type formModel struct {
	TimeZone, Managers, Members, Viewers, EndUsers, Failover components.FieldModel

	NoStore, OwnCredentials bool

	Kinds   []kindModel
	Names   components.FieldModel
	Origins components.FieldModel
}

// kindModel is a kind of personal data that can be replaced.
type kindModel struct {
	Kind  tenants.RedactionKind
	Label string
	IsOn  bool
	Found int64 // replacements
}

func newKinds(on []tenants.RedactionKind) []kindModel {
	labels := map[tenants.RedactionKind]string{
		tenants.RedactNames: "Names of people: those listed below, and names before mail addresses", tenants.RedactEmails: "Mail addresses", tenants.RedactCards: "Card numbers",
		tenants.RedactPhones: "Phone numbers", tenants.RedactKeys: "API keys, passwords and other secrets",
	}
	var kinds []kindModel
	for _, kind := range tenants.RedactionKinds() {
		kinds = append(kinds, kindModel{Kind: kind, Label: labels[kind], IsOn: slices.Contains(on, kind)})
	}
	return kinds
}

// count fills in how often each kind was replaced.
func (f *formModel) count(counts []tenants.RedactionCount) {
	for _, count := range counts {
		for i := range f.Kinds {
			if f.Kinds[i].Kind == count.Kind {
				f.Kinds[i].Found = count.Found
			}
		}
	}
}

func newForm(typed tenants.DataSettings, err error) *formModel {
	form := &formModel{
		TimeZone: components.FieldModel{Label: "Time zone", Name: "time_zone", Value: typed.TimeZone, Hint: "Used on pages if a reader’s own is not known, such as Europe/Berlin, America/New_York or UTC. Files are in UTC."},
		Managers: components.FieldModel{Label: "Owners and admins read", Name: "managers_read", Value: string(typed.Text.Managers)},
		Members:  components.FieldModel{Label: "Members read", Name: "members_read", Value: string(typed.Text.Members)},
		Viewers:  components.FieldModel{Label: "Viewers read", Name: "viewers_read", Value: string(typed.Text.Viewers)},
		EndUsers: components.FieldModel{Label: "End users", Name: "end_users", Value: string(typed.EndUsers), Hint: "The people that an application serves. Ids are stored encrypted with the sessions and shown to people who may read them. If you choose hashes, stored ids are deleted."},
		Failover: components.FieldModel{Label: "When a provider key fails", Name: "failover", Value: string(typed.Failover), Hint: "Another key that serves the model answers, with the same prompt. The session is not in the cache of another account, so its prompt is paid for again. Choose the same account only if all keys with the same base URL belong to one account."},
		NoStore:  typed.NoStore,

		OwnCredentials: typed.OwnCredentials,

		Kinds:   newKinds(typed.Redact.Kinds),
		Names:   components.FieldModel{Label: "Names to replace", Name: "redact_names", Value: strings.Join(typed.Redact.Names, "\n"), Hint: "One full name per line. Case doesn’t matter. Other names are found only before a mail address."},
		Origins: components.FieldModel{Label: "Browser origins", Name: "browser_origins", Value: strings.Join(typed.Origins, "\n"), Hint: "One per line: https://chat.example.com, http://localhost:5173, app://obsidian.md. Scripts of these pages may call the proxy and read its answers. Anyone who can open such a page can copy the API key that it uses, so give it its own key with a budget and few models. Empty: no page may call the proxy."},
	}
	components.FieldErrors(err, &form.TimeZone, &form.Managers, &form.Members, &form.Viewers, &form.EndUsers, &form.Failover, &form.Names, &form.Origins)
	return form
}

// allOrOwn and allOrNone are the choices of what a role may read.
func allOrOwn() []components.Option {
	return []components.Option{
		{Value: string(tenants.ReadsAll), Label: "every session"},
		{Value: string(tenants.ReadsOwn), Label: "sessions of their own API keys"},
	}
}

func allOrNone() []components.Option {
	return []components.Option{
		{Value: string(tenants.ReadsAll), Label: "every session"},
		{Value: string(tenants.ReadsNone), Label: "figures only"},
	}
}

// failovers are the choices for a request whose provider key fails.
func failovers() []components.Option {
	return []components.Option{
		{Value: string(tenants.FailoverOff), Label: "the request fails"},
		{Value: string(tenants.FailoverAccounts), Label: "use another key, maybe of another account"},
		{Value: string(tenants.FailoverAccount), Label: "use another key of the same account"},
	}
}

// hashedOrPlain are the ways to show end users.
func hashedOrPlain() []components.Option {
	return []components.Option{
		{Value: string(tenants.EndUsersHashed), Label: "a hash of the application’s id"},
		{Value: string(tenants.EndUsersPlain), Label: "the application’s id"},
	}
}

func newDays(typed string, err error) components.FieldModel {
	field := components.FieldModel{
		Label: "Days", Name: "days", Value: typed,
		Hint: "Sessions unused for this many days are deleted within a day, with their archive. A higher value keeps them longer. Empty: sessions are kept.",
	}
	if err != nil {
		field.Error = "Days must be a whole number from 1 to 36500, or empty. Nothing was changed."
	}
	return field
}

// shown returns a retention as its field shows it.
func shown(retention tenants.Retention) string {
	if retention.Days == 0 {
		return ""
	}
	return strconv.Itoa(retention.Days)
}

// deleteModel is the question whether to delete the workspace.
type deleteModel struct {
	Name              string
	Confirm, Password components.FieldModel
}

func newDelete(name, typed string) *deleteModel {
	return &deleteModel{
		Name:     name,
		Confirm:  components.FieldModel{Label: "Type " + name + " to confirm", Name: "confirm", Value: typed},
		Password: components.FieldModel{Label: "Your password", Name: "password"},
	}
}
