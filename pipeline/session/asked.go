package session

import (
	"net/url"
	"slices"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Invalid describes an invalid parameter of a list request.
type Invalid struct {
	Field   string // the parameter's name
	Message string // continues the sentence after the field's name, and says how to fix it
}

// Error implements error.
func (i Invalid) Error() string { return i.Field + " " + i.Message }

// Shows returns the parts of a list of sessions, the complete one first.
func Shows() []Show {
	return []Show{ShowAll, ShowConversations, ShowCompressed, ShowBridged, ShowProblems, ShowSingle}
}

// FilterOf reads the filter of a workspace's session list from the parameters q, client, model, key, member,
// project, end_user, show and cursor, which have the same names in the page and the API. It returns an
// Invalid, and a filter that must not be used, if a key or member is not an id or the part is unknown.
func FilterOf(workspace tenants.WorkspaceID, address url.Values) (Filter, error) {
	filter := Filter{
		Query: address.Get("q"), Client: address.Get("client"), Model: address.Get("model"),
		Show: Show(address.Get("show")), Cursor: address.Get("cursor"),
	}
	if user := address.Get("end_user"); user != "" {
		filter.EndUser = EndUserIDs(workspace, user)
	}
	if key := address.Get("key"); key != "" {
		var err error
		if filter.APIKey, err = uuid.Parse(key); err != nil {
			return Filter{}, Invalid{"key", "is no id of an API key; leave it out for the sessions of all keys"}
		}
	}
	filter.Project = address.Get("project")
	if member := address.Get("member"); member != "" {
		var err error
		if filter.Member, err = uuid.Parse(member); err != nil {
			return Filter{}, Invalid{"member", "is not the id of a person; leave it out for the sessions of all"}
		}
	}
	if !slices.Contains(Shows(), filter.Show) {
		return Filter{}, Invalid{"show", "must be conversations, compressed, bridged, problems or single; leave it out for all sessions"}
	}
	return filter, nil
}
