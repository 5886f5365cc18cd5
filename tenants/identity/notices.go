package identity

import "palimpsest/tenants"

// FactorMail returns the notice about a change of a second factor, recovery codes, or the named passkey.
func (l *letters) FactorMail(user tenants.User, change tenants.Action, passkey string) tenants.Mail {
	subject, text := factorNotice(change, passkey)
	return tenants.Mail{To: user.Email, Subject: subject, Text: text + `

If that was not you, set a new password here at once, and look at what you log in with:

` + l.mails.PublicURL + `/reset
`}
}

func factorNotice(change tenants.Action, passkey string) (subject, text string) {
	const others = " Its other logins have ended."
	switch change {
	case tenants.SecondFactorOn:
		return "Your second factor was turned on", "From now on, logging in to your Palimpsest account takes a code of an authenticator app after the password." + others
	case tenants.SecondFactorOff:
		return "Your second factor was turned off", "Logging in to your Palimpsest account takes no code of an authenticator app any more." + others
	case tenants.RecoveryCodesChanged:
		return "Your recovery codes were replaced", "Your Palimpsest account has new recovery codes. Those before no longer work."
	case tenants.RecoveryCodeUsed:
		return "A recovery code was used", "A recovery code of your Palimpsest account was used. It does not work again."
	case tenants.PasskeyAdded:
		return "A passkey was added", `The passkey "` + passkey + `" logs in to your Palimpsest account from now on.` + others
	case tenants.PasskeyRemoved:
		return "A passkey was removed", `The passkey "` + passkey + `" no longer logs in to your Palimpsest account.` + others
	case tenants.PasskeyCopied:
		return "A passkey was copied", `A copy of the passkey "` + passkey + `" was used. It no longer logs in to your Palimpsest account: remove it, and add another.`
	default:
		return "Your Palimpsest account was changed", "What logs in to your Palimpsest account was changed: " + string(change) + "."
	}
}
