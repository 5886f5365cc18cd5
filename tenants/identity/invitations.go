package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// maxInvited bounds the people in one invitation call.
const maxInvited = 50

// InvitationStore stores invitations under the hashes of their links' secrets. The methods of Invitations
// document its return values.
type InvitationStore interface {
	// CreateInvitations stores all or fails, and sends their mails.
	CreateInvitations(ctx context.Context, workspace tenants.WorkspaceID, wanted []tenants.NewInvitation) error
	// RenewInvitation stores the other link and sends its mail in one transaction.
	RenewInvitation(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, sent, expires time.Time, hash []byte, letter tenants.InvitationMail) error
	RevokeInvitation(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
	Invitations(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Invitation, error)
	InvitationByHash(ctx context.Context, hash []byte) (tenants.Invitation, error)
	AcceptInvitation(ctx context.Context, hash []byte, user, login uuid.UUID) error
	SignUpInvited(ctx context.Context, hash []byte, joining tenants.Joining) (tenants.User, tenants.Membership, error)
}

// Invitations invites people to workspaces, and adds them as members.
type Invitations struct {
	people    *Service
	store     InvitationStore
	publicURL string
}

// NewInvitations returns Invitations with links below publicURL, which has no slash at its end.
func NewInvitations(people *Service, store InvitationStore, publicURL string) *Invitations {
	return &Invitations{people: people, store: store, publicURL: publicURL}
}

// Invite invites people to a role on behalf of the context's actor. It invites all or fails. A pending
// invitation to the same address is revoked. Bad input is a tenants.Invalid for email or role;
// tenants.ErrDenied means that the actor does not manage the role, and a tenants.TooMany that an address or
// the workspace has too many invitations. The answer does not depend on whether an address has an account.
func (i *Invitations) Invite(ctx context.Context, workspace tenants.WorkspaceID, emails []string, role tenants.Role) ([]tenants.Invited, error) {
	addresses, err := normalEmails(emails)
	if err != nil {
		return nil, err
	}
	if err := tenants.CheckRole(role); err != nil {
		return nil, err
	}
	invited, wanted := make([]tenants.Invited, len(addresses)), make([]tenants.NewInvitation, len(addresses))
	for n, email := range addresses {
		secret, now := rand.Text(), i.people.now()
		wanted[n] = tenants.NewInvitation{
			Invitation: tenants.Invitation{
				ID: uuid.Must(uuid.NewV7()), Email: email, Role: role, CreatedAt: now, SentAt: now, ExpiresAt: now.Add(tenants.InvitationAge),
			},
			Hash: hashLink(secret), Mail: i.letter(ctx, secret, &invited[n]),
		}
	}
	if err := i.store.CreateInvitations(ctx, workspace, wanted); err != nil {
		return nil, fmt.Errorf("invite: %w", err)
	}
	return invited, nil
}

// Resend sends a pending invitation again, with another link and a full week to accept it. The previous link
// ends. It returns tenants.ErrNotFound, tenants.ErrDenied, and a tenants.TooMany within a minute of the last
// time, or as Invite does.
func (i *Invitations) Resend(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.Invited, error) {
	var invited tenants.Invited
	secret, now := rand.Text(), i.people.now()
	err := i.store.RenewInvitation(ctx, workspace, id, now, now.Add(tenants.InvitationAge), hashLink(secret), i.letter(ctx, secret, &invited))
	if err != nil {
		return tenants.Invited{}, fmt.Errorf("resend: %w", err)
	}
	return invited, nil
}

// Revoke ends a pending invitation. It returns tenants.ErrNotFound and tenants.ErrDenied.
func (i *Invitations) Revoke(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	if err := i.store.RevokeInvitation(ctx, workspace, id); err != nil {
		return fmt.Errorf("revoke: %w", err)
	}
	return nil
}

// Pending returns the open invitations of a workspace, including expired ones, the newest first.
func (i *Invitations) Pending(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Invitation, error) {
	pending, err := i.store.Invitations(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("pending: %w", err)
	}
	return pending, nil
}

// Find returns the invitation of a link's secret, or tenants.ErrInvitation if it cannot be accepted.
func (i *Invitations) Find(ctx context.Context, secret string) (tenants.Invitation, error) {
	found, err := i.store.InvitationByHash(ctx, hashLink(secret))
	if err != nil {
		return tenants.Invitation{}, fmt.Errorf("find: %w", err)
	}
	return found, nil
}

// Accept adds a person who is logged in with the invited address to the workspace, and switches their login
// to it. It returns tenants.ErrInvitation, tenants.ErrOtherAddress, and tenants.ErrSignOnOnly for a login
// limited to one workspace.
func (i *Invitations) Accept(ctx context.Context, secret string, who tenants.Principal) error {
	if !who.Login.SignOn.IsZero() {
		return tenants.ErrSignOnOnly
	}
	if err := i.store.AcceptInvitation(ctx, hashLink(secret), who.User.ID, who.Login.ID); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	i.people.Forget()
	return nil
}

// SignUp creates the invited address's account, adds it to the workspace and logs it in. It returns the
// login's token. If workspace is not "", it also creates the person's own workspace. Bad input is a
// tenants.Invalid or tenants.ErrEmailTaken; tenants.ErrInvitation means that the invitation has ended. If
// addresses must be verified first, or sign-ups are quiet, it returns tenants.ErrMailSent without a login.
func (i *Invitations) SignUp(ctx context.Context, secret, password, workspace, userAgent string) (tenants.Principal, string, error) {
	if strings.TrimSpace(workspace) != "" {
		var err error
		if workspace, err = checkWorkspace(workspace); err != nil {
			return tenants.Principal{}, "", err
		}
	}
	found, err := i.Find(ctx, secret)
	if err == nil {
		err = checkPassword(password, found.Email)
	}
	if err != nil { // before hashing a password unnecessarily
		return tenants.Principal{}, "", err
	}
	passwordHash, err := i.people.hash(ctx, password)
	if err != nil {
		return tenants.Principal{}, "", err
	}
	joining := tenants.Joining{PasswordHash: passwordHash, Workspace: strings.TrimSpace(workspace), Mails: i.letters}
	if i.people.signUps.Quiet {
		if joining.Known, err = i.known(ctx, found.Email); err != nil {
			return tenants.Principal{}, "", err
		}
	}
	user, membership, err := i.store.SignUpInvited(ctx, hashLink(secret), joining)
	if i.people.signUps.Quiet && errors.Is(err, tenants.ErrEmailTaken) {
		return tenants.Principal{}, "", tenants.ErrMailSent
	}
	if err != nil {
		return tenants.Principal{}, "", fmt.Errorf("sign up: %w", err)
	}
	if i.people.mails.RequireVerified || i.people.signUps.Quiet {
		return tenants.Principal{}, "", tenants.ErrMailSent // because the inviter has seen the link too
	}
	return i.people.open(ctx, user, []tenants.Membership{membership}, userAgent)
}

// known returns the function that writes the mail to the invited owner of a known address. The mail is empty
// after too many of its kind.
func (i *Invitations) known(ctx context.Context, email string) (func(email string) tenants.Mail, error) {
	err := i.people.throttle.Take(ctx, mailsTo(string(tenants.RequestSignUp), email))
	if errors.Is(err, tenants.ErrTooMany) {
		return func(string) tenants.Mail { return tenants.Mail{} }, nil
	}
	return i.people.knownMail, err
}

// letters returns the mails of a sign-up through an invitation.
func (i *Invitations) letters(email string) []tenants.LinkMail {
	if i.people.mails.PublicURL == "" {
		return nil
	}
	return []tenants.LinkMail{i.people.verifyLetter(email)}
}

// letter returns the function that writes an invitation's mail, and stores the invitation and its link in
// invited. It returns a tenants.TooMany after too many recent mails.
func (i *Invitations) letter(ctx context.Context, secret string, invited *tenants.Invited) tenants.InvitationMail {
	return func(invitation tenants.Invitation) (tenants.Mail, error) {
		err := i.people.throttle.Take(ctx,
			tenants.Count{Of: "invitations to " + invitation.Email, Most: invitesToOne, Window: inviteWindow},
			tenants.Count{Of: "invitations of " + invitation.Workspace.ID.String(), Most: invitesOfOne, Window: inviteWindow})
		if many, is := errors.AsType[tenants.TooMany](err); is {
			return tenants.Mail{}, tenants.TooMany{Wait: many.Wait, What: "invitations to this address or from this workspace"}
		}
		if err != nil {
			return tenants.Mail{}, err
		}
		*invited = tenants.Invited{Invitation: invitation, Link: i.publicURL + "/invite/" + secret}
		return mailOf(*invited), nil
	}
}

// mailOf returns the mail to an invited person.
func mailOf(invited tenants.Invited) tenants.Mail {
	name := oneLine(invited.Workspace.Name)
	opening := fmt.Sprintf("You are invited to the workspace “%s” on Palimpsest as %s.", name, invited.Role)
	if invited.InvitedBy != "" {
		opening = fmt.Sprintf("%s invites you to the workspace “%s” on Palimpsest as %s.", invited.InvitedBy, name, invited.Role)
	}
	return tenants.Mail{
		To: invited.Email, Subject: "Invitation to " + name + " on Palimpsest",
		Text: fmt.Sprintf("%s\n\nAccept it here:\n%s\n\nThe link is for %s only. It works once, until %s.\nWhoever did not expect it need do nothing.\n",
			opening, invited.Link, invited.Email, invited.ExpiresAt.UTC().Format("2 Jan 2006, 15:04 UTC")),
	}
}

// normalEmails returns addresses in their stored form, without duplicates.
func normalEmails(emails []string) ([]string, error) {
	var addresses []string
	for _, email := range emails {
		if strings.TrimSpace(email) == "" {
			continue
		}
		address, err := tenants.CheckEmail(email)
		if err != nil {
			return nil, tenants.Invalid{Field: "email", Message: fmt.Sprintf("%q is not an e-mail address such as ada@example.com", strings.TrimSpace(email))}
		}
		if !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	if len(addresses) == 0 || len(addresses) > maxInvited {
		return nil, tenants.Invalid{Field: "email", Message: fmt.Sprintf("must name 1 to %d addresses", maxInvited)}
	}
	return addresses, nil
}

// hashLink returns the stored form of a link's secret, which has 130 random bits.
func hashLink(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// oneLine replaces control characters, because a line break would end a mail header.
func oneLine(text string) string {
	return strings.Map(func(letter rune) rune {
		if unicode.IsControl(letter) {
			return ' '
		}
		return letter
	}, text)
}
