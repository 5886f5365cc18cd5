package identity

import (
	"context"
	"errors"
	"time"

	"palimpsest/tenants"
)

// How often may be what people and strangers try. The account of a failed try counts from
// everywhere, so it has the highest limit: an attacker's place is full long before.
const (
	failureWindow   = 15 * time.Minute
	failuresOfPair  = 10 // of one account from one place
	failuresOfPlace = 30 // of all accounts from one place
	failuresOfOne   = 40 // of one account from everywhere

	codesOfPair = 5  // wrong codes of a second factor, from a person who has the password
	codesOfOne  = 10 // a code has six digits: the least that an attacker everywhere may try

	asksOfPlace = 10 // links that are asked for from one place in failureWindow
	mailsToOne  = 5  // mails of a kind that others have sent to one address in failureWindow

	signUpWindow    = time.Hour
	changesOfOne    = 20 // changes that a person gets a mail about, in signUpWindow
	invitesToOne    = 10 // invitations to one address, of all workspaces, in inviteWindow
	invitesOfOne    = 200
	inviteWindow    = time.Hour
	othersOfPlace   = 10 // failed passkeys, and failed sign-ons, from one place
	usedPlaceMonths = 3  // how long a place that a person logged in from is known
)

// tries is where failed tries to prove who a person is are counted.
type tries struct {
	email   string // whose account it is
	from    string // the place
	pair    tenants.Count
	account tenants.Count
	place   []tenants.Count // one or none
}

// logInTries counts the failed log-ins with an address from the address of a client.
func logInTries(email, address string) tries {
	from := tenants.PlaceText(address)
	return tries{
		email: email, from: from,
		pair:    tenants.Count{Of: "failures of " + email + " from " + from, Most: failuresOfPair, Window: failureWindow},
		account: tenants.Count{Of: "failures of " + email, Most: failuresOfOne, Window: failureWindow},
		place:   []tenants.Count{{Of: "failures from " + from, Most: failuresOfPlace, Window: failureWindow}},
	}
}

// confirmTries counts how often a person who is logged in mistyped their password.
func confirmTries(user tenants.User, from string) tries {
	return tries{
		email: user.Email, from: from,
		pair:    tenants.Count{Of: "unconfirmed by " + user.ID.String() + " from " + from, Most: failuresOfPair, Window: failureWindow},
		account: tenants.Count{Of: "unconfirmed by " + user.ID.String(), Most: failuresOfOne, Window: failureWindow},
	}
}

// codeTries counts the wrong codes of a person's second factor.
func codeTries(user tenants.User, from string) tries {
	return tries{
		email: user.Email, from: from,
		pair:    tenants.Count{Of: "codes of " + user.ID.String() + " from " + from, Most: codesOfPair, Window: failureWindow},
		account: tenants.Count{Of: "codes of " + user.ID.String(), Most: codesOfOne, Window: failureWindow},
	}
}

// mayTry returns a tenants.TooMany if too many tries failed: of the pair, from the place, or
// with the account, unless its person has logged in from this place lately.
func (p *prover) mayTry(ctx context.Context, tries tries) error {
	if err := p.throttle.Check(ctx, append(tries.place, tries.pair)...); err != nil {
		return err
	}
	full := p.throttle.Check(ctx, tries.account)
	if !errors.Is(full, tenants.ErrTooMany) {
		return full
	}
	used, err := p.store.UsedPlace(ctx, tries.email, tries.from, p.now().AddDate(0, -usedPlaceMonths, 0))
	if used {
		return nil
	}
	return errors.Join(full, err)
}

// failed counts a try that failed and returns its error, with what went wrong with counting.
func (p *prover) failed(ctx context.Context, tries tries, err error) error {
	failures := []error{err}
	for _, count := range append(tries.place, tries.pair, tries.account) {
		if counted := p.throttle.Take(ctx, count); !errors.Is(counted, tenants.ErrTooMany) {
			failures = append(failures, counted)
		}
	}
	return errors.Join(failures...)
}

// askingFrom counts what is asked for from one place.
func askingFrom(kind tenants.RequestKind, address string) tenants.Count {
	return tenants.Count{Of: "asked to " + string(kind) + " from " + tenants.PlaceText(address), Most: asksOfPlace, Window: failureWindow}
}

// mailsTo counts the mails of a kind to an address that others have sent. Kinds are apart:
// invitations to an address do not use up the links that its owner asks for.
func mailsTo(kind, email string) tenants.Count {
	return tenants.Count{Of: kind + " mails to " + email, Most: mailsToOne, Window: failureWindow}
}

// Throttle returns what slows down those who log in beside the service.
func (p *prover) Throttle() tenants.PlaceThrottle {
	return tenants.PlaceThrottle{Throttle: p.throttle, Most: othersOfPlace, Window: failureWindow}
}
