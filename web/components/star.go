package components

// StarModel is one person's star on a session.
type StarModel struct {
	Name    string // of the session
	Path    string // address that toggles it
	Back    string // the page that shows it
	Starred bool
}

func (m StarModel) words() string {
	if m.Starred {
		return "Starred by you. Click to remove the star."
	}
	return "Star for yourself. Starred sessions have their own list."
}
