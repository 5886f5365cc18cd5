package identity

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"palimpsest/tenants"
)

// disposable lists the best-known domains of disposable addresses, one a line.
//
//go:embed disposable.txt
var disposable string

// SignUpPolicy says who may sign up without an invitation.
type SignUpPolicy string

// Who may sign up.
const (
	OpenToAll     SignUpPolicy = "open"
	OpenToInvited SignUpPolicy = "invite"  // nobody without an invitation, but for the first person
	OpenToDomains SignUpPolicy = "domains" // who has an address at an allowed domain
)

// SignUps says who may sign up. The first person of an installation, who becomes its
// operator, always may.
type SignUps struct {
	Open    SignUpPolicy // empty: to all
	Allowed []string     // domains, for OpenToDomains

	RefuseDisposable bool     // addresses at the best-known domains that give them to anybody
	Blocked          []string // domains that are refused in any case

	// Quiet answers sign-ups by mail, so that they do not tell whether an address is known.
	// Its owner is sent a mail then, too. The first person has nobody to learn of.
	Quiet bool

	// PerPlace is how many may sign up from one place within an hour, without an invitation; 0
	// for any number.
	PerPlace int

	// Workspaces is how many workspaces a person may own; who owns so many creates no more. 0 for any number.
	Workspaces int
}

// ParseDomains reads domains that are separated by commas, as sign-ups are compared
// with them.
func ParseDomains(list string) ([]string, error) {
	var domains []string
	for domain := range strings.SplitSeq(list, ",") {
		domain = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(domain), "@"))
		if domain == "" {
			continue
		}
		if !strings.Contains(domain, ".") || strings.ContainsAny(domain, "@/: \t*") {
			return nil, fmt.Errorf("%q is not a domain such as example.com", domain)
		}
		domains = append(domains, domain)
	}
	return domains, nil
}

// entrance decides who may sign up.
type entrance struct {
	store    Store
	throttle tenants.Throttle
	signUps  SignUps
	begun    atomic.Bool // someone has signed up
}

// SetSignUps says who may sign up. It must be called before the service is used.
func (e *entrance) SetSignUps(signUps SignUps) {
	if signUps.RefuseDisposable {
		for line := range strings.Lines(disposable) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				signUps.Blocked = append(slices.Clip(signUps.Blocked), line)
			}
		}
	}
	e.signUps = signUps
}

// TakesSignUps reports whether someone who was not invited may try to sign up.
func (e *entrance) TakesSignUps(ctx context.Context) (bool, error) {
	if e.signUps.Open != OpenToInvited {
		return true, nil
	}
	return e.IsNew(ctx)
}

// maySignUp returns why nobody signs up with an address: tenants.ErrInviteOnly, a
// tenants.Invalid of the field email, or a tenants.TooMany. It says nothing of whether
// the address is known. onlyFirst: someone may as long as nobody was before them.
func (e *entrance) maySignUp(ctx context.Context, email string) (onlyFirst bool, err error) {
	if onlyFirst, err = e.takes(ctx, email); err != nil {
		return false, err
	}
	return onlyFirst, e.countPlace(ctx)
}

// byMail reports whether a sign-up is answered by mail, and if not whether it is for the
// first person alone. Where sign-ups tell what is known it returns tenants.ErrEmailTaken.
func (s *Service) byMail(ctx context.Context, email string, onlyFirst bool) (mail, first bool, err error) {
	switch {
	case s.signUps.Quiet && s.mails.RequireVerified:
		return true, onlyFirst, nil
	case s.signUps.Quiet:
		isNew, err := s.IsNew(ctx)
		return !isNew, isNew, err
	case !s.mails.RequireVerified:
		return false, onlyFirst, nil
	}
	switch _, _, err := s.store.UserByEmail(ctx, email); {
	case err == nil:
		return false, false, tenants.ErrEmailTaken
	case !errors.Is(err, tenants.ErrNotFound):
		return false, false, fmt.Errorf("sign up: %w", err)
	}
	return true, onlyFirst, nil
}

// notFirst answers a sign-up that was for the first person until another signed up.
func (s *Service) notFirst(ctx context.Context, email, password, workspace string) error {
	if err := s.refusal(email); err != nil {
		return err
	}
	return s.askSignUp(ctx, email, password, workspace)
}

// takes returns why nobody signs up with an address, as maySignUp does, and counts
// nothing.
func (e *entrance) takes(ctx context.Context, email string) (onlyFirst bool, err error) {
	refusal := e.refusal(email)
	if refusal == nil {
		return false, nil
	}
	isNew, err := e.IsNew(ctx)
	if err != nil {
		return false, fmt.Errorf("sign up: %w", err)
	}
	if !isNew {
		return false, refusal
	}
	return true, nil
}

// refusal returns why nobody signs up with an address but the first person.
func (e *entrance) refusal(email string) error {
	_, domain, _ := strings.Cut(email, "@")
	switch {
	case e.signUps.Open == OpenToInvited:
		return tenants.ErrInviteOnly
	case e.signUps.Open == OpenToDomains && !slices.Contains(e.signUps.Allowed, domain):
		return tenants.Invalid{Field: "email", Message: "must be an address at " + strings.Join(e.signUps.Allowed, " or ") + ", or sign up through an invitation"}
	case slices.ContainsFunc(e.signUps.Blocked, func(blocked string) bool { return within(domain, blocked) }):
		return tenants.Invalid{Field: "email", Message: "must be a lasting address: this installation takes none at " + domain}
	}
	return nil
}

// isRefusal reports whether an error of takes is an answer, and no failure.
func isRefusal(err error) bool {
	_, invalid := errors.AsType[tenants.Invalid](err)
	return invalid || errors.Is(err, tenants.ErrInviteOnly)
}

// countPlace counts a sign-up from the place of the context's actor; the command line
// has none.
func (e *entrance) countPlace(ctx context.Context) error {
	place := tenants.ActorOf(ctx).Place()
	if e.signUps.PerPlace == 0 || place == "" {
		return nil
	}
	err := e.throttle.Take(ctx, tenants.Count{Of: "sign-ups from " + place, Most: e.signUps.PerPlace, Window: signUpWindow})
	if many, is := errors.AsType[tenants.TooMany](err); is {
		return tenants.TooMany{Wait: many.Wait, What: fmt.Sprintf("sign-ups from your network (%d an hour); with the link of an invitation you can sign up now", e.signUps.PerPlace)}
	}
	return err
}

// within reports whether a domain is another or lies below it.
func within(domain, above string) bool {
	return domain == above || strings.HasSuffix(domain, "."+above)
}

// IsNew reports whether nobody has signed up in this installation yet.
func (e *entrance) IsNew(ctx context.Context) (bool, error) {
	if e.begun.Load() {
		return false, nil
	}
	has, err := e.store.HasWorkspaces(ctx)
	if has {
		e.begun.Store(true) // and stays so
	}
	return !has && err == nil, err
}
