package components

import "palimpsest/web/render"

// EndUser returns an end user's name: the application's own id if known, otherwise the beginning of its hash,
// or "" for "".
func EndUser(name, hash string) string {
	switch {
	case name != "":
		return render.Visible(name)
	case hash == "":
		return ""
	}
	return "end user " + hash[:min(len(hash), 8)]
}
