package identity

import (
	"errors"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

const (
	signUpTitle = "Sign up"
	logInTitle  = "Log in"
)

// signUpModel is the sign-up form.
type signUpModel struct {
	Email, Password, Workspace components.FieldModel

	Error string // of the whole form
}

// signUpForm returns the form with the person's input and its errors. A password is never sent back.
func signUpForm(email, workspace string, err error) signUpModel {
	model := signUpModel{
		Email:     components.FieldModel{Label: "E-mail", Name: "email", Value: email},
		Password:  components.FieldModel{Label: "Password", Name: "password", Hint: tenants.PasswordHint()},
		Workspace: components.FieldModel{Label: "Workspace", Name: "workspace", Value: workspace, Hint: "The name of your team. Keys, sessions and settings belong to it."},
	}
	if errors.Is(err, tenants.ErrEmailTaken) {
		model.Email.Error = "An account with this e-mail address exists. Log in instead."
	}
	model.Error = fieldErrors(err, &model.Email, &model.Password, &model.Workspace)
	return model
}

// logInModel is the login form.
type logInModel struct {
	Email, Password components.FieldModel
	Passkey         *components.PasskeyModel // nil if passkeys are off
	Next            string                   // the destination after the login
	Error           string                   // of the whole form; it never tells which part is wrong
}

func (h *Handler) logInForm(email, next string, err error) logInModel {
	model := logInModel{
		Email:    components.FieldModel{Label: "E-mail", Name: "email", Value: email},
		Password: components.FieldModel{Label: "Password", Name: "password"},
		Next:     next,
	}
	if h.passkeys.IsOn() {
		model.Passkey = &components.PasskeyModel{
			Action: paths.LogInPasskey, OptionsURL: paths.PasskeyOptions, Next: next, Button: "Log in with a passkey",
			Origin: h.passkeys.Origin(), Instead: "Log in with your password.",
		}
	}
	switch wait, tooMany := errors.AsType[tenants.TooMany](err); {
	case tooMany:
		model.Error = "Too many failed attempts. Try again in " + components.Span(wait.Wait) + "."
	case errors.Is(err, tenants.ErrPasskey):
		model.Error = passkeyText(err, "log in with your password")
	case err != nil:
		model.Error = "E-mail or password is wrong."
	}
	return model
}
