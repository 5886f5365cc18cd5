package identity

import (
	"palimpsest/tenants"
)

// The paths of links, which web/paths names too.
const (
	resetPath  = "/reset/"
	verifyPath = "/verify/"
)

func (s *Service) resetLetter(email string) tenants.Letter {
	secret, token := s.newToken(tenants.TokenReset, email, tenants.ResetAge)
	return tenants.Letter{Token: token, Mail: tenants.Mail{To: email, Subject: "Set a new password", Text: `Someone asked to set a new password for the Palimpsest account of this address. Open this link to do so:

` + s.mails.PublicURL + resetPath + secret + `

It works once, within an hour. All logins of the account end then.

If that was not you, ignore this mail: nothing has changed.
`}}
}

func (s *Service) verifyLetter(email string) tenants.Letter {
	secret, token := s.newToken(tenants.TokenVerify, email, tenants.VerifyAge)
	return tenants.Letter{Token: token, Mail: tenants.Mail{To: email, Subject: "Verify your e-mail address", Text: `This address was given for a Palimpsest account. Open this link to verify that it is yours:

` + s.mails.PublicURL + verifyPath + secret + `

It works once, within 24 hours.

If you did not sign up, ignore this mail.
`}}
}

func (s *Service) emailLetter(email string) tenants.Letter {
	secret, token := s.newToken(tenants.TokenEmail, email, tenants.VerifyAge)
	return tenants.Letter{Token: token, Mail: tenants.Mail{To: email, Subject: "Confirm your new e-mail address", Text: `This address is to become that of a Palimpsest account. Open this link to confirm it:

` + s.mails.PublicURL + verifyPath + secret + `

It works once, within 24 hours. Until then the account keeps its old address.

If that was not you, ignore this mail: nothing has changed.
`}}
}

func (s *Service) knownMail(email string) tenants.Mail {
	return tenants.Mail{To: email, Subject: "You have an account already", Text: `Someone signed up at Palimpsest with this address, which has an account already. Nothing has changed. Log in here:

` + s.mails.PublicURL + `/login

If you do not know your password, set a new one here:

` + s.mails.PublicURL + `/reset
`}
}

func (s *Service) refusedMail(email string) tenants.Mail {
	return tenants.Mail{To: email, Subject: "Sign-up is by invitation", Text: `Someone signed up at Palimpsest with this address. This installation takes no sign-up from it, so no account was made. Ask someone who is there already for an invitation:

` + s.mails.PublicURL + `

If you did not sign up, ignore this mail.
`}
}

func (s *Service) passwordMail(user tenants.User) tenants.Mail {
	return tenants.Mail{To: user.Email, Subject: "Your password was changed", Text: `The password of your Palimpsest account was changed, and its other logins have ended.

If that was not you, set a new password here at once:

` + s.mails.PublicURL + `/reset
`}
}

func (s *Service) emailAskedMail(before, after string) tenants.Mail {
	return tenants.Mail{To: before, Subject: "Your e-mail address is to be changed", Text: `Someone who is logged in to your Palimpsest account, and knows its password, asked to change its address to ` + after + `. It changes once the link in a mail to that address is opened.

If that was not you, set a new password here at once:

` + s.mails.PublicURL + `/reset
`}
}

func (s *Service) emailChangedMail(before, after string) tenants.Mail {
	return tenants.Mail{To: before, Subject: "Your e-mail address was changed", Text: `The address of your Palimpsest account is now ` + after + `. Mails for it no longer come here.
`}
}
