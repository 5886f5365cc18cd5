package components

// StarModel is the star of a session, which is its person's alone.
type StarModel struct {
	Name    string // of the session
	Path    string // where it changes
	Back    string // the page that it stands on
	Starred bool
}

func (m StarModel) words() string {
	if m.Starred {
		return "Starred by you. Click to take the star away."
	}
	return "Star, for yourself. Starred sessions have a list of their own."
}
