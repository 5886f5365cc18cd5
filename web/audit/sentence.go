package audit

import (
	"cmp"
	"strings"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// lineChanges is how many changed values fit on a line.
const lineChanges = 4

// shortID is how many characters of an id a sentence contains.
const shortID = 8

// doneWith returns the words for each action, to follow the actor. A "%" stands for the object.
func doneWith() map[tenants.Action]string {
	return map[tenants.Action]string{
		tenants.KeyCreated: "created the API key %", tenants.KeyRevoked: "revoked the API key %", tenants.KeyChanged: "changed the API key %", tenants.KeyRotated: "rotated the API key %",
		tenants.ProviderKeyAdded: "added the provider key %", tenants.ProviderKeyRemoved: "removed the provider key %",
		tenants.ProviderKeyChanged: "changed the provider key %", tenants.ProviderKeyReplaced: "replaced the provider key %",
		tenants.PipelineSaved: "saved the pipeline", tenants.PipelineRestored: "restored an earlier pipeline", tenants.ConfigImported: "imported a configuration",
		tenants.ModelWindowSet: "set the context window of %", tenants.ModelWindowRemoved: "removed the context window that was set for %",
		tenants.BudgetsSet:     "set the budgets of workspace, members and projects",
		tenants.ModelPricesSet: "set the prices of models", tenants.ModelLimitsSet: "set the limits of models",
		tenants.RetentionSet: "set how long sessions are kept", tenants.SettingsSaved: "changed the settings",
		tenants.SessionDeleted: "deleted the session %", tenants.SessionExported: "exported the session %", tenants.EndUserErased: "erased the end user %",
		tenants.PinAdded: "pinned a message of the session %", tenants.PinRemoved: "unpinned a message of the session %", tenants.CompactAsked: "asked to compact the session %",
		tenants.SessionPinned: "pinned the session %", tenants.SessionUnpinned: "unpinned the session %",
		tenants.CommentAdded: "commented on the session %", tenants.CommentDeleted: "deleted a comment on the session %",
		tenants.SessionScored: "scored the session %", tenants.SessionLabeled: "changed the labels of the session %",
		tenants.RequestSentAgain: "sent the request % again",
		tenants.LoginOpened:      "logged in", tenants.LoginEnded: "ended a login",
		tenants.WorkspaceCreated: "created the workspace %", tenants.WorkspaceRenamed: "renamed the workspace", tenants.WorkspaceExported: "exported the workspace",
		tenants.WorkspaceSuspended: "suspended the workspace", tenants.WorkspaceResumed: "resumed the workspace",
		tenants.PasswordChanged: "changed their password", tenants.EmailChanged: "changed their address", tenants.EmailVerified: "verified the address %",
		tenants.InvitationCreated: "invited %", tenants.InvitationResent: "sent the invitation of % again", tenants.InvitationRevoked: "revoked the invitation of %",
		tenants.MemberJoined: "joined the workspace", tenants.MemberRoleChanged: "changed the role of %", tenants.MemberRemoved: "removed %", tenants.MemberLeft: "left the workspace",
		tenants.PatternAdded: "added a pattern", tenants.PatternChanged: "changed a pattern", tenants.PatternDeleted: "deleted a pattern",
		tenants.AuditDownloaded: "downloaded the audit log", tenants.PlanChanged: "changed the plan",
		tenants.CheckoutOpened: "opened the checkout", tenants.PortalOpened: "opened the billing portal",
		tenants.SecondFactorOn: "turned the second factor on", tenants.SecondFactorOff: "turned the second factor off",
		tenants.RecoveryCodeUsed: "used a recovery code", tenants.RecoveryCodesChanged: "made new recovery codes",
		tenants.PasskeyAdded: "added the passkey %", tenants.PasskeyRenamed: "renamed the passkey %", tenants.PasskeyRemoved: "removed the passkey %",
		tenants.PasskeyCopied: "used the passkey %, which seems to have been copied",
		tenants.SignOnSaved:   "saved the single sign-on of %", tenants.SignOnRemoved: "removed the single sign-on of %",
		tenants.DomainClaimed: "claimed the domain %", tenants.DomainProven: "proved the domain %", tenants.DomainRemoved: "removed the domain %",
		tenants.AlertChannelAdded: "added the alert channel %", tenants.AlertChannelChanged: "changed the alert channel %", tenants.AlertChannelRemoved: "removed the alert channel %",
		tenants.AlertsSaved: "changed the settings of alerts",
	}
}

// sentence is an entry in words: actor, action, object and outcome.
type sentence struct {
	Verb, Object, Rest string // Object is "" if the verb says it all
	Outcome            string // the changes; "" if absent or too long for a line
}

// newSentence returns the sentence of an entry with these changes.
func newSentence(entry *tenants.AuditEntry, changes []change) sentence {
	words, is := doneWith()[entry.Action]
	if !is {
		return sentence{Verb: strings.NewReplacer("_", " ", ".", " ").Replace(string(entry.Action)) + ":", Object: objectOf(entry)}
	}
	var s sentence
	verb, rest, names := strings.Cut(words, "%")
	if s.Verb = strings.TrimSpace(verb); names {
		s.Object, s.Rest = objectOf(entry), rest
	}
	if len(changes) <= lineChanges && entry.Before != nil && entry.After != nil {
		said := make([]string, len(changes))
		for i, change := range changes {
			said[i] = change.words()
		}
		s.Outcome = strings.Join(said, " · ")
	}
	return s
}

// objectOf names an entry's subject by its name or address, or else by the beginning of its id.
func objectOf(entry *tenants.AuditEntry) string {
	name := ""
	for _, field := range []string{"name", "email"} {
		name = cmp.Or(name, entry.After[field], entry.Before[field])
	}
	if name == "" {
		name = entry.Target
		if _, err := uuid.Parse(name); err == nil {
			name = name[:shortID]
		}
	}
	return name
}

// words summarizes a change.
func (c change) words() string {
	switch {
	case c.Before == "":
		return c.Name + ": " + c.After
	case c.After == "":
		return c.Name + " no longer " + c.Before
	}
	return c.Name + ": " + c.Before + " → " + c.After
}
