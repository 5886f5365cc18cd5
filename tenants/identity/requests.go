package identity

import (
	"context"
	"errors"

	"palimpsest/tenants"
)

// requests handles requests by mail, which are answered in the background.
type requests struct{ parts *parts }

// AskReset sends a link to set a password to the owner of an address. It does the same work and gives the
// same answer whether the address is known, and whether it was sent too many links lately. In the latter case
// it sends no further link, and earlier ones still work. Too many requests from one place are a
// tenants.TooMany.
func (r *requests) AskReset(ctx context.Context, email, from string) error {
	return r.ask(ctx, tenants.RequestReset, email, from)
}

// AskVerification sends a verification link to the owner of an unverified address. It answers as AskReset
// does.
func (r *requests) AskVerification(ctx context.Context, email, from string) error {
	return r.ask(ctx, tenants.RequestVerify, email, from)
}

func (r *requests) ask(ctx context.Context, kind tenants.RequestKind, email, from string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	if err := r.parts.prover.throttle.Take(ctx, askingFrom(kind, from)); err != nil {
		return err
	}
	return r.parts.store.AskAccount(ctx, tenants.AccountRequest{Kind: kind, Email: email, From: from})
}

// askSignUp stores a sign-up for AnswerRequests and returns tenants.ErrMailSent.
func (r *requests) askSignUp(ctx context.Context, email, password, workspace string) error {
	from := tenants.ActorOf(ctx).From
	if err := r.parts.prover.throttle.Take(ctx, askingFrom(tenants.RequestSignUp, from)); err != nil {
		return err
	}
	hash, err := r.parts.prover.hash(ctx, password)
	if err != nil {
		return err
	}
	err = r.parts.store.AskAccount(ctx, tenants.AccountRequest{
		Kind: tenants.RequestSignUp, Email: email, PasswordHash: hash, Workspace: workspace, From: from,
	})
	if err != nil {
		return err
	}
	return tenants.ErrMailSent
}

// AnswerRequests answers the pending requests by address. It may run at any time, also in several processes
// at once.
func (r *requests) AnswerRequests(ctx context.Context) error {
	requests, err := r.parts.store.AccountRequests(ctx, requestsAtOne)
	if err != nil {
		return err
	}
	var failed []error
	for _, request := range requests {
		letter := r.parts.letters.verifyLetter(request.Email)
		if request.Kind == tenants.RequestReset {
			letter = r.parts.letters.resetLetter(request.Email)
		}
		failed = append(failed, r.answer(ctx, request, letter))
	}
	return errors.Join(failed...)
}

// answer answers one request, unless its address was sent too many mails of this kind. It checks the sign-up
// rules again because settings may have changed, and because only one of several first users is the first.
func (r *requests) answer(ctx context.Context, request tenants.AccountRequest, letter tenants.LinkMail) error {
	mails := mailsTo(string(request.Kind), request.Email)
	err := r.parts.prover.throttle.Check(ctx, mails)
	if errors.Is(err, tenants.ErrTooMany) {
		return r.parts.store.DropRequest(ctx, request)
	}
	if err == nil {
		err = r.answered(ctx, request, letter)
	}
	if err == nil {
		err = r.parts.prover.throttle.Take(ctx, mails) // only now, because a failed answer is retried
	}
	if errors.Is(err, tenants.ErrTooMany) {
		return nil // another process sent one meanwhile
	}
	return err
}

func (r *requests) answered(ctx context.Context, request tenants.AccountRequest, letter tenants.LinkMail) (err error) {
	known := r.parts.letters.knownMail(request.Email)
	if request.Kind == tenants.RequestSignUp {
		request.OnlyFirst, err = r.parts.entrance.takes(ctx, request.Email)
	}
	if err == nil {
		err = r.parts.store.AnswerRequest(ctx, request, letter, known)
	}
	if isRefusal(err) || errors.Is(err, tenants.ErrNotFirst) {
		return r.parts.store.RefuseSignUp(ctx, request, r.parts.letters.refusedMail(request.Email), known)
	}
	return err
}

// SendVerification sends a logged-in person the link to verify their address again. Too many are a
// tenants.TooMany.
func (r *requests) SendVerification(ctx context.Context, user tenants.User) error {
	if user.VerifiedAt != nil {
		return nil
	}
	if err := r.parts.prover.throttle.Take(ctx, mailsTo(string(tenants.RequestVerify), user.Email)); err != nil {
		return err
	}
	return r.parts.store.SendLetters(ctx, user.ID, []tenants.LinkMail{r.parts.letters.verifyLetter(user.Email)})
}

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
