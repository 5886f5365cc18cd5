package session

import (
	"net/url"
	"slices"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Invalid says what is wrong with something that a list is asked for.
type Invalid struct {
	Field   string // as it is called in the address
	Message string // goes on after the field's name, and says what to do
}

// Error implements error.
func (i Invalid) Error() string { return i.Field + " " + i.Message }

// Shows returns the parts of a list of sessions, all of it first.
func Shows() []Show {
	return []Show{ShowAll, ShowConversations, ShowCompressed, ShowBridged, ShowProblems, ShowSingle}
}

// FilterOf reads what an address narrows the list of a workspace's sessions to by q, client, model,
// key, member, project, end_user, show and cursor: the names are those of the page and of the API. It returns an
// Invalid for a key or member that is not an id and for an unknown part; the filter is then
// one that must not be used.
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
