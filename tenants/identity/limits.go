package identity

import (
	"context"
	"errors"
	"time"

	"palimpsest/tenants"
)

// Limits for attempts by users and strangers. A failed attempt counts for its account from all places, so
// that limit is the highest: an attacker reaches the limit of their own place long before.
const (
	failureWindow   = 15 * time.Minute
	failuresOfPair  = 10 // of one account from one place
	failuresOfPlace = 30 // of all accounts from one place
	failuresOfOne   = 40 // of one account from everywhere

	codesOfPair = 5  // wrong codes of a second factor, by a person who has the password
	codesOfOne  = 10 // the lowest limit because a code has only six digits

	asksOfPlace = 10 // requested links from one place in failureWindow
	mailsToOne  = 5  // mails of a kind to one address, requested by others, in failureWindow

	signUpWindow    = time.Hour
	changesOfOne    = 20 // changes that notify a person by mail, in signUpWindow
	invitesToOne    = 10 // invitations to one address, from all workspaces, in inviteWindow
	invitesOfOne    = 200
	inviteWindow    = time.Hour
	othersOfPlace   = 10 // failed passkeys, and failed sign-ons, from one place
	usedPlaceMonths = 3  // how long a place of a person's log-in is known
)

// tries names the counters of failed attempts to prove a person's identity.
type tries struct {
	email   string // the account's address
	from    string // the place
	pair    tenants.Count
	account tenants.Count
	place   []tenants.Count // at most one
}

// logInTries counts failed log-ins with an address from a client's address.
func logInTries(email, address string) tries {
	from := tenants.PlaceText(address)
	return tries{
		email: email, from: from,
		pair:    tenants.Count{Of: "failures of " + email + " from " + from, Most: failuresOfPair, Window: failureWindow},
		account: tenants.Count{Of: "failures of " + email, Most: failuresOfOne, Window: failureWindow},
		place:   []tenants.Count{{Of: "failures from " + from, Most: failuresOfPlace, Window: failureWindow}},
	}
}

// confirmTries counts a logged-in person's wrong passwords.
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

// mayTry returns a tenants.TooMany after too many failures: of the pair, from the place, or of the account
// unless its person has recently logged in from this place.
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

// failed counts a failed attempt and returns its error, joined with errors of counting.
func (p *prover) failed(ctx context.Context, tries tries, err error) error {
	failures := []error{err}
	for _, count := range append(tries.place, tries.pair, tries.account) {
		if counted := p.throttle.Take(ctx, count); !errors.Is(counted, tenants.ErrTooMany) {
			failures = append(failures, counted)
		}
	}
	return errors.Join(failures...)
}

// askingFrom counts the requests from one place.
func askingFrom(kind tenants.RequestKind, address string) tenants.Count {
	return tenants.Count{Of: "asked to " + string(kind) + " from " + tenants.PlaceText(address), Most: asksOfPlace, Window: failureWindow}
}

// mailsTo counts the mails of a kind to an address that others have requested. Kinds count separately, so
// that invitations to an address do not use up its owner's links.
func mailsTo(kind, email string) tenants.Count {
	return tenants.Count{Of: kind + " mails to " + email, Most: mailsToOne, Window: failureWindow}
}

// Throttle returns the rate limiter for other ways to log in.
func (p *prover) Throttle() tenants.PlaceThrottle {
	return tenants.PlaceThrottle{Throttle: p.throttle, Most: othersOfPlace, Window: failureWindow}
}
