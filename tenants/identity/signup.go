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

// SignUpPolicy is the policy for sign-ups without an invitation.
type SignUpPolicy string

// The policies for sign-ups.
const (
	OpenToAll     SignUpPolicy = "open"
	OpenToInvited SignUpPolicy = "invite"  // invited people only, except the first person
	OpenToDomains SignUpPolicy = "domains" // people with an address at an allowed domain
)

// SignUps are the rules for sign-ups. The first person of an installation, who becomes its operator, may
// always sign up.
type SignUps struct {
	Open    SignUpPolicy // "" for everyone
	Allowed []string     // domains, for OpenToDomains

	RefuseDisposable bool     // addresses at the best-known domains of disposable addresses
	Blocked          []string // domains that are always refused

	// Quiet answers sign-ups by mail, so that they do not reveal whether an address is known. The owner of a
	// known address then also gets a mail. The first person may be answered directly, since there is no other
	// address to reveal.
	Quiet bool

	// PerPlace bounds the sign-ups from one place within an hour, without an invitation; 0 means no limit.
	PerPlace int

	// Workspaces bounds the workspaces that a person may own; 0 means no limit.
	Workspaces int
}

// ParseDomains parses a comma-separated list of domains into the form that sign-ups are compared with.
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

// SetSignUps sets the rules for sign-ups. It must be called before the service is used.
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

// TakesSignUps reports whether people without an invitation may try to sign up.
func (e *entrance) TakesSignUps(ctx context.Context) (bool, error) {
	if e.signUps.Open != OpenToInvited {
		return true, nil
	}
	return e.IsNew(ctx)
}

// maySignUp returns why an address may not sign up: tenants.ErrInviteOnly, a tenants.Invalid for email, or a
// tenants.TooMany. The error does not reveal whether the address is known. With onlyFirst, the address may
// sign up only as the installation's first person.
func (e *entrance) maySignUp(ctx context.Context, email string) (onlyFirst bool, err error) {
	if onlyFirst, err = e.takes(ctx, email); err != nil {
		return false, err
	}
	return onlyFirst, e.countPlace(ctx)
}

// byMail reports whether a sign-up is answered by mail, and if not whether it is for the first person alone.
// If addresses must be verified and sign-ups are not quiet, it returns tenants.ErrEmailTaken for a known
// address.
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

// notFirst answers a sign-up that was for the first person, after another has become the first.
func (s *Service) notFirst(ctx context.Context, email, password, workspace string) error {
	if err := s.refusal(email); err != nil {
		return err
	}
	return s.askSignUp(ctx, email, password, workspace)
}

// takes returns why an address may not sign up, as maySignUp does, without counting.
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

// refusal returns why an address may not sign up, unless it is the first person's.
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

// isRefusal reports whether an error of takes is a refusal instead of a failure.
func isRefusal(err error) bool {
	_, invalid := errors.AsType[tenants.Invalid](err)
	return invalid || errors.Is(err, tenants.ErrInviteOnly)
}

// countPlace counts a sign-up from the place of the context's actor. It skips the command line, since that
// has no place.
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

// within reports whether a domain is equal to another or its subdomain.
func within(domain, above string) bool {
	return domain == above || strings.HasSuffix(domain, "."+above)
}

// IsNew reports whether the installation has no users yet.
func (e *entrance) IsNew(ctx context.Context) (bool, error) {
	if e.begun.Load() {
		return false, nil
	}
	has, err := e.store.HasWorkspaces(ctx)
	if has {
		e.begun.Store(true) // permanently
	}
	return !has && err == nil, err
}
