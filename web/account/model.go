package account

import (
	"errors"
	"strings"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// model is the page's data.
type model struct {
	Who      tenants.Principal
	Logins   []loginRow
	Email    emailForm
	Password passwordForm
	Delete   deleteForm
	Done     string // the last action
	Mailed   bool   // and a mail was sent
	Local    bool   // mails are kept here
	Error    string
	Now      time.Time
}

// loginRow is a login in the list.
type loginRow struct {
	tenants.Login

	Browser string
	This    bool
}

// emailPassword is the name of the password's field in the form of the address.
const emailPassword = "email_password"

type emailForm struct {
	Email, Password components.FieldModel
	Error           string
}

// deletePassword is the name of the password's field in the form that deletes the account.
const deletePassword = "delete_password"

type deleteForm struct {
	Password, Keys components.FieldModel
	Error          string
}

type passwordForm struct {
	Current, Password components.FieldModel
	Error             string
}

func newModel(who tenants.Principal, logins []tenants.Login, now time.Time) model {
	page := model{Who: who, Email: newEmailForm("", nil), Password: newPasswordForm(nil), Delete: newDeleteForm("", nil, ""), Now: now}
	for _, login := range logins {
		page.Logins = append(page.Logins, loginRow{Login: login, Browser: browser(login.UserAgent), This: login.ID == who.Login.ID})
	}
	return page
}

func newEmailForm(email string, err error) emailForm {
	form := emailForm{
		Email: components.FieldModel{Label: "New e-mail address", Name: "email", Value: email},
		// The other form's field is named password, which also determines its id.
		Password: components.FieldModel{Label: "Your password", Name: emailPassword},
	}
	form.Error = fieldErrors(renamed(err, emailPassword), &form.Email, &form.Password)
	return form
}

func newPasswordForm(err error) passwordForm {
	form := passwordForm{
		Current:  components.FieldModel{Label: "Current password", Name: "current_password"},
		Password: components.FieldModel{Label: "New password", Name: "password", Hint: tenants.PasswordHint() + " Your other logins end."},
	}
	form.Error = fieldErrors(err, &form.Current, &form.Password)
	return form
}

// newDeleteForm is the form that deletes the account; refused is the reason why it can't be deleted.
func newDeleteForm(keys string, err error, refused string) deleteForm {
	form := deleteForm{
		Password: components.FieldModel{Label: "Your password", Name: deletePassword, Hint: "If your account has no password, leave this empty and log in again first."},
		Keys:     components.FieldModel{Label: "API keys that you created", Name: "keys", Value: keys},
	}
	form.Error = fieldErrors(renamed(err, deletePassword), &form.Password)
	if refused != "" {
		form.Error = refused
	}
	return form
}

const operatorText = "Operators’ accounts cannot be deleted, so that the installation always has one. Your account is unchanged."

func onlyOwnerText(workspace string) string {
	return "You are the only owner of " + workspace + ". Make another member an owner, or delete the workspace first. Your account is unchanged."
}

// renamed returns a password error with the name of a form's password field.
func renamed(err error, field string) error {
	if invalid, is := errors.AsType[tenants.Invalid](err); is && invalid.Field == "password" {
		return tenants.Invalid{Field: field, Message: invalid.Message}
	}
	return err
}

// fieldErrors attaches a value's error to its field and returns the error of the whole form.
func fieldErrors(err error, fields ...*components.FieldModel) string {
	components.FieldErrors(err, fields...)
	return formError(err)
}

// formError returns the error of a whole form.
func formError(err error) string {
	if many, is := errors.AsType[tenants.TooMany](err); is {
		return "Too many attempts. Try again in " + components.Span(many.Wait) + ". Nothing was changed."
	}
	return ""
}

// doneText confirms an action.
func doneText(what, email string) string {
	switch what {
	case "password":
		return "The password is changed, and your other logins have ended."
	case "asked":
		return "A mail with a link is on its way to the new address. Your address changes once the link is opened."
	case "sent":
		return "A mail with a link is on its way to " + email + "."
	case "verified":
		return "The address is verified."
	case "email":
		return "Your address is now " + email + "."
	case "ended":
		return "The login has ended."
	}
	return ""
}

// browser returns the usual names of a browser and its system. An unknown user agent is returned unchanged.
func browser(userAgent string) string {
	name := first(userAgent, "Edg/", "Edge", "OPR/", "Opera", "Firefox/", "Firefox", "Chrome/", "Chrome", "Safari/", "Safari", "curl/", "curl")
	system := first(userAgent, "iPhone", "iPhone", "iPad", "iPad", "Android", "Android", "Windows", "Windows", "Mac OS X", "macOS", "CrOS", "ChromeOS", "Linux", "Linux")
	switch {
	case userAgent == "":
		return "Unnamed program"
	case name == "":
		return userAgent
	case system == "":
		return name
	}
	return name + " on " + system
}

// first returns the name of the first mark in a text; marksAndNames alternates marks and names.
func first(text string, marksAndNames ...string) string {
	for i := 0; i+1 < len(marksAndNames); i += 2 {
		if strings.Contains(text, marksAndNames[i]) {
			return marksAndNames[i+1]
		}
	}
	return ""
}
