package identity

import (
	"cmp"
	"errors"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

const (
	resetTitle  = "Set a new password"
	verifyTitle = "Verify your e-mail address"
)

// askModel is a form that requests a link.
type askModel struct {
	Title, Path, Text, Button string
	SentText                  string

	Email components.FieldModel
	Sent  bool
	Local bool // mails are kept here
	Error string
}

func resetAsk() askModel {
	return askModel{
		Title: resetTitle, Path: paths.Reset, Button: "Send link",
		Text:     "A link to set a new password is sent to your e-mail address. It works once, within an hour.",
		SentText: "If an account has this address, a mail with the link is on its way. No mail? Look in the spam folder, or ask again in a minute.",
	}
}

func verifyAsk() askModel {
	return askModel{
		Title: verifyTitle, Path: paths.Verify, Button: "Send link",
		Text:     "Open the link in our mail to verify your address. Ask for another link here. It works once, within 24 hours.",
		SentText: "If an account has this address and it is not verified, a mail with the link is on its way.",
	}
}

// askForm returns a form with the person's input and its errors.
func (h *Handler) askForm(what askModel, email string, sent bool, err error) askModel {
	what.Email = components.FieldModel{Label: "E-mail", Name: "email", Value: email}
	what.Sent, what.Local = sent, h.local
	what.Error = fieldErrors(err, &what.Email)
	return what
}

// fieldErrors attaches a value's error to its field and returns the error of the whole form.
func fieldErrors(err error, fields ...*components.FieldModel) string {
	if many, is := errors.AsType[tenants.TooMany](err); is {
		return "Too many " + cmp.Or(many.What, "attempts") + ". Try again in " + components.Span(many.Wait) + "."
	}
	components.FieldErrors(err, fields...)
	return ""
}

// newPasswordModel is the form for a new password.
type newPasswordModel struct {
	Email    string // the person's address; "" if the form is shown again
	Password components.FieldModel
	Error    string
}

func newPasswordForm(email string, err error) newPasswordModel {
	model := newPasswordModel{
		Email:    email,
		Password: components.FieldModel{Label: "New password", Name: "password", Hint: tenants.PasswordHint() + " All logins of the account end."},
	}
	model.Error = fieldErrors(err, &model.Password)
	return model
}

// done confirms a finished step before the person is asked to log in.
func done(what string) string {
	if what == "password" {
		return "The new password is set, and all logins have ended. Log in with it."
	}
	return ""
}
