package session

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// A form's action, as in the address of the next page.
const (
	donePinned   = "pinned"
	doneKept     = "kept"
	doneLet      = "let"
	doneReleased = "released"
	doneRestored = "restored"
	doneAsked    = "asked"
)

// compactForm asks for the instructions of an epoch.
type compactForm struct {
	Path, Instructions, Error string
}

// deleteForm asks for the name of the session to delete.
type deleteForm struct {
	Path, Name, Typed string
	Wrong             bool
}

// Forms handles the page's forms, which change the session.
type Forms struct{ *Handler }

// Forms returns the handlers of the page's forms.
func (h *Handler) Forms() Forms { return Forms{h} }

// changed returns a form's subject. A person who may not read a lane may not change it, because they could
// not see the effect.
func (h Forms) changed(c echo.Context, who tenants.Principal) (subject, error) {
	of, err := h.subject(c, who, c.FormValue("lane"))
	if err == nil && !of.mayRead {
		err = tenants.ErrTextDenied
	}
	return of, err
}

// after is the page's address after a form was sent.
func after(of subject, message, done string) string {
	return paths.With(paths.Session(of.detail.ID), "lane", of.lane.ID.String(), "m", message, "done", done)
}

// refuse shows the page again with the reason why a form had no effect.
func (h Forms) refuse(c echo.Context, who tenants.Principal, of subject, problem string) error {
	return h.page(c, who, http.StatusUnprocessableEntity, of, func(m *model) { m.Problem = problem })
}

// Pin pins the turn of a message, so that it is not compressed.
func (h Forms) Pin(c echo.Context, who tenants.Principal) error {
	return h.keep(c, who, nil, donePinned)
}

// Restore puts turns back into the next request. They are pinned, and the request makes an epoch that
// contains them as the client sent them.
func (h Forms) Restore(c echo.Context, who tenants.Principal) error {
	order := h.order(who, "")
	return h.keep(c, who, &order, doneRestored)
}

// keep pins the turns chosen in a form and leaves an order, if any.
func (h Forms) keep(c echo.Context, who tenants.Principal, order *session.Order, done string) error {
	of, err := h.changed(c, who)
	if err != nil {
		return err
	}
	messages, problem, err := h.pinnable(c, who, of)
	switch {
	case err != nil:
		return err
	case problem != "":
		return h.refuse(c, who, of, problem)
	}
	if err := h.pin(c.Request().Context(), who, of, messages, order); err != nil {
		return err
	}
	return layout.Redirect(c, after(of, strconv.Itoa(messages[0]), done))
}

// order returns a person's order, dated now.
func (h Forms) order(who tenants.Principal, instructions string) session.Order {
	return session.Order{At: h.deps.Now().UTC().Truncate(time.Microsecond), By: who.User.ID, Instructions: instructions}
}

// pin pins messages and leaves an order, if any, in one transaction with its audit entry.
func (h Forms) pin(ctx context.Context, who tenants.Principal, of subject, messages []int, order *session.Order) error {
	texts := make([]string, len(messages))
	for i, message := range messages {
		texts[i] = strconv.Itoa(message)
	}
	fields := tenants.Fields{"lane": of.lane.ID.String(), "message": strings.Join(texts, ", ")}
	if order != nil {
		fields["put_back"] = "next request"
	}
	return h.noted(ctx, who, tenants.Change{Action: tenants.PinAdded, Target: of.detail.ID.String(), After: fields}, func(tenant tenants.Tenant) error {
		for _, message := range messages {
			pin := session.Pin{Lane: of.lane.ID, Message: message, By: who.User.ID}
			if err := h.deps.Sessions.Pin(ctx, tenant, pin); err != nil {
				return err
			}
		}
		if order == nil {
			return nil
		}
		return h.deps.Sessions.Ask(ctx, tenant, of.lane.ID, *order)
	})
}

// noted makes a change and logs it in one transaction.
func (h Forms) noted(ctx context.Context, who tenants.Principal, change tenants.Change, do func(tenant tenants.Tenant) error) error {
	return h.deps.Audit.Together(ctx, who.Workspace.ID, func(tenant tenants.Tenant) error {
		if err := do(tenant); err != nil {
			return err
		}
		return h.deps.Audit.Note(ctx, tenant, change)
	})
}

// pinnable returns the messages to pin for the turns chosen in a form: "4", "2-9", several of them, or "all"
// compressed turns. Of a run it returns the assistant messages, because each turn has one. A problem is an
// error for the person to fix.
func (h Forms) pinnable(c echo.Context, who tenants.Principal, of subject) (messages []int, problem string, err error) {
	ctx := c.Request().Context()
	reader, err := h.reader(ctx, who, of.detail, of.lane, of.mayRead)
	if err != nil {
		return nil, "", err
	}
	form, err := c.FormParams()
	if err != nil {
		return nil, "", fmt.Errorf("read form: %w", err)
	}
	chosen, problem := chosenSpans(form["m"], reader)
	if problem != "" {
		return nil, problem, nil
	}
	for _, span := range chosen {
		found, err := h.turnsOf(ctx, who, of, span)
		if err != nil {
			return nil, "", err
		}
		messages = append(messages, found...)
	}
	slices.Sort(messages)
	messages = slices.Compact(messages)
	fresh := 0
	for _, message := range messages {
		if len(reader.pinnedIn(span{From: message, To: message + 1})) == 0 {
			fresh++
		}
	}
	if len(reader.pins)+fresh > session.MaxPins {
		return nil, fmt.Sprintf("Nothing was changed: you chose %d turns, a thread keeps %d at most, and it keeps %d now. Choose fewer, or let some be compressed again.",
			fresh, session.MaxPins, len(reader.pins)), nil
	}
	return messages, "", nil
}

// chosenSpans returns the rows in a form's values.
func chosenSpans(values []string, r *reader) (chosen []span, problem string) {
	for _, value := range values {
		if value == "all" {
			chosen = append(chosen, compressed(r.spans())...)
			continue
		}
		first, last, isRun := strings.Cut(value, "-")
		if !isRun {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, failed := strconv.Atoi(last)
		if err != nil || failed != nil || from < 0 || to < from || to >= r.lane.Position {
			return nil, fmt.Sprintf("Nothing was changed: the thread has the messages 0 to %d.", r.lane.Position-1)
		}
		chosen = append(chosen, span{From: from, To: to + 1})
	}
	if len(chosen) == 0 {
		return nil, "Nothing was changed: choose at least one message."
	}
	return chosen, ""
}

// turnsOf returns a message of each turn of a span.
func (h Forms) turnsOf(ctx context.Context, who tenants.Principal, of subject, chosen span) ([]int, error) {
	if !chosen.isRun() {
		return []int{chosen.From}, nil
	}
	entries, err := h.deps.Archive.Entries(ctx, who.Workspace.ID, of.lane.ID, chosen.From, chosen.To-chosen.From)
	if err != nil {
		return nil, err
	}
	var messages []int
	for _, entry := range entries {
		if entry.Role == conversation.Assistant && entry.Index < chosen.To {
			messages = append(messages, entry.Index)
		}
	}
	if len(messages) == 0 {
		messages = append(messages, chosen.From)
	}
	return messages, nil
}

// Release unpins the turn of a message, so that it can be compressed again.
func (h Forms) Release(c echo.Context, who tenants.Principal) error {
	of, err := h.changed(c, who)
	if err != nil {
		return err
	}
	message, err := strconv.Atoi(c.FormValue("m"))
	if err != nil {
		return session.ErrNotFound
	}
	ctx := c.Request().Context()
	change := tenants.Change{Action: tenants.PinRemoved, Target: of.detail.ID.String(), Before: tenants.Fields{"lane": of.lane.ID.String(), "message": strconv.Itoa(message)}}
	err = h.noted(ctx, who, change, func(tenant tenants.Tenant) error {
		return h.deps.Sessions.Unpin(ctx, tenant, of.lane.ID, message)
	})
	if err != nil {
		return err
	}
	return layout.Redirect(c, after(of, strconv.Itoa(message), doneReleased))
}

// PinSession pins the whole session, so that only an order compacts it.
func (h Forms) PinSession(c echo.Context, who tenants.Principal) error {
	return h.whole(c, who, tenants.SessionPinned, doneKept, func(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error {
		return h.deps.Sessions.PinSession(ctx, tenant, id, who.User.ID)
	})
}

// ReleaseSession lets a pinned session be compacted again.
func (h Forms) ReleaseSession(c echo.Context, who tenants.Principal) error {
	return h.whole(c, who, tenants.SessionUnpinned, doneLet, h.deps.Sessions.UnpinSession)
}

// whole makes a change of the whole session.
func (h Forms) whole(c echo.Context, who tenants.Principal, action tenants.Action, done string, change func(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error) error {
	of, err := h.changed(c, who)
	if err != nil {
		return err
	}
	ctx, id := c.Request().Context(), of.detail.ID
	err = h.noted(ctx, who, tenants.Change{Action: action, Target: id.String()}, func(tenant tenants.Tenant) error { return change(ctx, tenant, id) })
	if err != nil {
		return err
	}
	return layout.Redirect(c, after(of, "", done))
}

// AskCompact asks for the turns that an epoch must keep or leave out.
func (h Forms) AskCompact(c echo.Context, who tenants.Principal) error {
	of, err := h.changed(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, of, func(m *model) {
		if m.Problem = m.NoCompact; m.Problem == "" {
			m.Compact = &compactForm{Path: paths.CompactSession(of.detail.ID)}
		}
	})
}

// Compact makes the lane's next request make an epoch.
func (h Forms) Compact(c echo.Context, who tenants.Principal) error {
	of, err := h.changed(c, who)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	found, err := h.grounds(ctx, who, of)
	if err != nil {
		return err
	}
	found.of.lane.Order = nil // a pending order gets the new instructions
	if problem := found.whyNot(); problem != "" {
		return h.refuse(c, who, of, "Nothing was planned. "+problem)
	}
	instructions := strings.TrimSpace(c.FormValue("instructions"))
	if length := utf8.RuneCountInString(instructions); length > session.MaxInstructions {
		return h.page(c, who, http.StatusUnprocessableEntity, of, func(m *model) {
			m.Compact = &compactForm{
				Path: paths.CompactSession(of.detail.ID), Instructions: instructions,
				Error: fmt.Sprintf("Instructions may have %d characters; these are %d.", session.MaxInstructions, length),
			}
		})
	}
	change := tenants.Change{Action: tenants.CompactAsked, Target: of.detail.ID.String(), After: tenants.Fields{"lane": of.lane.ID.String()}}
	order := h.order(who, instructions)
	err = h.noted(ctx, who, change, func(tenant tenants.Tenant) error { return h.deps.Sessions.Ask(ctx, tenant, of.lane.ID, order) })
	if err != nil {
		return err
	}
	return layout.Redirect(c, after(of, "", doneAsked))
}

// ConfirmDelete asks whether to delete a session.
func (h Forms) ConfirmDelete(c echo.Context, who tenants.Principal) error {
	return h.deletePage(c, who, http.StatusOK, "", false)
}

func (h Forms) deletePage(c echo.Context, who tenants.Principal, status int, typed string, wrong bool) error {
	of, err := h.subject(c, who, "")
	if err != nil {
		return err
	}
	return h.page(c, who, status, of, func(m *model) {
		m.Delete = &deleteForm{Path: paths.DeleteSession(of.detail.ID), Name: shortID(of.detail.ID), Typed: typed, Wrong: wrong}
	})
}

// shortID is the text that confirms deleting a session. It is not the title, because not everyone may see
// that.
func shortID(id uuid.UUID) string { return id.String()[:8] }

// Delete deletes a session after its short id was typed.
func (h Forms) Delete(c echo.Context, who tenants.Principal) error {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return session.ErrNotFound
	}
	if typed := strings.TrimSpace(c.FormValue("confirm")); typed != shortID(id) {
		return h.deletePage(c, who, http.StatusUnprocessableEntity, typed, true)
	}
	change := tenants.Change{Action: tenants.SessionDeleted, Target: id.String()}
	ctx := c.Request().Context()
	err = h.noted(ctx, who, change, func(tenant tenants.Tenant) error { return h.deps.Sessions.Delete(ctx, tenant, id) })
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Sessions, "deleted", shortID(id)))
}

// field is the input for the short id.
func (f deleteForm) field() components.FieldModel {
	field := components.FieldModel{Label: "Type " + f.Name + " to confirm", Name: "confirm", Value: f.Typed}
	if f.Wrong {
		field.Error = "This is not " + f.Name + ". Nothing was deleted."
	}
	return field
}

// doneText confirms a form's action.
func doneText(done string) string {
	switch done {
	case donePinned:
		return "Never compressed from now on: the next compaction leaves this turn as the client sent it."
	case doneKept:
		return "Never compacted from now on, unless someone asks for it. What is compacted already stays so."
	case doneLet:
		return "Compacted again: the next prompt that needs it is compacted."
	case doneReleased:
		return "Compressed again: the next compaction may shorten this turn."
	case doneRestored:
		return "Restored in the next request. From then on these turns are never compressed."
	case doneAsked:
		return "Compact now is planned for the next request of this thread."
	case doneCommented:
		return "Your comment was added."
	case doneUncomment:
		return "The comment was deleted."
	default:
		return ""
	}
}
