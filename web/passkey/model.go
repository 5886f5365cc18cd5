package passkey

import (
	"errors"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// model is the page's data.
type model struct {
	Passkeys []tenants.Passkey
	Factors  tenants.Factors
	IsOn     bool
	Codes    []string // recovery codes, shown once
	Done     string   // the last action
	Now      time.Time

	Add    form
	Create *createModel // a passkey is being made
	Renew  form
	Rename *dialogModel
	Remove *dialogModel
}

// createModel is a passkey during its creation.
type createModel struct {
	Name string
	Form components.PasskeyModel
}

// dialogModel asks about one passkey.
type dialogModel struct {
	Passkey tenants.Passkey
	Form    form
}

// form is fields and the error of the whole form.
type form struct {
	Name, Password components.FieldModel
	Error          string
}

func newModel(passkeys []tenants.Passkey, factors tenants.Factors, isOn bool, now time.Time) model {
	return model{Passkeys: passkeys, Factors: factors, IsOn: isOn, Now: now, Add: addForm("", nil), Renew: renewForm(nil)}
}

// create makes the page ask the browser for a passkey.
func (m *model) create(name string, options []byte, origin string) {
	m.Create = &createModel{Name: name, Form: components.PasskeyModel{
		Create: true, Action: paths.NewPasskey, Options: string(options), Button: "Create passkey", Primary: true,
		Origin: origin, Instead: "Your account is unchanged.",
	}}
}

// mayRenew reports whether the page offers new recovery codes. If an app is set up, the page of the second
// factor does instead.
func (m *model) mayRenew() bool { return m.Factors.Passkeys > 0 && !m.Factors.App }

// Several forms may be on the page together, so their fields have different names.
const (
	addName, addPassword       = "name", "password"
	newName                    = "new_name"
	renewPassword, removeField = "renew_password", "remove_password"
)

func addForm(name string, err error) form { return newForm(addName, name, addPassword, err) }

func renewForm(err error) form { return newForm(newName, "", renewPassword, err) }

func renameForm(passkey tenants.Passkey, name string, err error) *dialogModel {
	return &dialogModel{Passkey: passkey, Form: newForm(newName, name, removeField, err)}
}

func removeForm(passkey tenants.Passkey, err error) *dialogModel {
	return &dialogModel{Passkey: passkey, Form: newForm(newName, "", removeField, err)}
}

// newForm returns a form with these field names, the input and its errors. A password is never sent back.
func newForm(nameField, name, passwordField string, err error) form {
	made := form{
		Name:     components.FieldModel{Label: "Name", Name: nameField, Value: name, Hint: "A name for the device, such as “Laptop” or “Blue security key”."},
		Password: components.FieldModel{Label: "Your password", Name: passwordField},
	}
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		switch invalid.Field {
		case "name":
			made.Name.Error = components.FieldError(made.Name.Label, invalid.Message)
		case "password":
			made.Password.Error = components.FieldError(made.Password.Label, invalid.Message)
		}
	}
	many, tooMany := errors.AsType[tenants.TooMany](err)
	switch {
	case tooMany:
		made.Error = "Too many attempts. Try again in " + components.Span(many.Wait) + ". Nothing was changed."
	case errors.Is(err, tenants.ErrConflict):
		made.Error = "This passkey was already added."
	case errors.Is(err, tenants.ErrPasskey):
		made.Error = "The passkey was not accepted, or took more than 5 minutes. No passkey was added. Start again."
	}
	return made
}

func doneText(what string) string {
	return map[string]string{
		"added":   "The passkey is added, and your other logins have ended. Log in with it, or type your password and use it then.",
		"renamed": "The passkey is renamed.",
		"removed": "The passkey is removed, and your other logins have ended. Delete it on the device, too.",
	}[what]
}

// kindText tells where a passkey is stored.
func kindText(passkey tenants.Passkey) string {
	switch {
	case passkey.BackedUp:
		return "synced between devices"
	case passkey.BackupEligible:
		return "may be synced"
	}
	return "on one device"
}
